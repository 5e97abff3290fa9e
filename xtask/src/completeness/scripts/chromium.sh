# Chromium without a window: layout, drawing and JavaScript of one page.
prepare() {
    cat > page.html <<'END'
<!doctype html><title>work</title><body><div id=list></div><canvas id=canvas width=600 height=400></canvas><script>
const list = document.getElementById('list'), pen = document.getElementById('canvas').getContext('2d');
let turn = 0;
function draw() {
    pen.clearRect(0, 0, 600, 400);
    for (let i = 0; i < 300; i++) {
        pen.fillStyle = `hsl(${i + turn}, 80%, 50%)`;
        pen.beginPath(); pen.arc(i * 2, 200 + 150 * Math.sin((i + turn) / 20), 12, 0, 7); pen.fill();
    }
    pen.fillText('turn ' + turn, 10, 20);
}
function step() {
    turn++;
    list.innerHTML = '';
    for (let i = 0; i < 200; i++) {
        const item = document.createElement('p');
        item.textContent = 'Line ' + i + ' of turn ' + turn + ': the quick brown fox jumps over the lazy dog';
        item.style.width = 200 + (i * 7 + turn) % 400 + 'px';
        list.append(item);
    }
    const height = list.offsetHeight;
    const text = JSON.stringify(Array.from({ length: 2000 }, (_, i) => ({ i, name: (i * height).toString(36) })));
    JSON.parse(text).sort((a, b) => (a.name < b.name ? -1 : 1));
    draw();
    setTimeout(step, 0);
}
step();
</script>
END
}
work() {
    exec chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage \
        --user-data-dir="$PWD/profile" --remote-debugging-port="$PORT" "file://$PWD/page.html"
}
