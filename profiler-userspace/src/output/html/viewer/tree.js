// Trees that can be drawn.
//
// In: a profile's nodes, and what each sample weighs. Out: a tree in preorder, with where each frame begins and how wide
// it is; frames that weigh nothing are not there. Nothing here is recursive: stacks may be thousands of levels deep.

// Collects frames in preorder.
function treeBuilder() {
  return { frame: [], parent: [], self: [], states: null };
}

function addNode(builder, parent, frame) {
  builder.frame.push(frame);
  builder.parent.push(parent);
  builder.self.push(0);
  return builder.frame.length - 1;
}

// Adds up, and orders by level.
function finishTree(builder) {
  const count = builder.frame.length;
  const tree = {
    count,
    frame: Uint32Array.from(builder.frame),
    parent: Int32Array.from(builder.parent),
    self: Float64Array.from(builder.self),
    total: Float64Array.from(builder.self),
    left: new Float64Array(count),
  };
  placeNodes(tree);
  for (let i = count - 1; i > 0; i -= 1) {
    tree.total[tree.parent[i]] += tree.total[i];
  }
  const filled = new Float64Array(count);
  for (let i = 1; i < count; i += 1) {
    const parent = tree.parent[i];
    tree.left[i] = tree.left[parent] + filled[parent];
    filled[parent] += tree.total[i];
  }
  orderByLevel(tree);
  return tree;
}

// The depth of each node, and the node behind all that are above it.
function placeNodes(tree) {
  tree.depth = new Uint32Array(tree.count);
  tree.end = new Uint32Array(tree.count);
  for (let i = 1; i < tree.count; i += 1) {
    tree.depth[i] = tree.depth[tree.parent[i]] + 1;
  }
  for (let i = tree.count - 1; i >= 0; i -= 1) {
    tree.end[i] = Math.max(tree.end[i], i + 1);
    if (i > 0) {
      tree.end[tree.parent[i]] = Math.max(tree.end[tree.parent[i]], tree.end[i]);
    }
  }
}

// `byLevel[begins[depth] .. begins[depth + 1]]` are the frames of a level from left to right.
function orderByLevel(tree) {
  let levels = 0;
  for (let i = 0; i < tree.count; i += 1) {
    levels = Math.max(levels, tree.depth[i] + 1);
  }
  tree.levels = levels;
  tree.begins = new Uint32Array(levels + 1);
  for (let i = 0; i < tree.count; i += 1) {
    tree.begins[tree.depth[i] + 1] += 1;
  }
  for (let depth = 0; depth < levels; depth += 1) {
    tree.begins[depth + 1] += tree.begins[depth];
  }
  const next = tree.begins.slice();
  tree.byLevel = new Uint32Array(tree.count);
  for (let i = 0; i < tree.count; i += 1) {
    tree.byLevel[next[tree.depth[i]]++] = i;
  }
}

// The same tree with the heaviest callee of each frame on the left.
function byWeight(tree, frames) {
  const isLast = (node) => frames.module[tree.frame[node]] === ITSELF;
  const sorted = heaviestFirst(tree, ['frame', 'self', 'total', 'depth'], isLast);
  orderByLevel(sorted);
  return sorted;
}

// Numbers in groups, each in the order in which they come. `keyOf` says which group, or -1 for none.
function inGroups(count, groups, keyOf) {
  const begins = new Uint32Array(groups + 1);
  for (let i = 0; i < count; i += 1) {
    begins[keyOf(i) + 1] += 1;
  }
  // Those of no group.
  begins[0] = 0;
  for (let group = 0; group < groups; group += 1) {
    begins[group + 1] += begins[group];
  }
  const order = new Uint32Array(begins[groups]);
  const next = begins.slice();
  for (let i = 0; i < count; i += 1) {
    const group = keyOf(i);
    if (group >= 0) {
      order[next[group]++] = i;
    }
  }
  return { order, begins };
}

// All stacks from their roots, below a frame for each key of `way` if there is one. `among` are the samples that count,
// by node; without it all do.
function wholeTree(profile, values, way, among) {
  const samples = profile.samples;
  const groups = way ? way.labels.length + 1 : 1;
  const count = among ? among.length : samples.count;
  const at = (i) => (among ? among[i] : i);
  // Samples are sorted by node, and stay so within each group.
  const { order, begins } = inGroups(count, groups, (i) => {
    const sample = at(i);
    return values[sample] > 0 ? (way ? way.of[samples.owner[sample]] + 1 : 0) : -1;
  });
  order.forEach((i, place) => { order[place] = at(i); });
  const builder = treeBuilder();
  const root = addNode(builder, -1, 0);
  const isLast = (group) => group > 0 && profile.frames.module[way.frames[group - 1]] === ITSELF;
  const all = Array.from({ length: groups }, (none, group) => group);
  for (const group of all.filter((one) => !isLast(one)).concat(all.filter(isLast))) {
    if (begins[group] < begins[group + 1]) {
      const base = group > 0 ? addNode(builder, root, way.frames[group - 1]) : root;
      addPaths(builder, profile, order.subarray(begins[group], begins[group + 1]), values, base);
    }
  }
  return finishTree(builder);
}

