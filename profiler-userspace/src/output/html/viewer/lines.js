// Functions and their lines, where a page shows source.
//
// In: a profile whose nodes are lines. Out: the same profile with functions as nodes; the one with lines is its `byLine`.
// Both have the frames of functions and, behind these, those of lines.

// `functionOf` and `lineOf` tell of each frame its function and its line, 0 where it has none.
function withFunctions(profile, columns) {
  const { frames, nodes } = profile;
  const functionOf = Array.from(frames.name, (_, i) => i);
  const lineOf = functionOf.map(() => 0);
  const places = Array.from(columns.line_frame, (number, i) => {
    const of = number + 1;
    const line = columns.line_number[i];
    if (line === 0) {
      return of;
    }
    const file = frames.file[of].split('/').pop();
    functionOf.push(of);
    lineOf.push(line);
    frames.name.push(frames.name[of] + ' (' + file + ':' + line + ')');
    frames.module.push(frames.module[of]);
    frames.file.push(frames.file[of]);
    frames.kind.push(frames.kind[of]);
    return frames.hidden.push(0) - 1;
  });
  for (let i = 1; i < nodes.count; i += 1) {
    nodes.frame[i] = places[nodes.frame[i] - 1];
  }
  const kept = newNodes();
  const known = new Map();
  const place = new Uint32Array(nodes.count);
  for (let i = 1; i < nodes.count; i += 1) {
    place[i] = childOf(kept, known, place[nodes.parent[i]], functionOf[nodes.frame[i]]);
  }
  const merged = withNodes(profile, kept, place, () => true);
  return Object.assign(merged, { byLine: profile, functionOf, lineOf });
}

// What each line of each file weighs, itself and with all that was called from there; what is met twice in a stack counts
// once. `sums[path]` is a map of lines.
function lineSums(profile, values) {
  const { frames } = profile;
  const keys = new Map();
  const keyOf = frames.name.map((_, i) => {
    const line = profile.lineOf[i] || 0;
    const key = line > 0 ? frames.file[i] + ':' + line : '';
    if (!keys.has(key)) {
      keys.set(key, { number: keys.size, file: frames.file[i], line });
    }
    return keys.get(key).number;
  });
  const tree = wholeTree(profile.byLine, values, null);
  const sums = functionSums(Object.assign({}, tree, { frame: tree.frame.map((frame) => keyOf[frame]) }), keys.size);
  const byFile = new Map();
  for (const { number, file, line } of keys.values()) {
    if (line > 0 && sums.total[number] > 0) {
      const lines = byFile.get(file) || new Map();
      lines.set(line, { self: sums.self[number], total: sums.total[number] });
      byFile.set(file, lines);
    }
  }
  return byFile;
}
