'use strict';
/* Burns for 20 ms in a function, and ends. */

function brief_work() {
  const end = process.hrtime.bigint() + 20000000n;
  let sum = 0;
  while (process.hrtime.bigint() < end) {
    for (let turn = 0; turn < 10000; turn++) {
      sum = (sum * 31 + turn) | 0;
    }
  }
  return sum;
}

brief_work();
