# node: JavaScript, regular expressions, collections, and the libraries inside.
prepare() {
    cat > work.js <<'END'
const zlib = require('zlib'), crypto = require('crypto');
const things = [];
for (let i = 0; i < 3000; i++) things.push({ id: i, name: (i * 7919).toString(36), of: Array(i % 20).fill(i) });
function depth(n) { return n ? 1 + depth(n - 1) : 0; }
class Shape { constructor(n) { this.n = n; } area() { return this.n * 2; } }
class Round extends Shape { area() { return super.area() * 3.14; } }
let sum = 0;
for (;;) {
    const text = JSON.stringify(things), back = JSON.parse(text);
    back.sort((a, b) => (a.name < b.name ? -1 : 1));
    sum += text.replace(/"name":"([a-f]+)/g, (_, name) => name.toUpperCase()).length;
    sum += zlib.deflateSync(text).length + crypto.createHash('sha256').update(text).digest()[0];
    const seen = new Map();
    for (const thing of back) seen.set(thing.name, new Round(thing.id).area());
    for (const value of seen.values()) sum += value;
    sum += depth(500) + [...text].length;
}
END
}
work() { exec node work.js; }
