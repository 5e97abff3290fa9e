// Colours of frames, the same as in SVG files, and the legend.
//
// In: frames, what the threads did, and what colours are to tell. Out: a colour for each frame, on which black text has a
// contrast of 4.5 or more, also where dark mode dims it.

const MARK_COLOR = [166, 166, 162];
// What ran, what could have run, what was blocked.
const STATE_COLORS = [[235, 190, 120], [160, 210, 90], [150, 180, 220]];
const ROOT_COLOR = [232, 232, 232];

const KIND_LABELS = {
  [KIND.process]: 'process, thread',
  [KIND.label]: 'process, thread',
  [KIND.user]: 'program',
  [KIND.jit]: 'JIT',
  [KIND.inlined]: 'inlined',
  [KIND.kernel]: 'kernel',
  [KIND.mark]: 'mark',
  [KIND.ran]: 'on a CPU',
  [KIND.runnable]: 'waiting for a CPU',
  [KIND.blocked]: 'blocked',
  [KIND.interpreted]: 'runtime',
};

const kindLabel = (kind) => KIND_LABELS[Math.min(kind, KIND.interpreted)];

// Hue, by how much it varies, saturation and lightness.
const TINTS = {
  [KIND.process]: [46, 6, 34, 76],
  [KIND.label]: [46, 6, 34, 76],
  [KIND.user]: [28, 14, 88, 66],
  [KIND.jit]: [112, 12, 52, 64],
  [KIND.inlined]: [284, 12, 58, 78],
  [KIND.kernel]: [207, 9, 72, 70],
  [KIND.interpreted]: [166, 8, 46, 62],
};
const COLD_TINTS = { [KIND.kernel]: [214, 6, 62, 66] };
const COLD_TINT = [196, 8, 55, 76];
const WARM_TINTS = { [KIND.kernel]: [24, 6, 68, 60] };
const WARM_TINT = [34, 12, 88, 66];

function fromHsl(hue, saturation, lightness) {
  const chroma = saturation * Math.min(lightness, 1 - lightness);
  const channel = (n) => {
    const k = (n + (((hue % 360) + 360) % 360) / 30) % 12;
    return Math.round((lightness - chroma * Math.max(-1, Math.min(k - 3, 9 - k, 1))) * 255);
  };
  return [channel(0), channel(8), channel(4)];
}

// How bright a colour looks, from 0 to 1.
function luminance(color) {
  const [r, g, b] = color.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// The colour, or as much lighter as black text on it demands.
function readable(color) {
  for (let part = 0; part < 20; part += 1) {
    const lighter = color.map((c) => c + Math.floor((255 - c) * part / 20));
    if (luminance(lighter) >= 0.3) {
      return lighter;
    }
  }
  return [255, 255, 255];
}

// Two numbers from -1 to 1 that are always the same for a name: 32 bits of FNV-1a are all that is needed of it.
function spreadOf(text) {
  let hash = 0x84222325;
  for (const byte of new TextEncoder().encode(text)) {
    hash = Math.imul(hash ^ byte, 0x1b3);
  }
  return [((hash >>> 24) & 255) / 127.5 - 1, ((hash >>> 16) & 255) / 127.5 - 1];
}

function tint(name, [hue, spread, saturation, lightness]) {
  const [shade, turn] = spreadOf(name);
  return fromHsl(hue + turn * spread, saturation / 100, lightness / 100 + shade * 0.07);
}

// The colours of all frames. `by` is `kind`, `module` or `state`; the latter needs how much of each frame's weight is of
// which state.
function frameColors(frames, by, activity, shares) {
  return frames.name.map((name, i) => {
    const kind = frames.kind[i];
    if (kind === KIND.root) {
      return ROOT_COLOR;
    }
    if (isMark(kind)) {
      return readable(kind === KIND.mark ? MARK_COLOR : STATE_COLORS[kind - KIND.ran]);
    }
    if (by === 'module' && frames.module[i] !== '') {
      return readable(moduleColor(frames.module[i]));
    }
    const own = name + (SUFFIXES[kind] || '');
    if (by === 'state') {
      return readable(mixed(own, kind, shares, i));
    }
    const tints = activity === 'waiting' ? COLD_TINTS[kind] || COLD_TINT : TINTS[Math.min(kind, KIND.interpreted)];
    return readable(tint(by === 'module' ? '' : own, tints));
  });
}

function moduleColor(module) {
  const [shade, turn] = spreadOf(module);
  return fromHsl(turn * 180, 0.55, 0.68 + shade * 0.06);
}

// Warm as far as threads ran, cold as far as they were blocked, green as far as they waited for a CPU.
function mixed(name, kind, shares, i) {
  const own = [tint(name, WARM_TINTS[kind] || WARM_TINT), STATE_COLORS[1], tint(name, COLD_TINTS[kind] || COLD_TINT)];
  const all = shares[0][i] + shares[1][i] + shares[2][i];
  const part = (state) => (all > 0 ? shares[state][i] / all : state === 0 ? 1 : 0);
  return [0, 1, 2].map((c) => Math.round(own[0][c] * part(0) + own[1][c] * part(1) + own[2][c] * part(2)));
}

// What colours mean in a tree: a label and a colour for each meaning that occurs.
function legendOf(tree, frames, colors, by) {
  const seen = new Map();
  const note = (label, color) => {
    if (!seen.has(label)) {
      seen.set(label, color);
    }
  };
  if (by === 'state') {
    ['on a CPU', 'waiting for a CPU', 'blocked'].forEach((label, i) => note(label, css(STATE_COLORS[i])));
    return seen;
  }
  const used = new Float64Array(frames.name.length);
  for (let i = 0; i < tree.count; i += 1) {
    used[tree.frame[i]] += tree.self[i] + 1;
  }
  const order = Array.from(used.keys()).filter((i) => used[i] > 0 && frames.kind[i] !== KIND.root);
  if (by === 'module') {
    order.sort((a, b) => used[b] - used[a]);
    for (const i of order) {
      if (seen.size < 12 && frames.module[i] !== '') {
        note(frames.module[i], colors[i]);
      }
    }
    return seen;
  }
  const labels = Object.values(KIND_LABELS);
  const label = (i) => kindLabel(frames.kind[i]);
  order.sort((a, b) => labels.indexOf(label(a)) - labels.indexOf(label(b)) || used[b] - used[a]);
  for (const i of order) {
    note(label(i), colors[i]);
  }
  return seen;
}

function css(color) {
  return 'rgb(' + color.join(',') + ')';
}
