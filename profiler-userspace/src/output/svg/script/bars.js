// What stays in view: above title, search, buttons and legend; below the root's row, the frame pointed at, and the
// balance.
//
// In: `graph`, `view`, and what part of the picture can be seen. Out: elements in `bars`.

function html(parent, tag, name, text) {
  const element = document.createElementNS('http://www.w3.org/1999/xhtml', tag);
  element.className = name;
  element.textContent = text || '';
  parent.append(element);
  return element;
}

function button(parent, text, hint, action) {
  const element = html(parent, 'button', 'fg-button', text);
  element.type = 'button';
  element.title = hint;
  element.addEventListener('click', action);
  return element;
}

function buildBars() {
  bars.back = svgElement(svg, 'rect', { 'class': 'fg-back', x: 0 });
  bars.root = svgElement(svg, 'g', { 'font-family': 'monospace', 'font-size': 12, fill: '#000' });
  const attributes = { x: 0, y: 0, width: 100, height: 100 };
  bars.above = svgElement(svg, 'foreignObject', attributes);
  bars.below = svgElement(svg, 'foreignObject', attributes);

  const above = html(bars.above, 'div', 'fg-bar fg-above');
  bars.top = above;
  bars.title = html(above, 'div', 'fg-title', graph.title);
  bars.title.title = graph.title;
  const controls = html(above, 'div', 'fg-controls');
  bars.search = html(controls, 'input', 'fg-search');
  bars.search.type = 'search';
  bars.search.placeholder = 'Search (regular expression)';
  bars.search.title = 'A regular expression; case counts if it has a capital letter. Keys: /, n, N';
  bars.search.setAttribute('aria-label', 'Search');
  bars.search.spellcheck = false;
  button(controls, '\u2039', 'Previous match (N)', function () {
    goToMatch(-1);
  });
  button(controls, '\u203a', 'Next match, the widest first (n)', function () {
    goToMatch(1);
  });
  bars.order = graph.chart ? null : button(controls, 'Heaviest first', 'Orders what a frame called by weight or by name (o)', changeOrder);
  bars.reset = button(controls, 'Reset zoom', 'Back to everything (Esc)', function () {
    zoomTo(0);
  });
  bars.found = html(above, 'div', 'fg-found');
  bars.found.setAttribute('role', 'status');
  if (graph.subtitle !== '') {
    html(above, 'div', 'fg-subtitle', graph.subtitle);
  }
  const legend = html(above, 'div', 'fg-legend');
  for (const entry of graph.legend) {
    const item = html(legend, 'span', 'fg-entry');
    html(item, 'i', 'fg-chip').style.background = entry.color;
    item.append(entry.label);
  }

  const below = html(bars.below, 'div', 'fg-bar fg-below');
  bars.bottom = below;
  if (graph.chart) {
    const axis = html(below, 'div', 'fg-axis');
    bars.axis = svgElement(axis, 'svg', { width: 100, height: 36 });
  }
  const details = html(below, 'div', 'fg-details');
  bars.name = html(details, 'span', 'fg-name');
  bars.numbers = html(details, 'span', 'fg-numbers');
  bars.narrow = html(below, 'div', 'fg-note');
  bars.balance = html(below, 'div', graph.lossy ? 'fg-note fg-lost' : 'fg-note', graph.balance);
  bars.balance.title = graph.balance;
}

function keysText() {
  const orders = graph.chart ? '' : ', o orders by weight or name';
  return 'Keys: arrows, Enter, Esc, /, n, N; i turns the graph over' + orders + ', c copies the name.';
}

function buildTip() {
  const attributes = { x: 0, y: 0, width: 100, height: 100, visibility: 'hidden', 'pointer-events': 'none' };
  bars.tip = svgElement(svg, 'foreignObject', attributes);
  bars.tipBox = html(bars.tip, 'div', 'fg-bar fg-tip');
  bars.tipBox.setAttribute('role', 'tooltip');
}

// Writes what changes their height, and asks for it.
function measureBars() {
  const slim = less(view.width, 640) ? ' fg-slim' : '';
  bars.top.className = 'fg-bar fg-above' + slim;
  bars.bottom.className = 'fg-bar fg-below' + slim;
  bars.reset.disabled = view.zoom === 0;
  if (bars.order) {
    bars.order.setAttribute('aria-pressed', isByWeight());
  }
  const least = Math.ceil(view.least * 100) / 100;
  const frames = grouped(view.narrow) + (view.narrow === 1 ? ' frame' : ' frames');
  const narrow = view.narrow === 0
    ? 'Every frame is drawn.'
    : frames + ' narrower than ' + least + ' px joined: zoom in or search to see them.';
  const rests = graph.unkept === 0 ? '' : ' ' + grouped(graph.unkept) + ' more are hatched rests: ' + HOW_TO_KEEP + '.';
  bars.narrow.textContent = narrow + rests + (slim ? '' : ' ' + keysText());
  bars.above.setAttribute('width', view.width);
  bars.below.setAttribute('width', view.width);
  view.top = Math.ceil(bars.top.offsetHeight);
  view.bottom = Math.ceil(bars.bottom.offsetHeight);
  bars.above.setAttribute('height', view.top);
  bars.below.setAttribute('height', view.bottom);
}

