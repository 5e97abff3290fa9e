// Puts the parts together: finds its own picture, listens to it, and keeps its state.
//
// In: `script`, `packed` and `rules` from around. Out: a picture that answers. Whatever fails, the picture that was
// there stays.

const svg = script ? script.ownerSVGElement : null;
const bare = svg === document.documentElement;
const layers = {};
const bars = {};
const view = {
  zoom: 0, pointed: -1, match: -1, query: '', hits: null, matches: [], wrong: '', inverted: false, order: '',
 
  width: 0, height: 0, top: 0, bottom: 0, levels: 1, scale: 1, from: 0, length: 1, column: 7.3, least: 0, narrow: 0, spans: [], rootY: 0,
};
let graph = null;
// The graph with callees by name, and with the heaviest first; the latter when it is asked for.
const graphs = { name: null, weight: null };
// The module of the profiler's own process, as in `marks.rs`.
const ITSELF = 'the profiler itself';
const COLUMNS = ['own', 'name', 'depth', 'total', 'weight'];

function start(buffer) {
  graph = unpack(buffer);
  graphs.name = graph;
  view.inverted = graph.inverted;
  view.order = ['', 'name', 'weight'][graph.asked];
  for (const child of Array.from(svg.children)) {
    if (child.localName !== 'desc' ? child !== script : false) {
      child.remove();
    }
  }
  const style = svgElement(svg, 'style', {});
  style.textContent = rules;
  svg.setAttribute('tabindex', '0');
  layers.joined = svgElement(svg, 'path', { 'class': 'fg-joined' });
  layers.frames = svgElement(svg, 'g', { 'font-family': 'monospace', 'font-size': 12, fill: '#000' });
  layers.ticks = svgElement(svg, 'path', { 'class': 'fg-ticks' });
  buildBars();
  layers.outline = svgElement(svg, 'rect', { 'class': 'fg-outline' });
  buildTip();
  measureColumn();
  fitPhone();
  readAddress();
  resize();
  listen();
  if (bare) {
    reveal(view.zoom);
  }
}

// How wide a letter is in the font that is there.
function measureColumn() {
  const sample = svgElement(layers.frames, 'text', {});
  sample.textContent = 'M'.repeat(100);
  view.column = sample.getComputedTextLength() / 100 || view.column;
  sample.remove();
}

// A bare picture has no page that could tell phones to show it in its own size.
function fitPhone() {
  if (!bare) {
    return;
  }
  const meta = html(svg, 'meta', '');
  meta.name = 'viewport';
  meta.content = 'width=device-width,initial-scale=1';
}

// How many of its own lengths the picture is wide: as many as pixels, unless a phone shows it smaller than it is.
function ownWidth() {
  const shown = svg.getBoundingClientRect().width;
  const fixed = svg.style.width.endsWith('px');
  const isTouched = matchMedia('(pointer: coarse)').matches;
  const isShrunk = bare ? isTouched ? less(screen.width, window.innerWidth * 0.7) : false : false;
  return Math.round(isShrunk ? (fixed ? shown : screen.width) : shown);
}

function resize() {
  const width = ownWidth();
  if (width === 0) {
    // It is hidden, as one of several on a page may be.
    return;
  }
  // Of two widths in turn, as when a scroll bar makes its own cause vanish, the second stays.
  if (width === view.width || width === view.widthBefore || less(width, 40)) {
    placeBars();
    showPointed();
    return;
  }
  view.widthBefore = less(Math.abs(width - view.width), 30) ? view.width : 0;
  view.width = width;
  draw();
}

function zoomTo(node) {
  view.zoom = node;
  view.pointed = -1;
  draw();
  reveal(node);
  report();
  writeAddress(true);
}

// Scrolls so that a frame can be seen with what it called.
function reveal(node) {
  const part = seen();
  if (!less(part.bottom - part.top, view.height - 1)) {
    return;
  }
  const y = rowY(rowOf(node));
  const rows = 3 * graph.height;
  const by = view.inverted
    ? y - rows - (part.top + view.top)
    : y + rows - (part.bottom - view.bottom - graph.height);
  window.scrollBy(0, by * part.scale);
  placeBars();
  showPointed();
}

