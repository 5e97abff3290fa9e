'use strict';
/* Calls itself as often as the first argument says, and burns at the end. Until it is killed. */

function burn() {
  let sum = 0;
  for (let turn = 0; turn < 100000; turn++) {
    sum = (sum * 31 + turn) | 0;
  }
  return sum;
}

function descend(left) {
  return left === 0 ? burn() : descend(left - 1) + 1;
}

console.log('ready');
for (;;) {
  descend(Number(process.argv[2]));
}
