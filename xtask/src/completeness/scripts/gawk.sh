# gawk, which is stripped: counting in arrays.
prepare() { :; }
work() { exec gawk 'BEGIN { while (1) for (i = 0; i < 100000; i++) a[i % 1000] = a[i * 7 % 1000] + length(i "x") }'; }
