/*
 * One thing, and then another.
 *
 * phases MS   MS milliseconds of `first_phase`, then as many of `second_phase`, by the clock on the wall.
 */
#include "workload.h"

enum { TURNS = 100000 };

FRAME void first_phase(void) { burn(TURNS); __asm__ volatile(""); }
FRAME void second_phase(void) { burn(TURNS); __asm__ volatile(""); }

FRAME void work_until(uint64_t end, void (*phase)(void))
{
    while (!stopped && clock_ns(CLOCK_MONOTONIC) < end)
        phase();
}

int main(int argc, char **argv)
{
    uint64_t each = (uint64_t)argument(argc, argv, 1, 1000) * 1000000u;
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    work_until(begin + each, first_phase);
    work_until(begin + 2 * each, second_phase);
    return 0;
}
