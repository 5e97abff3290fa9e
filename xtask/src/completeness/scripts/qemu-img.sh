# qemu-img: compressing what libraries there are into an image, by zlib.
prepare() { find /usr/lib/x86_64-linux-gnu -maxdepth 1 -name '*.so*' -type f -exec cat {} + 2>/dev/null | head -c 64M > raw; }
work() { while :; do qemu-img convert -c -f raw -O qcow2 raw image; done; }
