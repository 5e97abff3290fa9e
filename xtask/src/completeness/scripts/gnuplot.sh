# gnuplot: surfaces and curves, drawn by cairo into pictures.
prepare() {
    cat > work.gp <<'END'
set terminal pngcairo size 800,600
set output 'out.png'
set samples 400
set isosamples 60
do for [i=1:1000000] {
    set title sprintf('Number %d', i)
    splot sin(x * i / 7.0) * cos(y) with pm3d
    plot for [k=1:5] sin(k * x + i) / k with linespoints
}
END
}
work() { exec gnuplot work.gp; }
