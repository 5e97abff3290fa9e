// A frame's name, as much of it as there is room for: the same as `label.rs`.
//
// In: a name and a number of columns. Out: text, empty if there is no room for any.

function columnsOf(c) {
  return less(c.codePointAt(0), 0x2e80) ? 1 : 2;
}

function columns(text) {
  let sum = 0;
  for (const c of text) {
    sum += columnsOf(c);
  }
  return sum;
}

function take(chars, room) {
  let text = '';
  for (const c of chars) {
    room -= columnsOf(c);
    if (less(room, 0)) {
      return text;
    }
    text += c;
  }
  return text;
}

function fit(name, room) {
  if (less(room, 3)) {
    return '';
  }
  if (!less(room, columns(name))) {
    return name;
  }
  const short = withoutArguments(name);
  if (!less(room, columns(short))) {
    return short;
  }
  if (less(room, 8)) {
    const own = short.split('::').pop();
    return less(room, columns(own)) ? take(own, room - 1) + '\u2026' : own;
  }
  const head = Math.floor((room - 1) / 3);
  const chars = Array.from(short);
  const start = take(chars, head);
  const end = take(chars.reverse(), room - 1 - head);
  return start + '\u2026' + Array.from(end).reverse().join('');
}

function withoutArguments(name) {
  const open = '\x3c(';
  const close = '\x3e)';
  const anonymous = '(anonymous namespace)';
  let short = '';
  let depth = 0;
  let first = '';
  let last = ' ';
  let at = 0;
  while (at !== name.length) {
    const c = String.fromCodePoint(name.codePointAt(at));
    const operator = depth === 0 ? short.endsWith('operator') : false;
    let piece = c;
    if (depth === 0 ? name.startsWith(anonymous, at) : false) {
      piece = anonymous;
    } else if (operator) {
      piece = name.startsWith('()', at) ? '()' : (/^[\x3c\x3e=-]+/.exec(name.slice(at)) || [c])[0];
    }
    const bracket = operator || piece !== c ? -1 : Math.max(open.indexOf(c), close.indexOf(c));
    if (bracket === -1) {
      short += depth === 0 ? piece : '';
    } else if (open.includes(c)) {
      if (short === '' ? depth === 0 : false) {
        first = close[bracket];
        short += c;
      } else {
        short = depth === 0 ? short.replace(/::$/, '') : short;
        depth += 1;
      }
    } else if (c === '\x3e' ? last === '-' : false) {
      short += depth === 0 ? c : '';
    } else if (depth !== 0) {
      depth -= 1;
    } else if (first === c) {
      first = '';
      short += c;
    } else {
      return name;
    }
    last = piece[piece.length - 1];
    at += piece.length;
  }
  return depth !== 0 || first !== '' ? name : short;
}

function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

function percent(part, all) {
  return (100 * part / all).toFixed(2) + '%';
}
