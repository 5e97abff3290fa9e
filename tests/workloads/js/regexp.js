'use strict';
/* Matches a regular expression that looks in vain for long. Until it is killed. */

function match() {
  return /(a+)+b/.test('aaaaaaaaaaaaaaaaaaaac');
}

console.log('ready');
for (;;) {
  match();
}
