// What is seen, as a file: folded text, or a picture.
//
// In: a graph. Out: text of the file. Nothing is asked for from anywhere: the browser saves what the page holds.

// The stacks of a tree inside a frame, and those with a function if one is given.
function foldedText(tree, node, frames, unit, focus) {
  const lines = [];
  // The part of the line that each frame on the way adds, and whether the function is there.
  const path = [];
  for (let above = node; above > 0; above = tree.parent[above]) {
    path.unshift(above);
  }
  for (let i = node; i < tree.end[node]; i += 1) {
    while (path.length > 0 && tree.end[path[path.length - 1]] <= i) {
      path.pop();
    }
    if (i > 0 && path[path.length - 1] !== i) {
      path.push(i);
    }
    const weight = unit === 'nanoseconds' ? Math.max(1, Math.round(tree.self[i] / 1000)) : tree.self[i];
    if (tree.self[i] > 0 && (focus === 0 || path.some((above) => tree.frame[above] === focus))) {
      const own = path.filter((above) => tree.frame[above] !== frames.noStack);
      const names = own.map((above) => foldedName(frames.name[tree.frame[above]], frames.kind[tree.frame[above]]));
      lines.push((names.join(';') || '[unknown]') + ' ' + weight);
    }
  }
  return lines.join('\n') + '\n';
}

// The graph as a picture that needs no script: all rows of what is zoomed, frames of half a pixel and more.
function pictureOf(graph, title, rowHeight, describe) {
  const width = 1200;
  const xml = (text) => text.replace(/[&<>"]/g, (c) => '&#' + c.charCodeAt(0) + ';');
  const body = [];
  // Of lanes, each has rows of its own.
  const isLanes = graph.parts[0].isLane;
  let rows = 0;
  let rootRow = 0;
  graph.parts.forEach(({ tree, direction }, part) => {
    const top = graph.zoom.part === part && !isLanes ? graph.zoom.node : 0;
    const span = tree.windows ? spanOfZoom(graph.parts[graph.zoom.part].tree, graph.zoom.node) : null;
    const left = span ? span.begin : tree.left[top];
    const right = span ? span.end : left + tree.total[top];
    const scale = width / (right - left || 1);
    const boxes = [];
    let deepest = 0;
    for (let i = part === 0 || isLanes ? top : top + 1; i < tree.end[top]; i += 1) {
      const x = Math.max(0, (tree.left[i] - left) * scale);
      const boxWidth = (Math.min(right, tree.left[i] + tree.total[i]) - left) * scale - x;
      if (boxWidth < LEAST) {
        i = tree.end[i] - 1;
        continue;
      }
      const depth = tree.depth[i] - tree.depth[top];
      deepest = Math.max(deepest, depth);
      boxes.push({ i, depth, x, width: boxWidth });
    }
    if (direction < 0) {
      rootRow = deepest;
    }
    const base = isLanes ? rows + (direction < 0 ? deepest : 0) : null;
    rows += isLanes ? deepest + 1 : deepest;
    body.push({ part, tree, direction, boxes, base });
  });
  const lines = [];
  for (const { part, tree, direction, boxes, base } of body) {
    for (const { i, depth, x, width: boxWidth } of boxes) {
      const frame = tree.frame[i];
      const y = 30 + ((base === null ? rootRow : base) + depth * direction) * rowHeight;
      const color = graph.hits && graph.hits[frame] ? MATCH_COLOR : graph.colors[frame];
      const label = fit(graph.frames.name[frame], Math.floor((boxWidth - 6) / 7.4));
      const at = 'x="' + (x + 3).toFixed(1) + '" y="' + (y + rowHeight - 4) + '"';
      const text = label === '' ? '' : '<text ' + at + '>' + xml(label) + '</text>';
      const size = 'width="' + Math.max(LEAST, boxWidth - 0.5).toFixed(1) + '" height="' + (rowHeight - 1) + '"';
      const box = '<rect x="' + x.toFixed(1) + '" y="' + y + '" ' + size + ' fill="' + color + '"/>';
      lines.push('<g><title>' + xml(describe({ part, node: i })) + '</title>' + box + text + '</g>');
    }
  }
  const height = 40 + (rows + 1) * rowHeight;
  const size = 'viewBox="0 0 ' + width + ' ' + height + '" width="' + width + '" height="' + height + '"';
  const head = '<rect width="100%" height="100%" fill="#fff"/><text x="10" y="20" font-weight="bold">' + xml(title) + '</text>';
  return '<svg xmlns="http://www.w3.org/2000/svg" ' + size + ' font-family="monospace" font-size="12">' + head + '\n' +
    lines.join('\n') + '\n</svg>\n';
}

function saveFile(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
