// Flame charts: frames where they were in time; the same as `svg/chart.rs`.
//
// In: a profile, and what each sample weighs. Out: a tree whose frames are measured in nanoseconds. Each window is as wide
// as it lasted; within it stacks share the width by weight. Where a frame goes on from one window to the next, it is one
// frame: it stands at the right end of one and at the left end of the other. Nothing here is recursive.

// More candidates than this at one border are not compared: narrow ones change little.
const MOST_CANDIDATES = 8;

// A chart for each key of `way`, the heaviest first, so that each thread or process has a lane of its own.
function chartLanes(profile, values, way, range) {
  const { samples, frames } = profile;
  const keyOf = (i) => (values[i] > 0 ? way.of[samples.owner[i]] + 1 : -1);
  const { order, begins } = inGroups(samples.count, way.labels.length + 1, keyOf);
  const lanes = [];
  for (let key = 0; key <= way.labels.length; key += 1) {
    const among = order.subarray(begins[key], begins[key + 1]);
    if (among.length > 0) {
      const tree = chartTree(profile, values, null, range, among);
      // Threads and processes without a key are named by what they lack.
      tree.frame[0] = key > 0 ? way.frames[key - 1] : frames.noStack;
      lanes.push(tree);
    }
  }
  return lanes.sort((a, b) => b.weight[0] - a.weight[0]);
}

// The chart of some samples, by node, of all without `among`; below a frame for each key of `way` if there is one.
function chartTree(profile, values, way, range, among) {
  const [first, last] = range || [0, profile.windows.length - 1];
  const at = (i) => (among ? among[i] : i);
  const count = among ? among.length : profile.samples.count;
  const { order, begins } = inGroups(count, profile.windows.length, (i) => profile.samples.window[at(i)]);
  order.forEach((i, place) => { order[place] = at(i); });
  const rows = [];
  const origin = profile.windows[first][0];
  let behind = 0;
  for (let window = first; window <= last; window += 1) {
    const start = Math.max(behind, profile.windows[window][0] - origin);
    behind = Math.max(start + 1, profile.windows[window][1] - origin);
    const own = order.subarray(begins[window], begins[window + 1]);
    rows.push({ start, end: behind, tree: wholeTree(profile, values, way, own) });
  }
  return arrange(rows, origin, profile.frames.name);
}

// When that much of what was counted in a row is on the left.
function timeIn(row, weight) {
  const all = row.tree.total[0];
  return row.start + (all > 0 ? Math.floor((row.end - row.start) * Math.min(weight, all) / all) : 0);
}

// Puts rows side by side.
function arrange(rows, origin, names) {
  const tree = { frame: [], parent: [], left: [], total: [], weight: [], self: [] };
  // The next one is the last.
  const waiting = [{ parent: -1, pieces: rows.map((row) => ({ row, node: 0, offset: 0 })) }];
  while (waiting.length > 0) {
    const { parent, pieces } = waiting.pop();
    const begin = pieces[0];
    const end = pieces[pieces.length - 1];
    const at = tree.frame.length;
    const left = parent < 0 ? begin.row.start : timeIn(begin.row, begin.offset);
    const right = parent < 0 ? end.row.end : timeIn(end.row, end.offset + end.row.tree.total[end.node]);
    tree.frame.push(begin.row.tree.frame[begin.node]);
    tree.parent.push(parent);
    tree.left.push(left);
    tree.total.push(right - left);
    tree.weight.push(pieces.reduce((sum, { row, node }) => sum + row.tree.total[node], 0));
    tree.self.push(pieces.reduce((sum, { row, node }) => sum + row.tree.self[node], 0));
    for (const called of calledBy(pieces, names).reverse()) {
      waiting.push({ parent: at, pieces: called });
    }
  }
  return finishChart(tree, rows, origin);
}

// What each of the frames is made of that a frame called, from the left.
function calledBy(pieces, names) {
  const items = pieces.map((piece) => itemsOf(piece, names));
  const borders = items.slice(1).map((right, i) => (
    pieces[i].row.end === pieces[i + 1].row.start ? candidatesFor(items[i], right) : []
  ));
  const chosen = chooseJoins(items, borders);
  const called = [];
  let open = null;
  pieces.forEach((piece, i) => {
    const first = i > 0 && chosen[i - 1] ? chosen[i - 1].right : -1;
    const last = chosen[i] ? chosen[i].left : -1;
    const order = Array.from(items[i].keys()).filter((item) => item !== first && item !== last);
    if (first >= 0) {
      order.unshift(first);
    }
    if (last >= 0 && last !== first) {
      order.push(last);
    }
    let offset = piece.offset;
    for (const place of order) {
      const item = items[i][place];
      if (item.node >= 0) {
        const part = { row: piece.row, node: item.node, offset };
        if (place === first) {
          open.push(part);
        } else {
          open = [part];
          called.push(open);
        }
      }
      offset += item.weight;
    }
  });
  return called;
}

