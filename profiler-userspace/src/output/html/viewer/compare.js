// Two ranges of one recording, compared with the statistics of `flame-bpf diff`.
//
// In: a profile, what each sample weighs, two ranges of windows. Out: what everything came to for each second, and for each
// function its share of both, the difference, between what that lies, and whether it is noise. What is drawn at random is a
// window with all its samples; the largest variance over all lengths of windows counts, and never less than independent
// samples would have. Of waits, which have heavy tails, nothing is claimed here.

const LEAST_WINDOWS = 10;
const LEAST_SAMPLES = 10;
const ALPHA = 0.05;

// Neighbours put together. What is left at the end is a group if it is at least half of one.
function groupsOf(base, together) {
  const groups = [];
  for (let start = 0; start < base.length; start += together) {
    const end = Math.min(start + together, base.length);
    let sum = 0;
    for (let i = start; i < end; i += 1) {
      sum += base[i];
    }
    const last = groups[groups.length - 1];
    if (last && (end - start) * 2 < together) {
      last.end = end;
      last.base += sum;
    } else {
      groups.push({ start, end, base: sum });
    }
  }
  return groups.filter((group) => group.base > 0);
}

// One side: what each window's values are divided by.
function seriesOf(base, samples) {
  const lengths = [];
  for (let together = 1; ; together *= 2) {
    const groups = groupsOf(base, together);
    if (together > 1 && groups.length < LEAST_WINDOWS) {
      break;
    }
    lengths.push(groups);
  }
  const total = base.reduce((a, b) => a + b, 0);
  return { lengths, samples, total, varies: base.filter((value) => value > 0).length >= LEAST_WINDOWS };
}

// The variance of a ratio when groups are what is drawn.
function ratioOf(groups, values) {
  const count = groups.length;
  if (count < 2) {
    return null;
  }
  const sums = groups.map(({ start, end }) => {
    let sum = 0;
    for (let i = start; i < end; i += 1) {
      sum += values[i];
    }
    return sum;
  });
  const base = groups.reduce((sum, group) => sum + group.base, 0);
  const ratio = sums.reduce((a, b) => a + b, 0) / base;
  const squares = groups.reduce((sum, group, i) => sum + (sums[i] - ratio * group.base) ** 2, 0);
  return { variance: squares * count / (count - 1) / (base * base), freedom: count - 1 };
}

function widestRatio(series, values, floor) {
  let widest = null;
  for (const groups of series.lengths) {
    const ratio = ratioOf(groups, values);
    if (ratio && (!widest || ratio.variance >= widest.variance)) {
      widest = ratio;
    }
  }
  return widest ? { variance: Math.max(widest.variance, floor), freedom: widest.freedom } : { variance: floor, freedom: 1 };
}

// The change of a thing whose weights by window these are.
function estimateOf(sides, isShare, values, samples) {
  const sums = values.map((own) => own.reduce((a, b) => a + b, 0));
  const totals = sides.map((side) => side.total || Number.MIN_VALUE);
  const pooled = (sums[0] + sums[1]) / (totals[0] + totals[1]);
  const usual = (sums[0] + sums[1]) / Math.max(1, samples[0] + samples[1]);
  const parts = sides.map((side, i) => {
    const floor = isShare ? Math.max(0, pooled * (1 - pooled)) / Math.max(1, side.samples) : pooled * usual / totals[i];
    return widestRatio(side, values[i], floor);
  });
  const variance = parts[0].variance + parts[1].variance;
  const doubt = parts.reduce((sum, part) => sum + part.variance ** 2 / part.freedom, 0);
  return {
    values: sums.map((sum, i) => sum / totals[i]),
    error: Math.sqrt(variance),
    freedom: doubt > 0 ? variance ** 2 / doubt : parts[0].freedom + parts[1].freedom,
  };
}

function pOf({ values, error, freedom }) {
  const change = values[1] - values[0];
  if (change === 0) {
    return 1;
  }
  return error > 0 ? twoSided(change / error, freedom) : 0;
}

