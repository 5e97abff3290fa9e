# esbuild, a stripped Go program: parsing, linking and printing JavaScript in many goroutines.
prepare() {
    i=0
    while [ $i -lt 3000 ]; do
        echo "export function f$i(a, b) { let s = 0; for (let i = 0; i < a; i++) s += b[i]?.x ?? \`t\${i}\`.length;
            return { ...b, s, [\`k$i\`]: class A$i extends Object { #p = $i; get q() { return this.#p } } } }"
        i=$((i + 1))
    done > part.js
    for i in 1 2 3 4; do
        cp part.js "part$i.js"
        echo "import * as part$i from './part$i.js'; console.log(part$i);"
    done > main.js
}
work() { while :; do esbuild --bundle --minify --sourcemap --target=es2019 --log-level=error --outfile=out.js main.js; done; }
