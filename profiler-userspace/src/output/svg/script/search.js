// Search: which frames match, how much of what is shown that is, and the way from one match to the next.
//
// In: what was typed. Out: marks in the picture, and what `bars.found` says.

const MATCH = '#ff5cff';

function search(text) {
  view.query = text;
  view.hits = null;
  view.matches = [];
  view.match = -1;
  const { expression, error } = compileSearch(text);
  view.wrong = error;
  if (expression) {
    view.hits = new Uint8Array(graph.names.length);
    graph.names.forEach(function (name, i) {
      view.hits[i] = expression.test(name) ? 1 : 0;
    });
    // The root stands for all; its name is ours.
    view.hits[0] = 0;
    view.matches = matches();
  }
  draw();
  report();
}

// How much of a frame's weight has a match in its stack, from the frame on.
function matchedIn(node) {
  let sum = 0;
  let i = node;
  while (i !== graph.end[node]) {
    if (view.hits[graph.name[i]] === 1) {
      sum += graph.weight[i];
      i = graph.end[i];
    } else {
      i += 1;
    }
  }
  return sum;
}

// All frames that match, the widest first.
function matches() {
  const list = [];
  for (let i = 1; i !== graph.count; i += 1) {
    if (view.hits[graph.name[i]] === 1) {
      list.push(i);
    }
  }
  return list.sort(function (a, b) {
    return graph.total[b] - graph.total[a] || a - b;
  });
}

// Says what was found.
function report() {
  bars.found.className = view.wrong ? 'fg-found fg-lost' : 'fg-found';
  if (!view.hits) {
    bars.found.textContent = view.wrong;
    return;
  }
  const list = view.matches;
  if (list.length === 0) {
    bars.found.textContent = 'No frame matches' + inRests();
    return;
  }
  const number = list.indexOf(view.match) + 1;
  let text = 'Matched ' + percent(matchedIn(0), graph.weight[0]) + ' of all';
  if (view.zoom !== 0) {
    text += ', ' + percent(matchedIn(view.zoom), graph.weight[view.zoom]) + ' of zoomed';
  }
  text += ', ' + (number ? grouped(number) + ' of ' : '') + grouped(list.length) + (list.length === 1 ? ' frame' : ' frames');
  bars.found.textContent = text + inRests();
}

// How much more may match in frames that are not in the file.
function inRests() {
  let sum = 0;
  graph.hidden.forEach(function (weight, name) {
    sum += view.hits[name] === 1 ? weight : 0;
  });
  let text = sum === 0 ? '' : ', and at most ' + percent(sum, graph.weight[0]) + ' in narrow frames';
  if (graph.unsearched !== 0) {
    text += '; ' + grouped(graph.unsearched) + ' names of these were not searched';
  }
  return text;
}

// Shows the next match, or the one before: zooms out if it is elsewhere, and in if it is too narrow to be seen.
function goToMatch(step) {
  const list = view.matches;
  if (list.length === 0) {
    return;
  }
  const now = list.indexOf(view.match);
  const next = now === -1 ? (step === 1 ? 0 : list.length - 1) : (now + step + list.length) % list.length;
  const node = list[next];
  const wide = 24;
  let zoom = view.zoom;
  if (!isAncestor(zoom, node)) {
    zoom = 0;
  }
  const inner = view.width - 2 * PAD;
  if (less(graph.total[node] / graph.total[zoom] * inner, wide)) {
    let inside = node;
    while (inside !== zoom ? !less(graph.total[node] / graph.total[graph.parent[inside]] * inner, wide) : false) {
      inside = graph.parent[inside];
    }
    zoom = inside;
  }
  view.match = node;
  if (zoom !== view.zoom) {
    zoomTo(zoom);
  }
  view.pointed = node;
  showPointed();
  reveal(node);
  report();
}
