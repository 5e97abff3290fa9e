/*
 * A fixed number of processes that live for as short as can be, timed by the program itself.
 *
 * bench_storm CPU   keeps to CPU. For each line `KIND PROCESSES` on stdin it makes PROCESSES children, one
 *                   after the other, which end at once (KIND 1) or run this program anew and then end
 *                   (KIND 2), and prints `WALL_NS OTHER_NS`: how long that took, and for how much of it
 *                   neither it nor a child had the CPU. Ends with its input.
 */
#include "workload.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

static uint64_t used_ns(int whose)
{
    struct rusage used;
    if (getrusage(whose, &used))
        exit(3);
    return ((uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
            (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec)) * 1000u;
}

static void live(long kind)
{
    pid_t child = fork();
    if (child == 0) {
        if (kind == 2)
            execl("/proc/self/exe", "bench_storm", (char *)NULL);
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child)
        exit(4);
}

int main(int argc, char **argv)
{
    long kind;
    unsigned long processes;
    cpu_set_t cpus;
    if (argc < 2)
        return 0;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)argument(argc, argv, 1, 0), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        return 2;
    /* Less is in its way so; where that is not allowed, it waits more. */
    setpriority(PRIO_PROCESS, 0, -20);
    announce("");
    while (scanf("%ld %lu", &kind, &processes) == 2) {
        uint64_t used = used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN);
        uint64_t start = clock_ns(CLOCK_MONOTONIC);
        for (unsigned long made = 0; made < processes; made++)
            live(kind);
        uint64_t wall = clock_ns(CLOCK_MONOTONIC) - start;
        used = used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN) - used;
        printf("%llu %llu\n", (unsigned long long)wall,
               (unsigned long long)(wall > used ? wall - used : 0));
        fflush(stdout);
        alarm(240);
    }
    return 0;
}
