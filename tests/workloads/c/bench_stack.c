/*
 * A fixed amount of work under a stack of a given depth, timed by the program itself.
 *
 * bench_stack CPU   keeps to CPU. For each line `DEPTH TURNS` on stdin it burns TURNS turns under
 *                   DEPTH frames, `main` and `burn` included, and prints `WALL_NS WAITED_NS`: how
 *                   long that took, and how much of it was spent waiting for the CPU because
 *                   something else had it. Ends with its input.
 * bench_stack clock CPU
 *                   reads the clock instead, for TURNS ns, and prints `GAP_NS 0`: how long an
 *                   interrupt lies between two readings, the median.
 */
#include "workload.h"
#include <sched.h>
#include <sys/resource.h>

/* Two readings are never so far from each other by themselves, nor by an interrupt; in ns. */
#define LEAST_GAP 500
#define MOST_GAP 100000

static void (*work)(unsigned long turns) = burn;
static uint64_t gaps[1 << 16];
static size_t count;
static double tick_ns;

/*
 * A program that does nothing else loses little to cold caches: what is taken is time alone. The
 * CPU's own counter is no call, which would be a frame more for those who know its function.
 */
static FRAME void watch(unsigned long length)
{
    uint64_t last = __builtin_ia32_rdtsc(), end = last + (uint64_t)((double)length / tick_ns);
    uint64_t least = (uint64_t)(LEAST_GAP / tick_ns), most = (uint64_t)(MOST_GAP / tick_ns);
    for (count = 0; last < end && count < sizeof gaps / sizeof *gaps;) {
        uint64_t now = __builtin_ia32_rdtsc(), gap = now - last;
        if (gap > least && gap < most)
            gaps[count++] = gap;
        last = now;
    }
}

/* How long the CPU's counter takes for one. */
static double tick(void)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC), first = __builtin_ia32_rdtsc(), now;
    while ((now = clock_ns(CLOCK_MONOTONIC)) - start < 100000000)
        ;
    return (double)(now - start) / (double)(__builtin_ia32_rdtsc() - first);
}

static int by_length(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Other interrupts are much shorter, and may be the most: those count that take half as long as nine of ten. */
static uint64_t median_ns(void)
{
    size_t first = 0;
    if (!count)
        return 0;
    qsort(gaps, count, sizeof *gaps, by_length);
    while (gaps[first] < gaps[count * 9 / 10] / 2)
        first++;
    return (uint64_t)((double)gaps[first + (count - first) / 2] * tick_ns);
}

#define STEP(this, next)                                                                          \
    FRAME void step_##next(long left, unsigned long turns);                                       \
    FRAME void step_##this(long left, unsigned long turns)                                        \
    {                                                                                             \
        if (left <= 1)                                                                            \
            work(turns);                                                                          \
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
    int clock = argc > 2;
    CPU_SET((size_t)argument(argc, argv, argc - 1, 0), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        return 2;
    /* Less is in its way so; where that is not allowed, it waits more. */
    setpriority(PRIO_PROCESS, 0, -20);
    if (clock) {
        work = watch;
        tick_ns = tick();
    }
    announce("");
    while (scanf("%ld %lu", &depth, &turns) == 2) {
        uint64_t waited = waited_ns(), start = clock_ns(CLOCK_MONOTONIC);
        step_0(depth - 2, turns);
        uint64_t wall = clock_ns(CLOCK_MONOTONIC) - start;
        waited = waited_ns() - waited;
        if (clock)
            wall = median_ns(), waited = 0;
        printf("%llu %llu\n", (unsigned long long)wall, (unsigned long long)waited);
        fflush(stdout);
        alarm(240);
    }
    return 0;
}
