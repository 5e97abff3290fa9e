'use strict';
/*
 * Works a fixed amount under a stack of a given depth, on one CPU, each time it is told two numbers: depth and turns.
 *
 * Answers with two numbers: how many nanoseconds that took, and how many of them it waited for a CPU.
 */

const { execFileSync } = require('child_process');
const fs = require('fs');

function work(turns) {
  let total = 0;
  for (let turn = 0; turn < turns; turn++) {
    total = (Math.imul(total, 31) + turn) | 0;
  }
  return total;
}

function descend(left, turns) {
  return left > 1 ? descend(left - 1, turns) + 1 : work(turns);
}

function waited() {
  return Number(fs.readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]);
}

execFileSync('taskset', ['-acp', process.argv[2], String(process.pid)], { stdio: 'ignore' });
// Compiled as it will be.
for (let turn = 0; turn < 1000; turn++) {
  descend(20, 1000);
}
fs.writeSync(1, 'ready\n');
const bytes = Buffer.alloc(64);
for (;;) {
  const count = fs.readSync(0, bytes);
  if (count === 0) {
    break;
  }
  const [depth, turns] = bytes.toString('utf8', 0, count).trim().split(' ').map(Number);
  const before = waited();
  const began = process.hrtime.bigint();
  descend(depth, turns);
  const took = process.hrtime.bigint() - began;
  fs.writeSync(1, `${took} ${waited() - before}\n`);
}
