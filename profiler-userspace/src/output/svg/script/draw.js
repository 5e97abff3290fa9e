// Draws what a zoom shows: the same as `layout.rs` and `draw.rs`, and the marks of pointer, keys and search.
//
// In: `graph` and `view`. Out: elements in `layers`, and in `view` what was drawn where.

const PAD = 10;
const GAP = 0.5;
const MOST = 6000;

function svgElement(parent, tag, attributes) {
  const element = document.createElementNS(svg.namespaceURI, tag);
  for (const name of Object.keys(attributes)) {
    element.setAttribute(name, attributes[name]);
  }
  parent.append(element);
  return element;
}

function rounded(pixels) {
  return Math.round(pixels * 100) / 100;
}

// The row of a frame, from the root's. Lanes stand above one another, until one is zoomed to.
function rowOf(node) {
  return graph.depth[node] + (view.zoom === 0 ? graph.below[node] : 0);
}

// The top of a row; the root's is where the page leaves it, all others have a fixed place.
function rowY(depth) {
  if (view.inverted) {
    return view.top + depth * graph.height;
  }
  return view.height - view.bottom - (depth + 1) * graph.height;
}

function frameX(node) {
  return PAD + Math.max(0, graph.left[node] - view.from) * view.scale;
}

function frameWidth(node) {
  return less(node, view.zoom) ? view.width - 2 * PAD : graph.total[node] * view.scale;
}

function isAncestor(node, of) {
  return less(of, node) ? false : less(of, graph.end[node]);
}

// Sorts frames into those that are drawn and the spans that the others cover.
function collect(least) {
  const wide = [];
  const spans = [];
  const open = [];
  let narrow = 0;
  let levels = graph.depth[view.zoom] + 1;
  function closeSpan(span) {
    if (less(span.end - span.x, 0.5)) {
      return;
    }
    spans.push(span);
    levels = Math.max(levels, span.depth + 1);
  }
  for (let i = view.zoom; i !== graph.end[view.zoom]; i += 1) {
    const width = graph.total[i] * view.scale;
    const depth = rowOf(i);
    if (i === view.zoom ? true : !less(width, least)) {
      wide.push(i);
      levels = Math.max(levels, depth + 1);
      continue;
    }
    narrow += 1;
    const x = frameX(i);
    const span = open[depth];
    if (span ? less(x - span.end, GAP) : false) {
      span.end = x + width;
      span.count += 1;
    } else {
      if (span) {
        closeSpan(span);
      }
      open[depth] = { depth: depth, x: x, end: x + width, count: 1 };
    }
  }
  open.forEach(closeSpan);
  return { wide: wide, spans: spans, narrow: narrow, levels: levels };
}

function enough(least) {
  const widths = [];
  for (let i = view.zoom; i !== graph.end[view.zoom]; i += 1) {
    const width = graph.total[i] * view.scale;
    if (!less(width, least)) {
      widths.push(width);
    }
  }
  if (!less(MOST, widths.length)) {
    return least;
  }
  const sorted = Float64Array.from(widths).sort().reverse();
  let last = MOST - 1;
  while (last !== -1 ? sorted[last] === sorted[MOST] : false) {
    last -= 1;
  }
  return last === -1 ? sorted[MOST] * 1.001 : sorted[last];
}

function drawFrame(node, y, x, width, classes) {
  const name = graph.name[node];
  const hit = view.hits ? view.hits[name] === 1 : false;
  svgElement(layers.frames, 'rect', {
    x: rounded(x), y: y, width: rounded(less(2, width) ? width - 0.5 : width), height: graph.height - 1,
    fill: hit ? MATCH : graph.color[name], 'class': classes + (hit ? ' fg-hit' : ''),
  });
  if (graph.rests.has(node) || (graph.hatched ? node !== 0 : false)) {
    svgElement(layers.frames, 'path', { 'class': 'fg-hatch', d: hatching(y, x, width) });
  }
  label(layers.frames, node, y, x, width);
}

// Lines across a frame of which nothing is claimed.
function hatching(y, x, width) {
  const height = graph.height - 1;
  const lines = [];
  for (let at = x - height; less(at, x + width); at += 8) {
    const from = Math.max(at, x);
    const to = Math.min(at + height, x + width);
    if (less(from, to)) {
      const low = rounded(y + height - (from - at));
      lines.push('M' + rounded(from) + ' ' + low + 'L' + rounded(to) + ' ' + rounded(y + height - (to - at)));
    }
  }
  return lines.join('');
}

function label(parent, node, y, x, width) {
  if (less(graph.height, 12)) {
    return;
  }
  const text = fit(graph.names[graph.name[node]], Math.floor((width - 6) / view.column));
  if (text !== '') {
    const baseline = rounded(y + graph.height / 2 + 4);
    const element = svgElement(parent, 'text', { x: rounded(x + 3), y: baseline, 'pointer-events': 'none' });
    element.textContent = text;
  }
}

function boxes(list) {
  return list.map(function (box) {
    const width = rounded(box.width);
    return 'M' + rounded(box.x) + ' ' + box.y + 'h' + width + 'v' + (graph.height - 1) + 'h-' + width + 'z';
  }).join('');
}

