// Frames that runtimes run, alone: interpreted and JIT-compiled functions.
//
// In: a profile. Out: the same profile with other nodes and samples: native and kernel time is that of the innermost
// function that a runtime runs, and samples without one are not there. Whose samples are and when they were stays.

const isOfRuntime = (kind) => kind === KIND.jit || kind >= KIND.interpreted;

// Whether a profile has any.
function hasRuntimes(profile) {
  return profile.frames.kind.some(isOfRuntime);
}

function runtimeProfile(profile) {
  const { nodes, frames } = profile;
  // For each node that of the new tree, 0 outside of all runtimes, and whether a runtime runs it.
  const place = new Uint32Array(nodes.count);
  const isRun = new Uint8Array(nodes.count);
  const kept = newNodes();
  const known = new Map();
  for (let i = 1; i < nodes.count; i += 1) {
    const above = nodes.parent[i];
    const kind = frames.kind[nodes.frame[i]];
    const isState = kind >= KIND.ran && kind <= KIND.blocked;
    isRun[i] = isOfRuntime(kind) || (kind === KIND.inlined && isRun[above]) ? 1 : 0;
    place[i] = place[above];
    if (isRun[i] || (isState && place[above] > 0)) {
      place[i] = childOf(kept, known, place[above], nodes.frame[i]);
    }
  }
  return withNodes(profile, kept, place, (node) => place[node] > 0);
}

// Nodes to be, of which there is the root.
function newNodes() {
  return { parent: [-1], frame: [0], called: [[]] };
}

// The profile with other nodes. `place` tells for each of its own nodes the new one; of others than `isKept` no samples
// are there.
function withNodes(profile, kept, place, isKept) {
  const { frames, samples } = profile;
  const places = inPreorder(kept, frames.name);
  const order = [];
  for (let i = 0; i < samples.count; i += 1) {
    if (isKept(samples.node[i])) {
      order.push(i);
    }
  }
  const nodeOf = (i) => places[place[samples.node[i]]];
  order.sort((a, b) => nodeOf(a) - nodeOf(b) || a - b);
  const column = (values) => Float64Array.from(order, (i) => values[i]);
  const count = kept.frame.length;
  const moved = { count, parent: new Int32Array(count), frame: new Uint32Array(count) };
  for (let i = 0; i < count; i += 1) {
    moved.parent[places[i]] = i === 0 ? -1 : places[kept.parent[i]];
    moved.frame[places[i]] = kept.frame[i];
  }
  return Object.assign({}, profile, {
    nodes: moved,
    samples: {
      count: order.length,
      node: Uint32Array.from(order, nodeOf),
      owner: column(samples.owner),
      state: column(samples.state),
      window: column(samples.window),
      counts: column(samples.counts),
      weights: column(samples.weights),
    },
  });
}

// The node of a function that another one called, which is added if it is not there yet.
function childOf(kept, known, parent, frame) {
  const key = parent + ' ' + frame;
  const found = known.get(key);
  if (found !== undefined) {
    return found;
  }
  const child = kept.frame.length;
  known.set(key, child);
  kept.parent.push(parent);
  kept.frame.push(frame);
  kept.called.push([]);
  kept.called[parent].push(child);
  return child;
}

// For each node its place where callers come before what they called, by name.
function inPreorder(kept, names) {
  const places = new Uint32Array(kept.frame.length);
  const waiting = [0];
  let at = 0;
  while (waiting.length > 0) {
    const node = waiting.pop();
    places[node] = at;
    at += 1;
    // The last one is taken first.
    kept.called[node].sort((a, b) => compareNames(names, kept.frame[b], kept.frame[a]));
    waiting.push(...kept.called[node]);
  }
  return places;
}
