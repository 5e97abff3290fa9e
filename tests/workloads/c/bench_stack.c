/*
 * A fixed amount of work under a stack of a given depth, timed by the program itself.
 *
 * bench_stack CPU   keeps to CPU. For each line `DEPTH TURNS` on stdin it burns TURNS turns under
 *                   DEPTH frames, `main` and `burn` included, and prints `WALL_NS WAITED_NS`: how
 *                   long that took, and how much of it was spent waiting for the CPU because
 *                   something else had it. Ends with its input.
 */
#include "workload.h"
#include <sched.h>
#include <sys/resource.h>

#define STEP(this, next)                                                                          \
    FRAME void step_##next(long left, unsigned long turns);                                       \
    FRAME void step_##this(long left, unsigned long turns)                                        \
    {                                                                                             \
        if (left <= 1)                                                                            \
            burn(turns);                                                                          \
        else                                                                                      \
            step_##next(left - 1, turns);                                                         \
        __asm__ volatile("");                                                                     \
    }

STEP(0, 1) STEP(1, 2) STEP(2, 3) STEP(3, 4) STEP(4, 5) STEP(5, 6) STEP(6, 7) STEP(7, 0)

/* Interrupts count as running: they are what a profiler takes from the program. */
static uint64_t waited_ns(void)
{
    unsigned long long ran = 0, waited = 0;
    FILE *file = fopen("/proc/self/schedstat", "r");
    if (!file || fscanf(file, "%llu %llu", &ran, &waited) != 2)
        exit(3);
    fclose(file);
    return waited;
}

int main(int argc, char **argv)
{
    long depth;
    unsigned long turns;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)argument(argc, argv, 1, 0), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        return 2;
    /* Less is in its way so; where that is not allowed, it waits more. */
    setpriority(PRIO_PROCESS, 0, -20);
    announce("");
    while (scanf("%ld %lu", &depth, &turns) == 2) {
        uint64_t waited = waited_ns(), start = clock_ns(CLOCK_MONOTONIC);
        step_0(depth - 2, turns);
        uint64_t wall = clock_ns(CLOCK_MONOTONIC) - start;
        printf("%llu %llu\n", (unsigned long long)wall,
               (unsigned long long)(waited_ns() - waited));
        fflush(stdout);
        alarm(240);
    }
    return 0;
}
