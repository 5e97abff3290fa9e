// A name, as much of it as there is room for, and numbers: what SVG files and pages share.
//
// In: a name or a number. Out: text, empty if there is no room for any. The same as `text/label.rs`. SVG files hold no
// character that markup would change, so that comparisons are written out here.

const CUT = '\u2026';
const OPEN = '\x3c(';
const CLOSE = '\x3e)';
const TOKENS = /^(?:\(\)|\x3c\x3e|::|-\x3e)/;
const OPERATOR = /^(?:\(\)|[\x3c\x3e=+*\/%\x26|^!~,[\]-]+)/;
const ADDED = /^(?:(?:isra|constprop|part|cold|lto_priv|llvm|abi0|abiinternal)(?![^.:\/\\-])|(?:func|__lambda)\d*(?![^.:\/\\(-]))/;

function less(a, b) {
  return Math.sign(a - b) === -1;
}

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
  if (!less(room, columns(name))) {
    return name;
  }
  if (less(room, 3)) {
    return '';
  }
  const parts = partsOf(name);
  if (!less(room, columns(parts.text))) {
    return parts.text;
  }
  const shorter = parts.begins.map(function (begin) { return parts.text.slice(begin); });
  const end = shorter.find(function (text) { return less(columns(text), room); });
  if (end !== undefined) {
    return CUT + end;
  }
  return ends(shorter.length === 0 ? parts.text : shorter[shorter.length - 1], room);
}

// Both ends of a text, or its beginning in few columns.
function ends(text, room) {
  if (less(room, 8)) {
    return take(text, room - 1) + CUT;
  }
  const start = take(text, Math.floor((room - 1) / 3)) + CUT;
  const tail = take(Array.from(text).reverse(), room - columns(start));
  return start + Array.from(tail).reverse().join('');
}

// A name without its arguments, and where parts of it begin behind the first. One whose brackets do not match is one part.
function partsOf(name) {
  const whole = { text: name, begins: [] };
  const kept = [];
  const begins = [];
  let out = [];
  let text = '';
  let nested = 0;
  let inType = false;
  let before = ' ';
  let at = 0;
  while (at !== name.length) {
    const rest = name.slice(at);
    const c = String.fromCodePoint(rest.codePointAt(0));
    let token = c;
    if (out.length === 0) {
      token = ((text.endsWith('operator') ? OPERATOR : TOKENS).exec(rest) || [c])[0];
      const open = token === c ? OPEN.indexOf(c) : -1;
      const isOperator = text.endsWith('operator');
      const isArrow = token === '-\x3e' ? !text.endsWith(' ') : false;
      const separates = isArrow ? !isOperator : ['::', '.', '/', '\\'].includes(token);
      if (open !== -1 ? !isOperator : false) {
        const last = text.slice(-1);
        const isNested = last === '\x3c' ? kept.length !== 0 : last === ':' ? c === '(' : false;
        const belongs = isNested || ['', '.', '/'].includes(last);
        text += belongs ? c : c + CUT;
        (belongs ? kept : out).push(CLOSE[open]);
      } else {
        if (CLOSE.includes(token) ? !isOperator : false) {
          if (kept.pop() !== token) {
            return whole;
          }
        }
        nested += token === '[' || token === '{' ? 1 : token === ']' || token === '}' ? -Math.sign(nested) : 0;
        inType = token === '-\x3e' ? inType || (text.endsWith(' ') ? kept.length === 0 : false) : inType;
        text += token;
        inType = text.endsWith(' in ') ? false : inType;
        if (separates ? (inType ? false : kept.length + nested === 0) : false) {
          begins.push(text.length);
        }
      }
    } else if (OPEN.includes(c)) {
      out.push(CLOSE[OPEN.indexOf(c)]);
    } else if (c === ')') {
      const open = out.lastIndexOf(c);
      if (open === -1) {
        return whole;
      }
      out = out.slice(0, open);
      text += open === 0 ? c : '';
    } else if (c === '\x3e' ? before !== '-' : false) {
      if (out[out.length - 1] === c) {
        out.pop();
        text += out.length === 0 ? c : '';
      }
    }
    before = token.slice(-1);
    at += token.length;
  }
  if (kept.length + out.length !== 0) {
    return whole;
  }
  return { text, begins: begins.filter(function (begin) { return isName(text.slice(begin)); }) };
}

// Whether a part can stand alone: not what compilers and languages add to the function before it.
function isName(part) {
  return ADDED.test(part) ? false : /^[\p{L}_(~$@*]/u.test(part);
}

function grouped(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',');
}

const UNITS = {
  '\xb5s': [[1e6, 's'], [1e3, 'ms'], [1, '\xb5s']],
  bytes: [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']],
};

// A number of what a noun names: times and bytes in a unit that suits them. The same as `text/number.rs`.
function amount(number, noun) {
  const units = UNITS[noun];
  if (units === undefined) {
    return ofNoun(number, noun);
  }
  const fits = function (unit) { return less(number, unit[0]) ? false : true; };
  const unit = units.find(fits) || units[units.length - 1];
  const value = number / unit[0];
  const decimals = unit[0] === 1 ? 0 : less(value, 9.995) ? 2 : less(value, 99.95) ? 1 : 0;
  return (decimals === 0 ? grouped(value) : value.toFixed(decimals)) + ' ' + unit[1];
}

const PLURALS = ['samples', 'calls', 'operations', 'waits', 'bytes'];

// Of one in the singular. Names of events stay as they are.
function ofNoun(number, noun) {
  const isOne = number === 1 ? PLURALS.includes(noun) : false;
  return grouped(number) + ' ' + (isOne ? noun.slice(0, -1) : noun);
}

// With the exact number behind it where that is another.
function exactAmount(number, noun) {
  const exact = ofNoun(number, noun);
  const short = amount(number, noun);
  return short === exact ? exact : short + ' (' + exact + ')';
}

function percent(part, all) {
  return all === 0 ? '0.00%' : (100 * part / all).toFixed(2) + '%';
}
