/*
 * One thing, and then another.
 *
 * phases MS   `first_phase` until it has run for MS milliseconds of CPU time, then `second_phase`: however busy the machine is,
 *             each has its samples.
 *
 * At the end it says of each when it began, when it had a tenth of its time behind it (`early`) and before it (`late`), and
 * when it ended, as `WHAT FUNCTION NANOSECONDS` lines, by the clock on the wall since `main` began.
 */
#include "workload.h"

/* Takes some milliseconds: the clock between two of them, a system call, is hardly ever met by a sample. */
enum { TURNS = 5000000 };

FRAME void first_phase(void) { burn(TURNS); __asm__ volatile(""); }
FRAME void second_phase(void) { burn(TURNS); __asm__ volatile(""); }

/* Runs a phase until the process has used so much CPU time; returns the time on the wall. */
FRAME uint64_t work_until(uint64_t used, void (*phase)(void))
{
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < used)
        phase();
    return clock_ns(CLOCK_MONOTONIC);
}

enum { BEGAN, EARLY, LATE, ENDED, MARKS };

static void run(uint64_t each, void (*phase)(void), uint64_t times[MARKS])
{
    uint64_t used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    times[BEGAN] = clock_ns(CLOCK_MONOTONIC);
    times[EARLY] = work_until(used + each / 10, phase);
    times[LATE] = work_until(used + each - each / 10, phase);
    times[ENDED] = work_until(used + each, phase);
}

static void say(const char *phase, const uint64_t times[MARKS], uint64_t begin)
{
    static const char *const marks[MARKS] = {"began", "early", "late", "ended"};
    for (int mark = 0; mark < MARKS; mark++)
        printf("%s %s %llu\n", marks[mark], phase, (unsigned long long)(times[mark] - begin));
}

int main(int argc, char **argv)
{
    uint64_t each = (uint64_t)argument(argc, argv, 1, 1000) * 1000000u;
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    uint64_t first[MARKS], second[MARKS];
    run(each, first_phase, first);
    run(each, second_phase, second);
    say("first_phase", first, begin);
    say("second_phase", second, begin);
    return 0;
}