// What part of the picture can be seen, in its own lengths.
function seen() {
  const box = svg.getBoundingClientRect();
  let top = 0;
  let bottom = window.innerHeight;
  for (let around = svg.parentElement; around; around = around.parentElement) {
    const isPage = around === document.body || around === document.documentElement;
    if (isPage ? false : getComputedStyle(around).overflowY !== 'visible') {
      const clip = around.getBoundingClientRect();
      top = Math.max(top, clip.top);
      bottom = Math.min(bottom, clip.bottom);
    }
  }
  const scale = box.width / view.width || 1;
  return {
    top: (Math.max(top, box.top) - box.top) / scale,
    bottom: (Math.min(bottom, box.bottom) - box.top) / scale,
    scale: scale,
  };
}

// Moves the bars and the root's row to the edges of what can be seen.
function placeBars() {
  if (view.width === 0) {
    return;
  }
  const part = seen();
  const room = view.inverted ? view.top + graph.height : view.top;
  const lowest = view.height - view.bottom;
  const bottom = Math.max(room + (view.inverted ? 0 : graph.height), Math.min(lowest, part.bottom - view.bottom));
  const top = Math.max(0, Math.min(part.top, bottom - room - (view.inverted ? 0 : graph.height)));
  bars.above.setAttribute('y', top);
  bars.below.setAttribute('y', bottom);
  view.rootY = view.inverted ? top + view.top : bottom - graph.height;
  view.seenTop = part.top;
  bars.back.setAttribute('y', view.rootY - (view.inverted ? 0 : 1));
  bars.back.setAttribute('width', view.width);
  bars.back.setAttribute('height', graph.height + 1);
  bars.root.replaceChildren();
  const inner = view.width - 2 * PAD;
  svgElement(bars.root, 'rect', {
    x: PAD, y: view.rootY, width: inner, height: graph.height - 1, fill: graph.color[0],
    'class': view.zoom === 0 ? 'fg-frame' : 'fg-ancestor',
  });
  label(bars.root, 0, view.rootY, PAD, inner);
}

// How to see frames that are not in the file, as `draw.rs` says it.
const HOW_TO_KEEP = 'not in this file; --focus FUNCTION has them, or --minwidth 0 all';

// Says all about a frame; about what is zoomed if there is none.
function describe(node) {
  const shown = node === -1 ? view.zoom : node;
  const name = graph.names[graph.name[shown]];
  const weight = graph.weight[shown];
  const when = graph.chart ? around(shown) : null;
  let numbers = when ? clock(when.start) + ' to ' + clock(when.end) + ', ' : '';
  numbers += exactAmount(weight, graph.noun) + ', ';
  if (when ? shown !== 0 : false) {
    numbers += percent(weight, when.weight) + ' of what was counted then, ';
  }
  numbers += percent(weight, graph.weight[0]) + ' of all';
  if (view.zoom !== 0) {
    const part = Math.min(weight, graph.weight[view.zoom]);
    numbers += ', ' + percent(part, graph.weight[view.zoom]) + ' of zoomed';
  }
  if (graph.rests.has(shown)) {
    numbers += ', ' + grouped(graph.rests.get(shown)) + ' frames: ' + HOW_TO_KEEP;
  }
  const note = graph.rests.has(shown) ? '' : graph.notes[graph.name[shown]];
  if (note) {
    numbers = note;
  }
  const known = note ? [] : originOf(shown).map(function (pair) {
    return pair[1];
  });
  numbers = [numbers].concat(Array.from(new Set(known))).join(', ');
  const span = isAncestor(view.zoom, shown) ? isDrawn(shown) ? null : spanOf(shown) : null;
  if (span) {
    numbers += ', one of ' + grouped(span.count) + ' joined here';
  }
  if (node === -1 ? view.zoom === 0 : false) {
    numbers += '. Click a frame to zoom in';
  }
  bars.name.textContent = name;
  bars.name.title = name;
  bars.numbers.textContent = numbers;
}