// What matches and is too narrow to be drawn gets a tick that can be seen.
function ticks() {
  const list = [];
  const last = [];
  if (!view.hits) {
    return list;
  }
  for (let i = view.zoom + 1; i !== graph.end[view.zoom]; i += 1) {
    if (view.hits[graph.name[i]] !== 1) {
      continue;
    }
    const width = graph.total[i] * view.scale;
    const depth = rowOf(i);
    if (less(width, view.least) ? less(depth, view.levels) : false) {
      const x = frameX(i);
      if (less(x, last[depth] + 1)) {
        continue;
      }
      last[depth] = x;
      list.push({ x: x, y: rowY(depth), width: Math.max(1.5, width) });
    }
  }
  return list;
}

// Everything anew: after a zoom, a search, a change of the width.
function draw() {
  const inner = Math.max(1, view.width - 2 * PAD);
  // A zoom into a chart leads to whole windows: order within them means nothing.
  const windows = graph.chart ? around(view.zoom) : null;
  const isPart = windows ? view.zoom !== 0 : false;
  view.from = isPart ? windows.start : graph.left[view.zoom];
  view.length = isPart ? windows.end - windows.start : graph.total[view.zoom];
  view.scale = inner / view.length;
  view.least = enough(graph.share ? inner * graph.least / 100 : graph.least);
  const found = collect(view.least);
  view.spans = found.spans;
  view.narrow = found.narrow;
  view.levels = found.levels;
  measureBars();
  view.height = Math.ceil(view.top + view.levels * graph.height + view.bottom);
  svg.setAttribute('viewBox', '0 0 ' + view.width + ' ' + view.height);
  // Browsers take the shape from these, if they are there.
  svg.setAttribute('width', view.width);
  svg.setAttribute('height', view.height);
  layers.frames.replaceChildren();
  layers.joined.setAttribute('d', boxes(found.spans.map(function (span) {
    return { x: span.x, y: rowY(span.depth), width: span.end - span.x };
  })));
  for (let node = graph.parent[view.zoom]; less(0, node); node = graph.parent[node]) {
    drawFrame(node, rowY(rowOf(node)), PAD, inner, 'fg-ancestor');
  }
  for (const node of found.wide) {
    if (node !== 0) {
      drawFrame(node, rowY(rowOf(node)), frameX(node), graph.total[node] * view.scale, 'fg-frame');
    }
  }
  layers.ticks.setAttribute('d', boxes(ticks()));
  placeBars();
  drawAxis();
  showPointed();
}

// Outlines the frame that the pointer or the keys are on.
function showPointed() {
  const node = view.pointed;
  const seen = node === -1 ? false : isAncestor(view.zoom, node) || isAncestor(node, view.zoom);
  if (!seen) {
    layers.outline.setAttribute('visibility', 'hidden');
  } else {
    const outline = {
      x: frameX(node), y: node === 0 ? view.rootY : rowY(rowOf(node)),
      width: Math.max(1, frameWidth(node)), height: graph.height - 1, visibility: 'visible',
    };
    for (const name of Object.keys(outline)) {
      layers.outline.setAttribute(name, outline[name]);
    }
  }
  describe(seen ? node : -1);
}

// The frame at a place of the picture, or -1.
function frameAt(x, y) {
  const fromRoot = y - view.rootY;
  if (less(fromRoot, 0) ? false : less(fromRoot, graph.height)) {
    return 0;
  }
  const row = Math.floor((y - rowY(0)) / graph.height);
  let depth = view.inverted ? row : -row;
  let node = view.zoom;
  if (less(depth, 1)) {
    return -1;
  }
  if (less(depth, graph.depth[node])) {
    while (graph.depth[node] !== depth) {
      node = graph.parent[node];
    }
    return node;
  }
  const weight = view.from + (x - PAD) / view.scale;
  if (less(x, PAD) || less(view.width - PAD, x)) {
    return -1;
  }
  if (graph.lanes ? node === 0 : false) {
    node = laneAt(depth);
    depth -= graph.below[node];
  }
  while (graph.depth[node] !== depth) {
    let child = node + 1;
    while (child !== graph.end[node] ? !less(weight, graph.left[child] + graph.total[child]) : false) {
      child = graph.end[child];
    }
    if (child === graph.end[node] ? true : less(weight, graph.left[child])) {
      return -1;
    }
    node = child;
  }
  return isDrawn(node) || spanOf(node) ? node : -1;
}

// The lane that a row is in; the last one has all rows above it.
function laneAt(row) {
  let lane = 1;
  while (graph.end[lane] !== graph.count ? less(graph.below[graph.end[lane]], row) : false) {
    lane = graph.end[lane];
  }
  return lane;
}

function isDrawn(node) {
  return node === view.zoom ? true : !less(graph.total[node] * view.scale, view.least);
}

// The span of narrow frames that a frame is part of, if it is drawn.
function spanOf(node) {
  const x = frameX(node);
  return view.spans.find(function (span) {
    return span.depth !== rowOf(node) || less(x, span.x) ? false : less(x, span.end);
  });
}