// Callees are by name, and by weight where the graph is turned over or reversed, unless the reader chose.
function isByWeight() {
  const usual = view.inverted || graph.reversed ? 'weight' : 'name';
  return graph.chart ? false : (view.order || usual) === 'weight';
}

// Shows callees in the order that is wanted. What is zoomed, pointed at and found stays.
function arrange() {
  const other = isByWeight() ? 'weight' : 'name';
  if (graph === graphs[other]) {
    return;
  }
  if (graphs.weight === null) {
    graphs.weight = heaviestFirst(graph, COLUMNS, function (node) {
      return graph.origin[graph.name[node]][0] === ITSELF;
    });
    graphs.weight.rests = new Map(Array.from(graph.rests, function (entry) {
      return [graphs.weight.place[entry[0]], entry[1]];
    }));
  }
  const places = other === 'weight' ? graphs.weight.place : graphs.weight.order;
  graph = graphs[other];
  view.zoom = places[view.zoom];
  view.pointed = view.pointed === -1 ? -1 : places[view.pointed];
  view.match = view.match === -1 ? -1 : places[view.match];
  view.matches = view.hits ? matches() : [];
}

function changeOrder() {
  view.order = isByWeight() ? 'name' : 'weight';
  arrange();
  draw();
  reveal(view.zoom);
  writeAddress();
}

function turnOver() {
  view.inverted = !view.inverted;
  arrange();
  draw();
  reveal(view.zoom);
}

function listen() {
  let waiting = 0;
  svg.addEventListener('click', function (event) {
    const node = under(event);
    if (node !== -1) {
      zoomTo(node);
    }
  });
  svg.addEventListener('pointermove', function (event) {
    const node = under(event);
    if (node !== view.pointed) {
      view.pointed = node;
      showPointed();
    }
    const place = placeOf(event);
    showTip(event.pointerType === 'touch' ? -1 : node, place.x, place.y);
  });
  svg.addEventListener('pointerleave', function () {
    hideTip();
    view.pointed = -1;
    showPointed();
  });
  svg.addEventListener('keydown', key);
  bars.search.addEventListener('input', function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () {
      search(bars.search.value);
      writeAddress();
    }, 80);
  });
  const options = { capture: true, passive: true };
  window.addEventListener('scroll', function moved() {
    if (svg.isConnected) {
      placeBars();
      showPointed();
    } else {
      window.removeEventListener('scroll', moved, options);
    }
  }, options);
  // Not at once: what changes a size while sizes are told is an error.
  const observer = new ResizeObserver(function () {
    requestAnimationFrame(resize);
  });
  observer.observe(bare ? svg : svg.parentElement || svg);
  if (bare) {
    window.addEventListener('resize', resize);
    window.addEventListener('popstate', goBack);
  }
}

// The frame under the pointer, or -1 over bars and nothing.
function under(event) {
  if (event.target.namespaceURI !== svg.namespaceURI || event.target.localName === 'foreignObject') {
    return -1;
  }
  const place = placeOf(event);
  return frameAt(place.x, place.y);
}

// Where a pointer is, in lengths of the picture.
function placeOf(event) {
  const box = svg.getBoundingClientRect();
  const scale = view.width / box.width;
  return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
}

function copyName() {
  const name = graph.names[graph.name[view.pointed === -1 ? view.zoom : view.pointed]];
  copyText(name, function (sentence) {
    bars.found.textContent = sentence;
  });
}

function key(event) {
  if (keyDone(event)) {
    event.preventDefault();
    event.stopPropagation();
  }
}

// Whether a key was ours.
function keyDone(event) {
  if (event.altKey) {
    return false;
  }
  if (event.target === bars.search) {
    return keyInField(event.key, event.shiftKey);
  }
  if (event.ctrlKey || event.metaKey) {
    return event.key === 'f' ? focusSearch() : false;
  }
  const presses = event.target.localName === 'button' ? event.key === 'Enter' : false;
  return presses ? false : keyInGraph(event.key);
}

function focusSearch() {
  bars.search.focus();
  bars.search.select();
  return true;
}

function keyInField(typed, backwards) {
  if (typed === 'Enter') {
    if (bars.search.value !== view.query) {
      search(bars.search.value);
    }
    goToMatch(backwards ? -1 : 1);
    return true;
  }
  if (typed === 'Escape') {
    bars.search.value = '';
    search('');
    writeAddress();
    svg.focus({ preventScroll: true });
    return true;
  }
  return false;
}

