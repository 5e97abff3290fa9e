// The graph: frames of one or two trees on a canvas.
//
// In: trees that grow up or down from a row they share, colours, which frames match. Out: pixels, and what is said about
// the frame that is pointed at. The canvas is as large as what is seen of the graph, never as the graph: browsers refuse
// canvases of more than 32,767 pixels. Only rows in view are drawn, each by binary search. Frames narrower than half a
// pixel are drawn as one cell for each pixel; nothing is left out of the data.

const LEAST = 0.5;
const MATCH_COLOR = '#ff5cff';
const ANCESTOR_COLOR = '#d4d4d4';
const FONT_SIZE = 12;

function makeGraph(elements, rowHeight, events) {
  const { scroller, canvas, spacer } = elements;
  const pen = canvas.getContext('2d');
  const graph = {
    // Each part is a tree and where it grows: 1 is down. The first part has the shared row.
    parts: [], frames: null, colors: [], hits: null,
    // `cursor` is where a mouse points at something, in the window.
    zoom: { part: 0, node: 0 }, pointed: null, cursor: null,
    width: 0, height: 0, column: 7.3, joined: 0,
  };
  let isWaiting = false;
  let looks = {};

  // The row that all parts share, in rows from the top.
  function rootRow() {
    return graph.parts.reduce((rows, part) => (part.direction < 0 ? part.tree.levels - 1 : rows), 0);
  }

  // Lanes stand one below the other, each with a row of its own that its frames grow from.
  const hasLanes = () => graph.parts.length > 0 && graph.parts[0].base !== undefined;

  function levelsOf(part) {
    return hasLanes() ? graph.parts[part].rows : graph.parts[part].tree.levels;
  }

  function baseOf(part) {
    return hasLanes() ? graph.parts[part].base : rootRow();
  }

  function rowCount() {
    if (hasLanes()) {
      return graph.parts.reduce((rows, part) => rows + part.rows, 0);
    }
    return graph.parts.reduce((rows, part) => rows + part.tree.levels - 1, 1);
  }

  function rowOf(part, depth) {
    return baseOf(part) + graph.parts[part].direction * depth;
  }

  // Sizes follow the window; frames that end below it are reached by scrolling.
  function resize() {
    if (scroller.clientWidth === 0) {
      // Hidden: what is known of its size stays.
      return;
    }
    // Where the window has grown, the browser has moved the end of what is scrolled to its edge already.
    const seen = Math.max(graph.height, scroller.clientHeight);
    const below = Math.max(0, rowCount() * rowHeight - scroller.scrollTop - seen);
    const ratio = window.devicePixelRatio || 1;
    graph.width = scroller.clientWidth;
    graph.height = Math.max(1, scroller.clientHeight);
    canvas.width = Math.max(1, Math.round(graph.width * ratio));
    canvas.height = Math.round(graph.height * ratio);
    canvas.style.width = graph.width + 'px';
    canvas.style.height = graph.height + 'px';
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = FONT_SIZE + 'px ui-monospace, Menlo, Consolas, monospace';
    graph.column = pen.measureText('M'.repeat(50)).width / 50;
    layOut();
    if (isUpward()) {
      scroller.scrollTop = rowCount() * rowHeight - graph.height - below;
    }
    draw();
  }

  // Whether the root is at the bottom, so that this is the end that stays in view.
  function isUpward() {
    return graph.parts.length === 1 && graph.parts[0].direction < 0;
  }

  // Lanes are as high as what is wide enough to be seen: a few rare deep stacks would push the next lane out of sight.
  function layLanes() {
    let rows = 0;
    for (const part of graph.parts.filter(({ isLane }) => isLane)) {
      const { tree, direction } = part;
      const { begin, end, scale } = scaleOf(0);
      part.rows = 1;
      for (let i = 0; i < tree.count; i += 1) {
        const isSeen = tree.total[i] * scale >= LEAST && tree.left[i] < end && tree.left[i] + tree.total[i] > begin;
        part.rows = isSeen ? Math.max(part.rows, tree.depth[i] + 1) : part.rows;
      }
      part.base = direction > 0 ? rows : rows + part.rows - 1;
      rows += part.rows;
    }
  }

  // A graph that is lower than the window stands at the edge where its root is.
  function layOut() {
    layLanes();
    const height = rowCount() * rowHeight;
    spacer.style.height = Math.max(0, height - graph.height) + 'px';
    graph.offset = isUpward() ? Math.max(0, graph.height - height) : 0;
  }

  function readLooks() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    looks = { paper: value('--paper'), ink: value('--ink'), joined: value('--joined'), dim: Number(value('--dim')) || 1 };
  }

  function redraw() {
    if (!isWaiting) {
      isWaiting = true;
      requestAnimationFrame(draw);
    }
  }

  function draw() {
    isWaiting = false;
    if (graph.parts.length === 0 || graph.width === 0) {
      return;
    }
    readLooks();
    pen.globalAlpha = 1;
    pen.fillStyle = looks.paper;
    pen.fillRect(0, 0, graph.width, graph.height);
    pen.textBaseline = 'middle';
    graph.joined = 0;
    const top = scroller.scrollTop - graph.offset;
    const first = Math.max(0, Math.floor(top / rowHeight));
    const last = Math.min(rowCount() - 1, Math.ceil((top + graph.height) / rowHeight));
    for (let part = 0; part < graph.parts.length; part += 1) {
      const { tree, direction } = graph.parts[part];
      for (let row = first; row <= last; row += 1) {
        const depth = (row - baseOf(part)) * direction;
        if (depth >= (part === 0 || hasLanes() ? 0 : 1) && depth < levelsOf(part)) {
          drawRow(part, depth, row * rowHeight - top);
        }
      }
    }
    drawWindows();
    keepRootInView(top);
    drawPointed(top);
  }

  // Where the windows of a chart end, and on the row of each lane how much was counted in them.
  function drawWindows() {
    const { windows, origin } = graph.parts[0].tree;
    if (!windows) {
      return;
    }
    const { begin, scale } = scaleOf(0);
    const x = (time) => (time - origin - begin) * scale;
    const rate = ({ start, end, weight }) => weight / (end - start);
    let most = 0;
    for (const { tree } of graph.parts) {
      most = tree.windows.reduce((rates, window) => Math.max(rates, rate(window)), most);
    }
    pen.fillStyle = looks.ink;
    if (x(windows[0].end) - x(windows[0].start) > 4) {
      pen.globalAlpha = 0.15;
      windows.forEach(({ end }) => pen.fillRect(x(end) - 0.5, 0, 1, graph.height));
    }
    pen.globalAlpha = 0.35;
    graph.parts.forEach(({ tree }, part) => {
      const y = rowOf(part, 0) * rowHeight - scroller.scrollTop + graph.offset;
      if (!hasLanes() || y < -rowHeight || y > graph.height) {
        return;
      }
      for (const window of tree.windows) {
        const height = (rowHeight - 1) * rate(window) / most;
        pen.fillRect(x(window.start), y + rowHeight - 1 - height, x(window.end) - x(window.start), height);
      }
    });
    pen.globalAlpha = 1;
  }

  // Where a frame is, in pixels; the ancestors of what is zoomed are as wide as everything.
  function scaleOf(part) {
    const { tree } = graph.parts[part];
    if (tree.windows) {
      // All lanes have the same time.
      const { begin, end } = spanOfZoom(graph.parts[graph.zoom.part].tree, graph.zoom.node);
      return { begin, end, scale: graph.width / (end - begin || 1), node: 0 };
    }
    const node = graph.zoom.part === part ? graph.zoom.node : 0;
    return { begin: tree.left[node], scale: graph.width / (tree.total[node] || 1), node, end: tree.left[node] + tree.total[node] };
  }

  // The place in its level of the first frame that ends behind `x`.
  function firstBehind(tree, depth, x) {
    let low = tree.begins[depth];
    let high = tree.begins[depth + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      const i = tree.byLevel[middle];
      if (tree.left[i] + tree.total[i] > x) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  function drawRow(part, depth, y) {
    const { tree } = graph.parts[part];
    const { begin, end, scale, node } = scaleOf(part);
    const endOfLevel = tree.begins[depth + 1];
    const run = { x: 0, end: -1, y, isHit: false };
    let at = firstBehind(tree, depth, begin);
    while (at < endOfLevel) {
      const i = tree.byLevel[at];
      if (tree.left[i] >= end) {
        break;
      }
      const isAncestor = depth < tree.depth[node];
      const x = isAncestor ? 0 : Math.max(0, (tree.left[i] - begin) * scale);
      const behind = (Math.min(tree.left[i] + tree.total[i], end) - begin) * scale;
      const width = isAncestor ? graph.width : behind - x;
      if (tree.total[i] * scale >= LEAST) {
        drawRun(run);
        drawFrame(tree, i, x, y, width, isAncestor);
        at += 1;
      } else {
        at = joinPixel(tree, at, endOfLevel, begin, scale, run);
      }
    }
    drawRun(run);
  }

  function drawFrame(tree, i, x, y, width, isAncestor) {
    const frame = tree.frame[i];
    const gap = width > 3 ? 0.5 : 0;
    pen.globalAlpha = looks.dim;
    const color = isAncestor ? ANCESTOR_COLOR : graph.colors[frame];
    pen.fillStyle = graph.hits && graph.hits[frame] ? MATCH_COLOR : color;
    pen.fillRect(x, y, Math.max(width - gap, LEAST), rowHeight - 1);
    if (graph.frames.name[frame] === NARROW && graph.frames.kind[frame] === KIND.mark) {
      hatch(x, y, width - gap);
    }
    const text = width > 3 * graph.column ? fit(graph.frames.name[frame], Math.floor((width - 6) / graph.column)) : '';
    if (text !== '') {
      pen.globalAlpha = 1;
      pen.fillStyle = '#000';
      pen.fillText(text, x + 3, y + rowHeight / 2);
    }
  }

  // Lines across what stands for many frames.
  function hatch(x, y, width) {
    const height = rowHeight - 1;
    pen.save();
    pen.beginPath();
    pen.rect(x, y, width, height);
    pen.clip();
    pen.beginPath();
    for (let at = x - height; at < x + width; at += 8) {
      pen.moveTo(at, y + height);
      pen.lineTo(at + height, y);
    }
    pen.globalAlpha = 0.25;
    pen.strokeStyle = '#000';
    pen.stroke();
    pen.restore();
  }

  // Joins the frames of one pixel to a cell, and cells side by side to a run, which is one rectangle. Returns the place
  // of the first frame behind the cell.
  function joinPixel(tree, at, endOfLevel, begin, scale, run) {
    const x = (tree.left[tree.byLevel[at]] - begin) * scale;
    const pixel = Math.floor(x) + 1;
    const border = begin + pixel / scale;
    let next = at;
    let isHit = false;
    let end = x;
    while (next < endOfLevel) {
      const i = tree.byLevel[next];
      if (tree.left[i] >= border || tree.total[i] * scale >= LEAST) {
        break;
      }
      isHit = isHit || (graph.hits !== null && graph.hits[tree.frame[i]] === 1);
      end = (tree.left[i] + tree.total[i] - begin) * scale;
      next += 1;
    }
    graph.joined += next - at;
    if (x > run.end + 0.1 || isHit !== run.isHit) {
      drawRun(run);
      run.x = x;
      run.isHit = isHit;
    }
    run.end = Math.max(end, x + LEAST);
    return next;
  }

  function drawRun(run) {
    if (run.end > run.x) {
      pen.globalAlpha = looks.dim;
      pen.fillStyle = run.isHit ? MATCH_COLOR : looks.joined;
      pen.fillRect(run.x, run.y, run.end - run.x, rowHeight - 1);
    }
    run.end = -1;
    run.x = 0;
  }

  // The root's row stays at the edge when it is scrolled out of view, so that there is always a way back.
  function keepRootInView(top) {
    const y = rootRow() * rowHeight - top;
    const edge = hasLanes() ? null : y < 0 ? 0 : y + rowHeight > graph.height ? graph.height - rowHeight : null;
    graph.pinned = edge;
    if (edge === null) {
      return;
    }
    pen.globalAlpha = 1;
    pen.fillStyle = looks.paper;
    pen.fillRect(0, edge - 1, graph.width, rowHeight + 2);
    drawRow(0, 0, edge);
  }

  function drawPointed(top) {
    const pointed = graph.pointed;
    if (pointed === null) {
      return;
    }
    const { tree } = graph.parts[pointed.part];
    const { begin, end, scale, node } = scaleOf(pointed.part);
    const y = rowOf(pointed.part, tree.depth[pointed.node]) * rowHeight - top;
    const isAncestor = tree.depth[pointed.node] < tree.depth[node];
    const x = isAncestor ? 0 : Math.max(0, (tree.left[pointed.node] - begin) * scale);
    const behind = (Math.min(tree.left[pointed.node] + tree.total[pointed.node], end) - begin) * scale;
    const width = isAncestor ? graph.width : Math.max(2, behind - x);
    pen.globalAlpha = 1;
    pen.strokeStyle = looks.ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(x + 0.75, y + 0.25, Math.max(1, width - 1.5), rowHeight - 1.5);
  }

  // The frame at a point of the canvas, or null.
  function frameAt(x, y) {
    const isPinned = graph.pinned !== null && y >= graph.pinned && y < graph.pinned + rowHeight;
    const row = isPinned ? rootRow() : Math.floor((y + scroller.scrollTop - graph.offset) / rowHeight);
    for (let part = 0; part < graph.parts.length; part += 1) {
      const { tree, direction } = graph.parts[part];
      const depth = (row - baseOf(part)) * direction;
      if (depth < (part === 0 || hasLanes() ? 0 : 1) || depth >= levelsOf(part)) {
        continue;
      }
      const { begin, scale, node } = scaleOf(part);
      if (depth <= tree.depth[node]) {
        return { part, node: ancestorAt(tree, node, depth) };
      }
      const weight = begin + x / scale;
      const place = firstBehind(tree, depth, weight);
      const found = tree.byLevel[place];
      const isThere = place < tree.begins[depth + 1] && tree.left[found] - 1 / scale <= weight;
      return isThere && isInside(tree, node, found) ? { part, node: found } : null;
    }
    return null;
  }

  function ancestorAt(tree, node, depth) {
    let above = node;
    while (tree.depth[above] > depth) {
      above = tree.parent[above];
    }
    return above;
  }

  function isInside(tree, node, i) {
    return i >= node && i < tree.end[node];
  }

  function point(pointed) {
    const before = graph.pointed;
    if (before && pointed && before.part === pointed.part && before.node === pointed.node) {
      return;
    }
    graph.pointed = pointed;
    redraw();
    events.pointed(pointed);
  }

  function zoomTo(target) {
    graph.zoom = target;
    if (hasLanes()) {
      layOut();
    }
    draw();
    reveal(target);
    events.zoomed(target);
  }

  // Scrolls so that a frame can be seen with some of what it called.
  function reveal({ part, node }) {
    const { tree, direction } = graph.parts[part];
    const y = rowOf(part, tree.depth[node]) * rowHeight + graph.offset;
    const room = 2 * rowHeight;
    const isAbove = y < scroller.scrollTop + room;
    const isBelow = y + rowHeight > scroller.scrollTop + graph.height - room;
    if (isAbove || isBelow) {
      scroller.scrollTop = direction < 0 ? y + 3 * rowHeight - graph.height : y - 2 * rowHeight;
      redraw();
    }
  }

  // The widest callee of a frame, or on the way to what is zoomed the next frame there.
  function stepOut({ part, node }) {
    const { tree } = graph.parts[part];
    const zoomed = graph.zoom.part === part ? graph.zoom.node : 0;
    if (node !== zoomed && isInside(tree, node, zoomed)) {
      return { part, node: ancestorAt(tree, zoomed, tree.depth[node] + 1) };
    }
    let widest = -1;
    for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
      if (widest === -1 || tree.total[child] > tree.total[widest]) {
        widest = child;
      }
    }
    return widest === -1 ? null : { part, node: widest };
  }

  // The frame beside another one on its level that is wide enough to be seen, or null.
  function stepBeside({ part, node }, step) {
    const { tree } = graph.parts[part];
    const { scale, node: zoomed } = scaleOf(part);
    const depth = tree.depth[node];
    let at = firstBehind(tree, depth, tree.left[node]) + step;
    while (at >= tree.begins[depth] && at < tree.begins[depth + 1]) {
      const i = tree.byLevel[at];
      if (isInside(tree, zoomed, i) && tree.total[i] * scale >= LEAST) {
        return { part, node: i };
      }
      at += step;
    }
    return null;
  }

  // Moves to a frame that is reached from the one pointed at by a key, `up` or `down` being directions on the screen.
  function walk(way) {
    const from = graph.pointed || graph.zoom;
    const { tree } = graph.parts[from.part];
    let to;
    if (way === 'left' || way === 'right') {
      to = stepBeside(from, way === 'left' ? -1 : 1);
    } else {
      const grows = way === 'up' ? -1 : 1;
      const other = hasLanes() ? -1 : graph.parts.findIndex((part) => part.direction === grows);
      if (graph.parts[from.part].direction === grows) {
        to = stepOut(from);
      } else if (from.node > 0) {
        to = { part: from.part, node: tree.parent[from.node] };
      } else {
        to = other === -1 ? null : stepOut({ part: other, node: 0 });
      }
    }
    if (to) {
      graph.cursor = null;
      point(to);
      reveal(to);
    }
  }

  // Shows other trees; what was zoomed is forgotten.
  function show(parts) {
    graph.parts = parts;
    graph.zoom = { part: 0, node: 0 };
    graph.pointed = null;
    layOut();
    const middle = rootRow() * rowHeight - graph.height / 2;
    scroller.scrollTop = isUpward() ? scroller.scrollHeight : parts.length > 1 && !parts[0].isLane ? middle : 0;
    draw();
  }

  function listen() {
    let touched = null;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return frameAt(event.clientX - box.left, event.clientY - box.top);
    };
    const same = (a, b) => a && b && a.part === b.part && a.node === b.node;
    canvas.addEventListener('pointermove', (event) => {
      const under = at(event);
      canvas.style.cursor = under ? 'pointer' : 'default';
      graph.cursor = event.pointerType === 'touch' ? null : { x: event.clientX, y: event.clientY };
      point(under);
      events.moved();
    });
    canvas.addEventListener('pointerleave', (event) => {
      graph.cursor = null;
      if (event.pointerType === 'mouse') {
        point(null);
      }
    });
    canvas.addEventListener('pointerdown', (event) => {
      // A finger cannot hover: its first tap only points.
      touched = event.pointerType === 'mouse' || same(graph.pointed, at(event));
    });
    canvas.addEventListener('click', (event) => {
      const under = at(event);
      if (under && touched) {
        zoomTo(under);
      } else {
        point(under);
      }
    });
    scroller.addEventListener('scroll', redraw, { passive: true });
    new ResizeObserver(resize).observe(scroller);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  }

  listen();
  return Object.assign(graph, { resize, redraw, draw, show, point, zoomTo, reveal, walk, frameAt, isInside, rootRow, rowOf });
}
