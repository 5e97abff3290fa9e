# gcc's compiler proper, on code that it gets no easy time with.
prepare() {
    awk 'BEGIN {
        print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>"
        for (f = 0; f < 1500; f++) {
            print "struct s" f " { int a[" f % 17 + 1 "]; double d; char *p; };"
            print "static double f" f "(struct s" f " *s, int n) {\n double t = 0;"
            print " for (int i = 0; i < n; i++) for (int j = 0; j < " f % 17 + 1 "; j++) {"
            print "  switch ((s[i].a[j] + j) % 7) {"
            for (c = 0; c < 7; c++) print "  case " c ": t += s[i].d * " c + f ".5 - (double)strlen(s[i].p + " c "); s[i].a[j] ^= i * " f + c "; break;"
            print "  }\n  if (t > 1e9) t = sqrt(t);\n }\n return t;\n}"
            print "double g" f "(void *p, int n) { return f" f "(p, n)" (f ? " + g" f - 1 "(p, n - 1)" : "") "; }"
        }
    }' > much.c
    gcc -E much.c -o much.i
}
work() {
    compiler=$(gcc -print-prog-name=cc1)
    while :; do "$compiler" -quiet -O2 -fpreprocessed much.i -o much.s; done
}
