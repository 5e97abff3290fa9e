// Names and numbers as text.
//
// In: names, weights, times. Out: text, as much of it as there is room for.

function grouped(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',');
}

function percent(part, all) {
  return all > 0 ? (100 * part / all).toFixed(2) + '%' : '0.00%';
}

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

// A weight with its unit.
function weightText(value, unit) {
  return unit === 'nanoseconds' ? duration(value) : grouped(value) + ' ' + unit;
}

// A name in so many characters: whole, or without template arguments, or without its middle.
function fit(name, room) {
  if (room < 3) {
    return '';
  }
  if (/[\u1100-\u{10ffff}]/u.test(name)) {
    // Characters that are two columns wide.
    return fitChars(Array.from(name), Math.floor(room / 2));
  }
  if (name.length <= room) {
    return name;
  }
  const short = withoutArguments(name);
  if (short.length <= room) {
    return short;
  }
  return fitChars(Array.from(short), room);
}

function fitChars(chars, room) {
  if (chars.length <= room) {
    return chars.join('');
  }
  if (room < 2) {
    return '';
  }
  const head = room < 8 ? room - 1 : Math.floor((room - 1) / 3);
  const tail = room - 1 - head;
  return chars.slice(0, head).join('') + '…' + (tail > 0 ? chars.slice(-tail).join('') : '');
}

// Leaves out what stands in angle brackets and parentheses, unless the name begins with it or they do not match.
function withoutArguments(name) {
  let short = '';
  let depth = 0;
  for (let i = 0; i < name.length; i += 1) {
    const c = name[i];
    const isArrow = c === '>' && name[i - 1] === '-';
    const isOperator = depth === 0 && /operator[<>()=-]*$/.test(short) && '<>()=-'.includes(c);
    if ('<('.includes(c) && i > 0 && !isOperator) {
      depth += 1;
    } else if ('>)'.includes(c) && depth > 0 && !isArrow) {
      depth -= 1;
    } else if (depth === 0) {
      short += c;
    }
  }
  return depth === 0 && short.length > 2 ? short : name;
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
