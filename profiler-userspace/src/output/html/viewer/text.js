// Names and numbers as text.
//
// In: names, weights, times. Out: text, as much of it as there is room for.

// A time in nanoseconds, with three digits or more.
function duration(ns) {
  const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
  const [size, unit] = units.find(([size]) => ns >= size) || [1, 'ns'];
  const value = ns / size;
  return value.toFixed(size === 1 || value >= 100 ? 0 : value >= 10 ? 1 : 2) + ' ' + unit;
}

// Seconds since the recording began.
function clock(ns) {
  return (ns / 1e9).toFixed(2) + ' s';
}

// A weight with its unit, exact where that is asked for.
function weightText(value, unit, isExact) {
  const say = isExact ? exactAmount : amount;
  return unit === 'nanoseconds' ? say(value / 1e3, 'µs') : say(value, unit);
}

// A name as a frame of folded text, whose separators it must not hold; the same rules as `fold/name.rs`.
function foldedName(name, kind) {
  if (name === '') {
    return '[unknown]';
  }
  let text = name.replace(/;/g, ':').replace(/^ +| +$/g, (spaces) => '_'.repeat(spaces.length));
  text = text.replace(/ (?=[\d.]*$)/, '_').replace(/^# /, '#_').replace(/^[-#]$/, '[$&]');
  const own = Object.values(SUFFIXES).find((suffix) => text.endsWith(suffix));
  if (own) {
    text = text.slice(0, -own.length) + own.replace('[', '(').replace(']', ')');
  }
  return text + (SUFFIXES[kind] || '');
}
