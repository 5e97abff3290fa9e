# zstd, which is stripped: compressing what libraries there are.
prepare() { :; }
work() { find /usr/lib/x86_64-linux-gnu -maxdepth 1 -name '*.so*' -type f -exec cat {} + | zstd -12 -c; }
