'use strict';
/*
 * Stops at 60 places that chance chooses, and burns there; V8's own account of its frames says what they are.
 *
 * First each place is visited once, to say its frames as a `chain FUNCTION;FUNCTION;…` line; then all of them again and again,
 * until it is killed: interpreted at first, then compiled, with some compiled into others. With `worker` in a thread of its own;
 * with `collecting`, the collector moves objects all the time.
 */

const fs = require('fs');
const path = require('path');
const vm = require('vm');
const { Worker, isMainThread } = require('worker_threads');

const STOPS = 60;
const TURNS = 300000;

let saying = false;

// Names that are computed when the program runs: what the parser makes of them.
const written = new Map([['[Symbol.iterator]', '<anonymous>'], ['computed', 'object'], ['eval', '<anonymous>']]);

function stop() {
  if (saying) {
    say();
    return 0;
  }
  let sum = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    sum = (sum * 31 + turn) | 0;
  }
  return sum;
}

function say() {
  const before = Error.prepareStackTrace;
  Error.stackTraceLimit = Infinity;
  Error.prepareStackTrace = (_, frames) => frames;
  const frames = new Error().stack.slice(1).reverse();
  Error.prepareStackTrace = before;
  const names = frames.map((frame) => written.get(frame.getFunctionName()) || frame.getFunctionName() || '<anonymous>');
  const own = frames.map((frame) => [__filename, 'made.js', undefined].includes(frame.getFileName()) && !frame.isNative());
  const first = names.indexOf('main');
  fs.writeSync(1, `chain ${names.filter((_, place) => place >= first && own[place]).join(';')}\n`);
}

function go(ways) {
  if (ways.length === 0) {
    return stop();
  }
  return ways[0](ways.slice(1));
}

const object = {
  method(ways) {
    return go(ways);
  },
  [`computed`](ways) {
    return go(ways);
  },
  'quoted name'(ways) {
    return go(ways);
  },
};

class Base {
  constructor(ways) {
    this.ways = ways;
  }
  inherited() {
    return go(this.ways);
  }
}

class Holder extends Base {
  #hidden() {
    return go(this.ways);
  }
  static made(ways) {
    return go(ways);
  }
  get property() {
    return go(this.ways);
  }
  set property(value) {
    go(this.ways);
  }
  toString() {
    return String(go(this.ways));
  }
  valueOf() {
    return go(this.ways);
  }
  toJSON() {
    return go(this.ways);
  }
  shown() {
    return this.#hidden();
  }
  inherited() {
    return super.inherited();
  }
  *[Symbol.iterator]() {
    yield go(this.ways);
  }
  *produced() {
    yield go(this.ways);
  }
  *delegated() {
    yield* this.produced();
  }
}

class Burning {
  constructor(ways) {
    this.value = go(ways);
  }
}

class Derived extends Burning {
  constructor(ways) {
    super(ways);
  }
}

const made = new Function('go', 'ways', 'return go(ways);');
const elsewhere = vm.runInThisContext('(function inScript(go, ways) { return go(ways); })', { filename: 'made.js' });
const arrow = (ways) => go(ways);
const ünïcode_名前 = function (ways) {
  return go(ways);
};

function byCall(ways) {
  return go(ways);
}
function byMethod(ways) {
  return object.method(ways);
}
function byComputed(ways) {
  return object.computed(ways);
}
function byQuoted(ways) {
  return object['quoted name'](ways);
}
function byArrow(ways) {
  return arrow(ways);
}
function byUnicode(ways) {
  return ünïcode_名前(ways);
}
function byApply(ways) {
  return byCall.apply(null, [ways]);
}
function byReflect(ways) {
  return Reflect.apply(byCall, undefined, [ways]);
}
function byBind(ways) {
  return byCall.bind(null, ways)();
}
function bySpread(ways) {
  return byCall(...[ways]);
}
function byNew(ways) {
  return new Burning(ways).value;
}
function byDerived(ways) {
  return new Derived(ways).value;
}
function byConstruct(ways) {
  return Reflect.construct(Burning, [ways]).value;
}
function byStatic(ways) {
  return Holder.made(ways);
}
function byGetter(ways) {
  return new Holder(ways).property;
}
function bySetter(ways) {
  new Holder(ways).property = 1;
  return 0;
}
function byPrivate(ways) {
  return new Holder(ways).shown();
}
function bySuper(ways) {
  return new Holder(ways).inherited();
}
function byText(ways) {
  return `${new Holder(ways)}`.length;
}
function byValue(ways) {
  return new Holder(ways) * 1;
}
function byIterator(ways) {
  for (const value of new Holder(ways)) {
    return value;
  }
  return 0;
}
function byDestructuring(ways) {
  const [value] = new Holder(ways);
  return value;
}
function byGenerator(ways) {
  return new Holder(ways).produced().next().value;
}
function byDelegation(ways) {
  return [...new Holder(ways).delegated()][0];
}
function byMap(ways) {
  return [0].map((value) => go(ways) + value)[0];
}
function byReduce(ways) {
  return [0, 1].reduce(() => go(ways));
}
function bySort(ways) {
  return [2, 1].sort(() => go(ways) & 1)[0];
}
function byReplace(ways) {
  return 'a'.replace(/a/, () => String(go(ways))).length;
}
function byParse(ways) {
  return JSON.parse('1', () => go(ways));
}
function byStringify(ways) {
  return JSON.stringify(new Holder(ways)).length;
}
function byProxy(ways) {
  const handler = {
    get() {
      return go(ways);
    },
  };
  return new Proxy({}, handler).anything;
}
function byTag(ways) {
  const tag = () => go(ways);
  return tag`text`;
}
function byEval(ways) {
  return eval('go(ways)');
}
function byFunction(ways) {
  return made(go, ways);
}
function byScript(ways) {
  return elsewhere(go, ways);
}
function byCatch(ways) {
  try {
    throw new TypeError();
  } catch {
    return go(ways);
  }
}
function byFinally(ways) {
  try {
    return 1;
  } finally {
    go(ways);
  }
}
function byDefault(ways, value = go(ways)) {
  return value;
}
function byNamed(ways) {
  return (function inner(left) {
    return left === 0 ? go(ways) : inner(left - 1);
  })(2);
}

const all = [
  byCall, byMethod, byComputed, byQuoted, byArrow, byUnicode, byApply, byReflect, byBind, bySpread, byNew, byDerived, byConstruct,
  byStatic, byGetter, bySetter, byPrivate, bySuper, byText, byValue, byIterator, byDestructuring, byGenerator, byDelegation, byMap,
  byReduce, bySort, byReplace, byParse, byStringify, byProxy, byTag, byEval, byFunction, byScript, byCatch, byFinally, byDefault,
  byNamed,
];

let seed = 7;
function chance(below) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >> 8) % below;
}

function visit(places) {
  for (const ways of places) {
    go(ways);
  }
}

function main(places) {
  visit(places);
}

const mode = process.argv[2];
if (mode === 'worker' && isMainThread) {
  new Worker(path.resolve(__filename), { argv: ['worker'] });
} else {
  const places = Array.from({ length: STOPS }, () => Array.from({ length: chance(12) }, () => all[chance(all.length)]));
  fs.writeSync(1, 'ready\n');
  saying = true;
  main(places);
  saying = false;
  const collect = mode === 'collecting' ? global.gc : () => {};
  const again = () => {
    for (let round = 0; round < 5; round++) {
      main(places);
      collect();
    }
    setImmediate(again);
  };
  again();
}