// How probable a value at least so far from zero is, by Student's distribution.
function twoSided(t, freedom) {
  const n = Math.min(1e6, Math.max(1, freedom));
  return Math.min(1, betaPart(n / (n + t * t), n / 2, 0.5));
}

// How far from zero the middle of the distribution ends that leaves out `alpha`.
function quantileOf(alpha, freedom) {
  let low = 0;
  let high = 1;
  while (twoSided(high, freedom) > alpha) {
    high *= 2;
  }
  for (let step = 0; step < 80; step += 1) {
    const middle = (low + high) / 2;
    if (twoSided(middle, freedom) > alpha) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}

function logGamma(x) {
  // Stirling's series, from where it is precise.
  let shift = 0;
  let at = x;
  while (at < 10) {
    shift += Math.log(at);
    at += 1;
  }
  const square = at * at;
  const series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / at;
  return (at - 0.5) * Math.log(at) - at + 0.5 * Math.log(2 * Math.PI) + series - shift;
}

// The regularized incomplete beta function, as a continued fraction on the side on which that converges.
function betaPart(x, a, b) {
  if (x <= 0 || x >= 1) {
    return x <= 0 ? 0 : 1;
  }
  if (x > (a + 1) / (a + b + 2)) {
    return 1 - betaPart(1 - x, b, a);
  }
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  const tiny = 1e-300;
  const least = (value) => (Math.abs(value) < tiny ? tiny : value);
  let fraction = 1;
  let up = 1;
  let down = 0;
  for (let i = 0; i <= 2000; i += 1) {
    const m = Math.floor(i / 2);
    let term = 1;
    if (i > 0 && i % 2 === 0) {
      term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    } else if (i > 0) {
      term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    }
    down = 1 / least(1 + term * down);
    up = least(1 + term / up);
    fraction *= up * down;
    if (Math.abs(up * down - 1) < 1e-14) {
      break;
    }
  }
  return front * (fraction - 1);
}

// Which of many tests are no noise, after Benjamini and Hochberg.
function significantOf(p) {
  const order = Array.from(p.keys()).sort((a, b) => p[a] - p[b]);
  let found = 0;
  order.forEach((test, rank) => {
    if (p[test] <= ALPHA * (rank + 1) / p.length) {
      found = rank + 1;
    }
  });
  const significant = new Set(order.slice(0, found));
  return { significant, alpha: found === 0 ? ALPHA : ALPHA * found / p.length };
}

// Weights by side and window of all functions, by themselves and with what they called.
function rowsOf(profile, values, ranges) {
  const { samples, nodes } = profile;
  const lengths = ranges.map(([first, last]) => last - first + 1);
  const row = () => ({ values: lengths.map((length) => new Float64Array(length)), samples: [0, 0] });
  const rows = { self: new Map(), total: new Map(), all: row() };
  const add = (map, frame, side, window, i) => {
    if (!map.has(frame)) {
      map.set(frame, row());
    }
    map.get(frame).values[side][window] += values[i];
    map.get(frame).samples[side] += samples.counts[i];
  };
  const { kind } = profile.frames;
  const isFunction = (frame) => !isMark(kind[frame]) && kind[frame] > KIND.label;
  for (let i = 0; i < samples.count; i += 1) {
    const side = ranges.findIndex(([first, last]) => samples.window[i] >= first && samples.window[i] <= last);
    if (side === -1 || values[i] === 0) {
      continue;
    }
    const window = samples.window[i] - ranges[side][0];
    rows.all.values[side][window] += values[i];
    rows.all.samples[side] += samples.counts[i];
    const met = new Set();
    for (let node = samples.node[i]; node > 0; node = nodes.parent[node]) {
      const frame = nodes.frame[node];
      if (isFunction(frame) && !met.has(frame)) {
        if (met.size === 0) {
          add(rows.self, frame, side, window, i);
        }
        met.add(frame);
        add(rows.total, frame, side, window, i);
      }
    }
  }
  return rows;
}

function verdictOf(isFound, [before, after], change) {
  if (!isFound) {
    return 'noise';
  }
  return before === 0 ? 'new' : after === 0 ? 'gone' : change > 0 ? 'more' : 'less';
}

function compareRanges(profile, values, ranges) {
  const rows = rowsOf(profile, values, ranges);
  const isWait = profile.activity !== 'running';
  const shares = rows.all.values.map((base, i) => seriesOf(Array.from(base), rows.all.samples[i]));
  const claims = !isWait && shares.every((side) => side.varies);
  const functions = {};
  for (const part of ['self', 'total']) {
    const all = Array.from(rows[part], ([frame, row]) => (
      { frame, samples: row.samples, ...estimateOf(shares, true, row.values, row.samples) }
    ));
    const tested = all.filter(({ samples }) => samples[0] + samples[1] >= LEAST_SAMPLES);
    const { significant, alpha } = significantOf(tested.map(pOf));
    const found = new Set(Array.from(significant, (test) => tested[test]));
    const isTested = new Set(tested);
    functions[part] = all.map((own) => {
      const change = own.values[1] - own.values[0];
      const half = quantileOf(found.has(own) ? alpha : ALPHA, own.freedom) * own.error;
      const verdict = !claims ? 'no claim' : isTested.has(own) ? verdictOf(found.has(own), own.samples, change) : 'few samples';
      return { ...own, change, low: change - half, high: change + half, verdict };
    });
    const rank = { 'no claim': 1, noise: 2, 'few samples': 3 };
    functions[part].sort((a, b) => (
      (rank[a.verdict] || 0) - (rank[b.verdict] || 0) || Math.abs(b.change) - Math.abs(a.change) || a.frame - b.frame
    ));
  }
  return { whole: wholeOf(profile, rows.all, ranges, claims), functions, claims, isWait };
}

// Everything for each second. What was lost is made up for.
function wholeOf(profile, all, ranges, claims) {
  const seconds = ranges.map(([first, last]) => (
    profile.windows.slice(first, last + 1).map(([start, end]) => (end - start) / 1e9)
  ));
  const factor = ([, , firings, filtered, lost]) => {
    const wanted = firings - filtered;
    return profile.unit !== 'nanoseconds' && wanted > lost ? wanted / (wanted - lost) : 1;
  };
  const period = profile.unit === 'nanoseconds' ? 1 : profile.period || 1;
  const values = all.values.map((own, side) => (
    Array.from(own, (value, i) => value * period * factor(profile.windows[ranges[side][0] + i]))
  ));
  const sides = seconds.map((base, side) => seriesOf(base, all.samples[side]));
  const estimate = estimateOf(sides, false, values, all.samples);
  const change = estimate.values[1] - estimate.values[0];
  const half = quantileOf(ALPHA, estimate.freedom) * estimate.error;
  const before = estimate.values[0];
  return {
    values: estimate.values,
    isTime: profile.unit === 'nanoseconds' || Boolean(profile.period),
    relative: before > 0 ? [change, change - half, change + half].map((value) => value / before) : null,
    isNoise: claims ? pOf(estimate) >= ALPHA : null,
  };
}

function verdictText({ values, isTime, relative, isNoise }, unit) {
  const rate = (value) => (isTime ? (value / 1e6).toFixed(1) + ' ms/s' : grouped(value) + ' ' + unit + '/s');
  let text = (isTime ? 'CPU time: ' : '') + rate(values[0]) + ' before, ' + rate(values[1]) + ' after';
  if (relative) {
    const [change, low, high] = relative.map(points);
    text += ': ' + change + '%' + (isNoise === null ? '' : ' (' + low + ' to ' + high + '%)');
  }
  return text + (isNoise === null ? '; whether that is noise is not known.' : isNoise ? ', which is noise.' : ', beyond noise.');
}
