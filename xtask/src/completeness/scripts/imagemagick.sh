# ImageMagick: turning, blurring and compressing a picture.
prepare() { :; }
work() {
    while :; do
        convert-im6.q16 -size 1200x900 plasma:red-blue -rotate 17 -blur 0x3 -resize 60% -swirl 40 -quality 80 out.png
        convert-im6.q16 out.png -colorspace Lab -equalize -unsharp 0x2 out.tiff
    done
}
