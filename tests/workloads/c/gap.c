/*
 * A chain through `middle`, which another file holds, so that it can be compiled without any unwind
 * instructions:
 *
 *     main;outer;middle;inner;burn
 */
#include "workload.h"

unsigned long middle(unsigned long turns, unsigned long (*next)(unsigned long));

FRAME unsigned long inner(unsigned long turns)
{
    burn(turns);
    return turns + 1;
}

FRAME unsigned long outer(unsigned long turns)
{
    volatile unsigned long room[20];
    room[turns % 20] = turns;
    return middle(turns, inner) + room[turns % 20];
}

int main(void)
{
    announce("");
    while (!stopped)
        outer(100000);
    return 0;
}
