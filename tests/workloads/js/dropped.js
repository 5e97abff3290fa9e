'use strict';
/*
 * Makes functions, runs them and drops them, again and again, while the collector moves what is left: a function's memory becomes
 * another's. Each is called `made_N` and runs one that is called `told_N`. Until it is killed.
 */

function burn() {
  let sum = 0;
  for (let turn = 0; turn < 100000; turn++) {
    sum = (sum * 31 + turn) | 0;
  }
  return sum;
}

function make(number) {
  const text = `return function made_${number}() { return told_${number}(); function told_${number}() { return burn() + 1; } }`;
  return new Function('burn', text)(burn);
}

console.log('ready');
const kept = [];
for (let number = 0; ; number++) {
  const made = make(number);
  made();
  kept[number % 50] = number % 3 ? null : made;
  kept.forEach((other) => other && number % 7 === 0 && other());
  if (number % 20 === 0) {
    global.gc();
  }
}