function keyInGraph(typed) {
  const up = view.inverted ? 'ArrowDown' : 'ArrowUp';
  const down = view.inverted ? 'ArrowUp' : 'ArrowDown';
  const actions = {
    '/': focusSearch,
    n: function () { goToMatch(1); },
    N: function () { goToMatch(-1); },
    i: turnOver,
    o: changeOrder,
    c: copyName,
    Escape: function () { zoomTo(0); },
    Enter: function () { zoomTo(Math.max(view.pointed, 0)); },
    ArrowLeft: function () { walkTo(beside(-1)); },
    ArrowRight: function () { walkTo(beside(1)); },
  };
  actions[up] = function () { walkTo(above()); };
  actions[down] = function () { walkTo(graph.parent[start]); };
  const start = view.pointed === -1 ? view.zoom : view.pointed;
  if (!Object.keys(actions).includes(typed)) {
    return false;
  }
  hideTip();
  actions[typed]();
  return true;
}

function walkTo(node) {
  if (node === -1) {
    return;
  }
  view.pointed = node;
  showPointed();
  const part = seen();
  const y = rowY(rowOf(node));
  const hidden = less(y, part.top + view.top) || less(part.bottom - view.bottom - 2 * graph.height, y);
  if (hidden) {
    reveal(node);
  }
}

// The widest callee of the frame pointed at, or of what is zoomed, or -1.
function above() {
  const node = view.pointed === -1 ? view.zoom : view.pointed;
  if (less(node, view.zoom)) {
    let inside = view.zoom;
    while (graph.parent[inside] !== node ? inside !== 0 : false) {
      inside = graph.parent[inside];
    }
    return inside;
  }
  let widest = -1;
  for (let child = node + 1; child !== graph.end[node]; child = graph.end[child]) {
    if (widest === -1 || less(graph.total[widest], graph.total[child])) {
      widest = child;
    }
  }
  return widest === -1 || !isDrawn(widest) ? -1 : widest;
}

// The next frame on the same level that is drawn, to the left or the right, or -1.
function beside(step) {
  const node = view.pointed === -1 ? view.zoom : view.pointed;
  let i = node + step;
  while (less(view.zoom, i) ? less(i, graph.end[view.zoom]) : false) {
    if (graph.depth[i] === graph.depth[node] ? isDrawn(i) : false) {
      return i;
    }
    i += step;
  }
  return -1;
}

// A bare picture keeps its state in the address, so that a view can be kept and sent.
function readAddress() {
  if (!bare) {
    arrange();
    return;
  }
  const state = new URLSearchParams(location.hash.slice(1));
  const order = state.get('order');
  graph = graphs.name;
  view.order = order === 'name' || order === 'weight' ? order : ['', 'name', 'weight'][graph.asked];
  const node = Number(state.get('zoom'));
  view.zoom = Number.isInteger(node) ? less(-1, node) ? less(node, graph.count) ? node : 0 : 0 : 0;
  const text = state.get('search') || '';
  if (text !== view.query) {
    bars.search.value = text;
    view.width = ownWidth();
    search(text);
    view.width = 0;
  }
  arrange();
}

// Back leads to what was zoomed before.
function goBack() {
  view.pointed = -1;
  hideTip();
  readAddress();
  view.width = ownWidth();
  draw();
  reveal(view.zoom);
  report();
}

// `isStep`: the browser's Back is to undo it.
function writeAddress(isStep) {
  if (!bare) {
    return;
  }
  const state = new URLSearchParams();
  if (view.zoom !== 0) {
    state.set('zoom', graph.order ? graph.order[view.zoom] : view.zoom);
  }
  if (view.order !== ['', 'name', 'weight'][graph.asked]) {
    state.set('order', view.order);
  }
  if (view.query !== '') {
    state.set('search', view.query);
  }
  const address = '#' + state;
  if (address === (location.hash || '#')) {
    return;
  }
  try {
    history[isStep ? 'pushState' : 'replaceState'](null, '', address);
  } catch (refused) {
    // A sandbox forbids it; the view is none the worse.
  }
}

if (svg ? typeof DecompressionStream === 'function' : false) {
  inflate(packed).then(start).catch(function (error) {
    console.error(error);
  });
}