// What a piece is divided into: callees by name, and what the frame did itself.
function itemsOf({ row, node }, names) {
  const { tree } = row;
  const width = (row.end - row.start) / (tree.total[0] || 1);
  const items = [];
  for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
    const weight = tree.total[child];
    items.push({ node: child, frame: tree.frame[child], weight, width: weight * width });
  }
  items.sort((a, b) => compareNames(names, a.frame, b.frame));
  if (tree.self[node] > 0) {
    items.push({ node: -1, frame: -1, weight: tree.self[node], width: tree.self[node] * width });
  }
  return items;
}

function compareNames(names, a, b) {
  return names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b;
}

// The callees that two neighbours have in common, the widest first.
function candidatesFor(left, right) {
  const places = new Map(right.map((item, place) => [item.frame, place]));
  const found = [];
  left.forEach((item, place) => {
    const other = item.node >= 0 ? places.get(item.frame) : undefined;
    if (other !== undefined) {
      found.push({ left: place, right: other, width: item.width + right[other].width });
    }
  });
  return found.sort((a, b) => b.width - a.width || a.left - b.left).slice(0, MOST_CANDIDATES);
}

// What goes on at each border, so that what is joined is widest. What goes on at both ends of a window fills it. Choices
// at one border depend on that before alone, so the best ones are found from left to right, and read from right to left.
function chooseJoins(items, borders) {
  const best = [];
  borders.forEach((own, border) => {
    const before = border > 0 ? borders[border - 1] : [];
    const sums = border > 0 ? best[border - 1] : [{ sum: 0 }];
    const from = (isPossible) => {
      let widest = before.length;
      for (let place = before.length - 1; place >= 0; place -= 1) {
        if (isPossible(before[place]) && sums[place].sum >= sums[widest].sum) {
          widest = place;
        }
      }
      return { sum: sums[widest].sum, before: widest };
    };
    const fills = items[border].length === 1;
    const row = own.map((candidate) => {
      const { sum, before: place } = from((other) => fills || other.right !== candidate.left);
      return { sum: sum + candidate.width, before: place };
    });
    row.push(from(() => true));
    best.push(row);
  });
  const chosen = [];
  let place = -1;
  for (let border = borders.length - 1; border >= 0; border -= 1) {
    const row = best[border];
    if (place === -1) {
      place = row.reduce((widest, { sum }, i) => (sum > row[widest].sum ? i : widest), 0);
    }
    chosen[border] = borders[border][place] || null;
    place = row[place].before;
  }
  return chosen;
}

// Adds what graphs need to find frames.
function finishChart(own, rows, origin) {
  const count = own.frame.length;
  const tree = {
    count,
    frame: Uint32Array.from(own.frame),
    parent: Int32Array.from(own.parent),
    left: Float64Array.from(own.left),
    total: Float64Array.from(own.total),
    weight: Float64Array.from(own.weight),
    self: Float64Array.from(own.self),
    windows: rows.map(({ start, end, tree: { total } }) => ({ start: start + origin, end: end + origin, weight: total[0] })),
    origin,
  };
  placeNodes(tree);
  orderByLevel(tree);
  return tree;
}

// From when to when a zoom into a frame of a chart leads: to whole windows, since order within them means nothing.
function spanOfZoom(tree, node) {
  const { start, end } = node === 0 ? { start: tree.origin, end: tree.origin + tree.total[0] } : aroundFrame(tree, node);
  return { begin: start - tree.origin, end: end - tree.origin };
}

// The windows that a frame of a chart is in: from when to when they are, and what was counted in them.
function aroundFrame(tree, node) {
  const left = tree.origin + tree.left[node];
  const right = left + tree.total[node];
  const touched = tree.windows.filter(({ start, end }) => end > left && start < right);
  return {
    start: touched.length > 0 ? touched[0].start : left,
    end: touched.length > 0 ? touched[touched.length - 1].end : right,
    weight: touched.reduce((sum, { weight }) => sum + weight, 0),
  };
}