// Adds the paths to samples that are sorted by node. What two neighbours have in common is above both.
function addPaths(builder, profile, order, values, base) {
  const { parent, frame } = profile.nodes;
  const path = [0];
  const drawn = [base];
  const missing = [];
  for (const i of order) {
    let node = profile.samples.node[i];
    if (node === 0) {
      // They come first: with no frame, they would be free space.
      if (builder.frame.length - 1 === base) {
        addNode(builder, base, profile.frames.noStack);
      }
      builder.self[base + 1] += values[i];
      continue;
    }
    missing.length = 0;
    // Nodes are in preorder: whatever on the path comes behind the node is no caller of it.
    for (;;) {
      while (path[path.length - 1] > node) {
        path.pop();
        drawn.pop();
      }
      if (path[path.length - 1] === node) {
        break;
      }
      missing.push(node);
      node = parent[node];
    }
    for (let n = missing.length - 1; n >= 0; n -= 1) {
      drawn.push(addNode(builder, drawn[drawn.length - 1], frame[missing[n]]));
      path.push(missing[n]);
    }
    builder.self[drawn[drawn.length - 1]] += values[i];
  }
}

// For each function the outermost of its frames in each stack.
function outermost(tree, frame) {
  const found = [];
  for (let i = 0; i < tree.count; i += 1) {
    if (tree.frame[i] === frame) {
      found.push(i);
      i = tree.end[i] - 1;
    }
  }
  return found;
}

// What a function called, all its occurrences merged.
function calleesOf(tree, frame, names) {
  const builder = treeBuilder();
  const waiting = [{ parent: -1, frame, nodes: outermost(tree, frame) }];
  while (waiting.length > 0) {
    const { parent, frame: own, nodes } = waiting.pop();
    const at = addNode(builder, parent, own);
    const called = new Map();
    for (const node of nodes) {
      builder.self[at] += tree.self[node];
      for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
        gather(called, tree.frame[child], child);
      }
    }
    wait(waiting, at, called, names);
  }
  return finishTree(builder);
}

// Who called a function, all its occurrences merged; who called each function where the time was spent if `frame` is 0.
function callersOf(tree, frame, names) {
  const builder = treeBuilder();
  // Where a path stands, and what it weighs.
  const paths = [];
  if (frame > 0) {
    for (const node of outermost(tree, frame)) {
      paths.push({ node, weight: tree.total[node] });
    }
  } else {
    for (let node = 0; node < tree.count; node += 1) {
      if (tree.self[node] > 0) {
        paths.push({ node: -1, from: node, weight: tree.self[node] });
      }
    }
  }
  const waiting = [{ parent: -1, frame, nodes: paths }];
  while (waiting.length > 0) {
    const { parent, frame: own, nodes } = waiting.pop();
    const at = addNode(builder, parent, own);
    const callers = new Map();
    for (const path of nodes) {
      path.node = path.node === -1 ? path.from : tree.parent[path.node];
      if (path.node > 0) {
        gather(callers, tree.frame[path.node], path);
      } else {
        builder.self[at] += path.weight;
      }
    }
    wait(waiting, at, callers, names);
  }
  return finishTree(builder);
}

function gather(groups, frame, what) {
  const group = groups.get(frame);
  if (group) {
    group.push(what);
  } else {
    groups.set(frame, [what]);
  }
}

// The last one is taken first, so the last by name is the first to wait.
function wait(waiting, parent, groups, names) {
  const frames = Array.from(groups.keys());
  if (frames.length > 1) {
    frames.sort((a, b) => (names[a] < names[b] ? 1 : names[a] > names[b] ? -1 : b - a));
  }
  for (const frame of frames) {
    waiting.push({ parent, frame, nodes: groups.get(frame) });
  }
}

// Self and total of each function; recursion counts once in a stack.
function functionSums(tree, frames) {
  const self = new Float64Array(frames);
  const total = new Float64Array(frames);
  const above = new Uint32Array(frames);
  const stack = [];
  for (let i = 0; i < tree.count; i += 1) {
    while (stack.length > 0 && tree.end[stack[stack.length - 1]] <= i) {
      above[tree.frame[stack.pop()]] -= 1;
    }
    const frame = tree.frame[i];
    self[frame] += tree.self[i];
    if (above[frame] === 0) {
      total[frame] += tree.total[i];
    }
    above[frame] += 1;
    stack.push(i);
  }
  return { self, total };
}
