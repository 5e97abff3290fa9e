# ffmpeg: drawing, filtering and encoding a test picture; much of that is assembly without unwind instructions.
prepare() { :; }
work() {
    exec ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=640x360:rate=30 -f lavfi -i sine=frequency=440 \
        -vf 'noise=alls=10,gblur=2' -c:v libx264 -preset medium -c:a aac -t 36000 -f null -
}
