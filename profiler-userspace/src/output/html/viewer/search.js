// Search: which functions match, how much of what is shown that is, and the way from one match to the next.
//
// In: what was typed, trees. Out: a mark for each function, sums, matches in order.

// For each frame whether its name matches. The root stands for all; its name is ours.
function hitsOf(frames, expression) {
  if (!expression) {
    return null;
  }
  return Uint8Array.from(frames.name, (name, i) => (i > 0 && expression.test(name) ? 1 : 0));
}

// How much of a frame's weight has a match in its stack, from the frame on.
function matchedWeight(tree, node, hits) {
  let sum = 0;
  let i = node;
  while (i < tree.end[node]) {
    if (hits[tree.frame[i]] === 1) {
      sum += (tree.weight || tree.total)[i];
      i = tree.end[i];
    } else {
      i += 1;
    }
  }
  return sum;
}

// How much of everything that was recorded matches in frames that are not in the file, at most.
function hiddenWeight(frames, hits) {
  return frames.hidden.reduce((sum, weight, frame) => sum + (hits[frame] === 1 ? weight : 0), 0);
}

// All matches, part by part, from left to right. The shared row of later parts is that of the first.
function matchesIn(parts, hits) {
  const found = [];
  parts.forEach(({ tree }, part) => {
    for (let node = part === 0 ? 0 : 1; node < tree.count; node += 1) {
      if (hits[tree.frame[node]] === 1) {
        found.push({ part, node });
      }
    }
  });
  return found;
}

// What to zoom to so that a match is at least so many pixels wide: what is zoomed already, if that will do.
function zoomFor(graph, match, least) {
  const { tree } = graph.parts[match.part];
  let zoom = graph.zoom;
  if (zoom.part !== match.part || !graph.isInside(tree, zoom.node, match.node)) {
    zoom = { part: match.part, node: 0 };
  }
  const isWide = (node) => tree.total[match.node] / tree.total[node] * graph.width >= least;
  if (isWide(zoom.node)) {
    return zoom;
  }
  let inside = match.node;
  while (inside !== zoom.node && isWide(tree.parent[inside])) {
    inside = tree.parent[inside];
  }
  return { part: match.part, node: inside };
}

// Keeps what is searched for in what a graph shows.
function makeFinder(graph) {
  let error = '';
  let matches = null;
  let match = -1;

  // Another text, or other trees: matches are sought again when they are asked for.
  function search(text, frames) {
    const compiled = compileSearch(text);
    error = compiled.error;
    graph.hits = hitsOf(frames, compiled.expression);
    matches = null;
    match = -1;
  }

  function all() {
    matches = matches || (graph.hits ? matchesIn(graph.parts, graph.hits) : []);
    return matches;
  }

  // What was found in the whole tree, and in what is zoomed.
  function report(whole) {
    if (!graph.hits) {
      return error;
    }
    const hidden = hiddenWeight(graph.frames, graph.hits);
    const inRests = hidden === 0 ? '' : ', and at most ' + percent(hidden, whole.total[0]) + ' in narrow frames';
    if (all().length === 0) {
      return 'No frame matches' + inRests;
    }
    const { part, node } = graph.zoom;
    const { tree } = graph.parts[part];
    let text = 'Matched ' + percent(matchedWeight(whole, 0, graph.hits), whole.total[0]) + ' of all';
    if (node > 0) {
      text += ', ' + percent(matchedWeight(tree, node, graph.hits), (tree.weight || tree.total)[node]) + ' of zoomed';
    }
    const place = match === -1 ? '' : grouped(match + 1) + ' of ';
    return text + ', ' + place + grouped(all().length) + (all().length === 1 ? ' frame' : ' frames') + inRests;
  }

  // Shows the next match, or the one before.
  function go(step) {
    const list = all();
    if (list.length === 0) {
      return;
    }
    match = match === -1 ? (step > 0 ? 0 : list.length - 1) : (match + step + list.length) % list.length;
    const target = list[match];
    const zoom = zoomFor(graph, target, 24);
    if (zoom.part !== graph.zoom.part || zoom.node !== graph.zoom.node) {
      graph.zoomTo(zoom);
    }
    graph.point(target);
    graph.reveal(target);
  }

  return { search, report, go, isWrong: () => error !== '' };
}
