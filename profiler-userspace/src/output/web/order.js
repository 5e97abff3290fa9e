// The heaviest callee of each frame first: what SVG files and pages share.
//
// In: a tree in preorder whose callees are by name, as columns. Out: the same tree in another preorder. SVG files hold no
// character that markup would change, so that comparisons are written out here.

// `columns` names what there is of each frame beside its place. `order` has for each place the frame's place by name,
// `place` the other way round.
function heaviestFirst(tree, columns, isLast) {
  const order = new Uint32Array(tree.count);
  const place = new Uint32Array(tree.count);
  const waiting = [0];
  let at = 0;
  while (waiting.length !== 0) {
    const node = waiting.pop();
    order[at] = node;
    place[node] = at;
    at += 1;
    const called = [];
    for (let child = node + 1; child !== tree.end[node]; child = tree.end[child]) {
      called.push(child);
    }
    // The last one is taken first.
    called.sort(function (a, b) {
      const last = node === 0 ? isLast(b) - isLast(a) : 0;
      return last || tree.total[a] - tree.total[b] || b - a;
    });
    for (const child of called) {
      waiting.push(child);
    }
  }
  const sorted = Object.assign({}, tree, { order: order, place: place });
  for (const column of columns) {
    sorted[column] = tree[column].map(function (value, i) {
      return tree[column][order[i]];
    });
  }
  sorted.parent = tree.parent.map(function (value, i) {
    return i === 0 ? -1 : place[tree.parent[order[i]]];
  });
  sorted.end = tree.end.map(function (value, i) {
    return i + tree.end[order[i]] - order[i];
  });
  sorted.left = new Float64Array(tree.count);
  const filled = new Float64Array(tree.count);
  for (let i = 1; i !== tree.count; i += 1) {
    const parent = sorted.parent[i];
    sorted.left[i] = sorted.left[parent] + filled[parent];
    filled[parent] += sorted.total[i];
  }
  return sorted;
}
