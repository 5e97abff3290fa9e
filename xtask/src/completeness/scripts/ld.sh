# The GNU linker, on all of two large static libraries.
prepare() { gcc -print-file-name=libstdc++.a > first && gcc -print-file-name=libc.a > second; }
work() {
    while :; do ld.bfd -r --whole-archive "$(cat first)" "$(cat second)" -o linked.o; done
}
