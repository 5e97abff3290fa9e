'use strict';
/*
 * Two phases that take 70 and 30 percent of the program's time by construction, through functions, callbacks of builtins and calls
 * that the compiler may put into their callers: each round deals that many equal slots in a random order, so no sampling rate can
 * march in step. Until SIGTERM; then the measured truth as `truth FUNCTION NANOSECONDS` lines.
 */

const fs = require('fs');

function burn(turns) {
  let sum = 0;
  for (let turn = 0; turn < turns; turn++) {
    sum = (sum * 31 + turn) | 0;
  }
  return sum;
}

function step(turns) {
  return burn(turns) + 1;
}

function long_phase() {
  return step(400000);
}

function short_phase() {
  return [0].map((slot) => step(400000) + slot);
}

function measured(phase) {
  const before = process.cpuUsage();
  phase();
  const { user, system } = process.cpuUsage(before);
  spent[phase.name] += (user + system) * 1000;
}

function round() {
  const slots = [...Array(7).fill(long_phase), ...Array(3).fill(short_phase)];
  for (let last = slots.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [slots[last], slots[other]] = [slots[other], slots[last]];
  }
  slots.forEach(measured);
  setImmediate(round);
}

const spent = { long_phase: 0, short_phase: 0 };
process.on('SIGTERM', () => {
  const lines = Object.entries(spent).map(([phase, nanoseconds]) => `truth ${phase} ${nanoseconds}\n`);
  fs.writeSync(1, lines.join(''));
  process.exit(0);
});
fs.writeSync(1, 'ready\n');
round();
