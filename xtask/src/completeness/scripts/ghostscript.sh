# Ghostscript: text, curves, shadings and a picture, rendered with antialiasing.
prepare() {
    cat > work.ps <<'END'
%!PS
0 1 1000000 {
    /i exch def
    /Times-Roman findfont 9 scalefont setfont
    0 10 780 {
        /y exch def 20 y moveto
        (The quick brown fox jumps over the lazy dog, and over the dog again, and again. ) show
        y 20 string cvs show
    } for
    0 5 360 {
        /a exch def
        gsave 300 400 translate a rotate
        a 360 div 1 1 sethsbcolor
        0 0 moveto 100 50 200 -50 250 i 50 mod curveto stroke
        grestore
    } for
    gsave 50 50 200 200 rectclip
    << /ShadingType 2 /ColorSpace /DeviceRGB /Coords [50 50 250 250]
       /Function << /FunctionType 2 /Domain [0 1] /C0 [1 0 0] /C1 [0 0 1] /N 1 >> >> shfill
    grestore
    gsave 350 50 translate 200 200 scale
    64 64 8 [64 0 0 64 0 0] { 64 string dup 0 i 255 mod put } image
    grestore
    showpage
} for
END
}
work() {
    exec gs -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=png16m -r150 -dTextAlphaBits=4 -dGraphicsAlphaBits=4 \
        -sOutputFile=out.png work.ps
}
