# ffmpeg: encoding a test picture by a codec that is its own assembly.
prepare() { :; }
work() {
    exec ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=640x360:rate=30 -c:v mpeg4 -t 36000 -f null -
}
