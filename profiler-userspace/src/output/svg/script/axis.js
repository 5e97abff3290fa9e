// Below the frames of a flame chart: how much was counted when, and times; the same as `axis.rs`, for a zoom.
//
// In: `graph` and `view`. Out: elements in `bars.axis`.

const BARS_HEIGHT = 20;

function clock(ns) {
  return (ns / 1e9).toFixed(3) + ' s';
}

// The windows that a frame is in: from when to when they are, and what was counted in them.
function around(node) {
  const left = graph.left[node];
  const right = left + graph.total[node];
  const found = { start: left, end: right, weight: 0 };
  let first = true;
  for (const span of graph.windows) {
    if (less(left, span.end) ? less(span.start, right) : false) {
      found.start = first ? span.start : found.start;
      found.end = span.end;
      found.weight += span.weight;
      first = false;
    }
  }
  return found;
}

function drawAxis() {
  if (!graph.chart) {
    return;
  }
  bars.axis.replaceChildren();
  bars.axis.setAttribute('width', view.width);
  const begin = view.from;
  const end = begin + view.length;
  const place = function (time) {
    return PAD + (time - begin) * view.scale;
  };
  const rate = function (span) {
    return span.weight / (span.end - span.start);
  };
  const most = Math.max.apply(null, graph.windows.map(rate)) || 1;
  // Points are no property that the rules for bars reset.
  const points = [rounded(PAD) + ',' + BARS_HEIGHT];
  for (const span of graph.windows) {
    if (less(begin, span.end) ? less(span.start, end) : false) {
      const left = rounded(place(Math.max(span.start, begin)));
      const right = rounded(place(Math.min(span.end, end)));
      const top = rounded(BARS_HEIGHT - rate(span) / most * BARS_HEIGHT);
      points.push(left + ',' + BARS_HEIGHT, left + ',' + top, right + ',' + top, right + ',' + BARS_HEIGHT);
    }
  }
  svgElement(bars.axis, 'polygon', { 'class': 'fg-activity', points: points.join(' ') });
  // Times stand where windows begin and end: within a window nothing has one.
  let last = null;
  for (const span of graph.windows) {
    for (const time of [span.start, span.end]) {
      const isInside = less(time, begin) ? false : !less(end, time);
      const hasRoom = last === null ? true : !less((time - last) * view.scale, 90);
      if (isInside ? hasRoom : false) {
        last = time;
        const x = Math.max(PAD + 20, Math.min(view.width - PAD - 20, place(time)));
        const text = svgElement(bars.axis, 'text', { x: rounded(x), y: 33, 'class': 'fg-time', 'text-anchor': 'middle' });
        text.textContent = (time / 1e9).toFixed(2) + ' s';
      }
    }
  }
}
