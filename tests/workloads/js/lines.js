'use strict';
/* Burns in one line of a function that is called in one line of another. Until it is killed. */

function burn() {
  let sum = 0;
  for (let turn = 0; turn < 1000000; turn++) {
    sum = Math.imul(sum, 31) ^ Number(turn.toString(36).length);
  }
  return sum;
}

function work() {
  const result = burn();
  return result;
}

console.log('ready');
for (;;) {
  work();
}
