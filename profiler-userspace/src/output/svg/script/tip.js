// Box beside the pointer: all about the frame below it.
//
// In: a frame, and where the pointer is. Out: a box in `bars.tip` that is in view.

const TIP_GAP = 14;

function hideTip() {
  bars.tip.setAttribute('visibility', 'hidden');
}

// Self of a frame: in a flame chart lengths are times, and this is what is left of what was counted.
function selfOf(node) {
  let own = graph.weight[node];
  for (let child = node + 1; child !== graph.end[node]; child = graph.end[child]) {
    own -= graph.weight[child];
  }
  return own;
}

function amountOf(weight) {
  const noun = weight === 1 ? graph.noun.replace(/(...)s$/, '$1') : graph.noun;
  return grouped(weight) + ' ' + noun + ', ' + percent(weight, graph.weight[0]) + ' of all';
}

// What a frame is and where its code is, as far as that is known: pairs of a label and a text.
function originOf(node) {
  const name = graph.name[node];
  const entry = graph.legend[graph.entry[name] - 1];
  const all = [['kind', entry ? entry.label : ''], ['module', graph.origin[name][0]], ['file', graph.origin[name][1]]];
  return node === 0 ? [] : all.filter(function (pair) {
    return Boolean(pair[1]);
  });
}

function tipLines(node) {
  const name = graph.name[node];
  const lines = [];
  if (graph.notes[name] || graph.rests.has(node)) {
    return [bars.numbers.textContent];
  }
  lines.push('self: ' + amountOf(selfOf(node)));
  const weight = graph.weight[node];
  const part = Math.min(weight, graph.weight[view.zoom]);
  const ofZoomed = view.zoom === 0 ? '' : ', ' + percent(part, graph.weight[view.zoom]) + ' of zoomed';
  lines.push('total: ' + amountOf(weight) + ofZoomed);
  for (const pair of originOf(node)) {
    lines.push(pair[0] + ': ' + pair[1]);
  }
  return lines;
}

// `x` and `y` in lengths of the picture.
function showTip(node, x, y) {
  if (node === -1) {
    hideTip();
    return;
  }
  const box = bars.tipBox;
  if (bars.tipOf !== node || bars.tipZoom !== view.zoom) {
    bars.tipOf = node;
    bars.tipZoom = view.zoom;
    box.replaceChildren();
    html(box, 'div', 'fg-tip-name', graph.names[graph.name[node]]);
    for (const line of tipLines(node)) {
      html(box, 'div', 'fg-tip-line', line);
    }
  }
  bars.tip.setAttribute('width', Math.min(520, view.width));
  bars.tip.setAttribute('height', 400);
  const width = box.offsetWidth;
  const height = box.offsetHeight;
  const part = seen();
  const right = x + TIP_GAP + width;
  const below = y + TIP_GAP + height;
  bars.tip.setAttribute('x', less(view.width, right) ? Math.max(0, x - TIP_GAP - width) : x + TIP_GAP);
  bars.tip.setAttribute('y', less(part.bottom, below) ? Math.max(part.top, y - TIP_GAP - height) : y + TIP_GAP);
  bars.tip.setAttribute('visibility', 'visible');
}
