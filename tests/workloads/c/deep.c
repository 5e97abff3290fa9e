/*
 * Recursion to a given depth, burning CPU at the bottom only. Sixteen functions take turns, so that
 * a test can see whether frames are missing or out of order.
 *
 * deep DEPTH   DEPTH frames of step_*, then `bottom`, then `burn`.
 */
#include "workload.h"

FRAME void bottom(void)
{
    while (!stopped)
        burn(1000000);
}

#define STEP(this, next)                                                                          \
    FRAME void step_##next(long left);                                                            \
    FRAME void step_##this(long left)                                                             \
    {                                                                                             \
        if (left <= 1)                                                                            \
            bottom();                                                                             \
        else                                                                                      \
            step_##next(left - 1);                                                                \
        __asm__ volatile("");                                                                     \
    }

STEP(0, 1) STEP(1, 2) STEP(2, 3) STEP(3, 4) STEP(4, 5) STEP(5, 6) STEP(6, 7) STEP(7, 8)
STEP(8, 9) STEP(9, 10) STEP(10, 11) STEP(11, 12) STEP(12, 13) STEP(13, 14) STEP(14, 15) STEP(15, 0)

int main(int argc, char **argv)
{
    announce("");
    step_0(argument(argc, argv, 1, 100));
    return 0;
}
