/*
 * Burns CPU in `innermost`, which is compiled into `middle`, and that into `outermost`, a function of its
 * own. Built with debug information, which alone tells of the two.
 */
#include "workload.h"

static inline __attribute__((always_inline)) uint64_t innermost(uint64_t x, unsigned long turns)
{
    while (turns--) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static inline __attribute__((always_inline)) uint64_t middle(uint64_t x)
{
    return innermost(x, 100000) + 1;
}

FRAME uint64_t outermost(uint64_t x)
{
    KEEP_FRAME();
    return middle(x | 1);
}

int main(void)
{
    uint64_t x = 1;
    announce("");
    while (!stopped)
        x = outermost(x);
    return x == 0;
}
