/*
 * Two that hand each other the turn on one CPU, so that each handing over is a switch between threads.
 *
 * bench_switch CPU   keeps to CPU. For each line `KIND TURNS` on stdin the turn goes there and back TURNS
 *                    times: through two pipes, to another process (KIND 1), or by a futex, to another thread
 *                    of this one (KIND 2); prints `WALL_NS OTHER_NS`: how long that took, and for how much of
 *                    it neither had the CPU. Ends with its input.
 */
#include "workload.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static int there[2], back[2];
static clockid_t others_clock;

/* Whose turn it is: 0 for nobody's yet, 1 for the first's, 2 for the second's. */
static uint32_t turn;

static void hand(int from, int to)
{
    char byte = 0;
    if (write(to, &byte, 1) != 1 || (from >= 0 && read(from, &byte, 1) != 1))
        exit(4);
}

FRAME void through_pipes(unsigned long turns)
{
    KEEP_FRAME();
    while (turns--)
        hand(back[0], there[1]);
    __asm__ volatile("");
}

static void pass(uint32_t whose)
{
    __atomic_store_n(&turn, whose, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void await(uint32_t mine)
{
    uint32_t now;
    while ((now = __atomic_load_n(&turn, __ATOMIC_SEQ_CST)) != mine)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

FRAME void by_futex(unsigned long turns)
{
    KEEP_FRAME();
    while (turns--) {
        pass(2);
        await(1);
    }
    __asm__ volatile("");
}

FRAME void *second(void *nothing)
{
    KEEP_FRAME();
    for (;;) {
        await(2);
        pass(1);
    }
    return nothing;
}

static void other_process(void)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        if (read(there[0], &byte, 1) != 1)
            _exit(0);
        hand(-1, back[1]);
    }
}

static uint64_t used_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + clock_ns(others_clock);
}

int main(int argc, char **argv)
{
    long kind;
    unsigned long turns;
    cpu_set_t cpus;
    pthread_t thread;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)argument(argc, argv, 1, 0), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) || pipe(there) || pipe(back))
        return 2;
    /* Less is in its way so; where that is not allowed, it waits more. */
    setpriority(PRIO_PROCESS, 0, -20);
    pid_t other = fork();
    if (other == 0)
        other_process();
    if (other < 0 || clock_getcpuclockid(other, &others_clock) || pthread_create(&thread, NULL, second, NULL))
        return 3;
    announce("");
    while (scanf("%ld %lu", &kind, &turns) == 2) {
        uint64_t used = used_ns(), start = clock_ns(CLOCK_MONOTONIC);
        if (kind == 1)
            through_pipes(turns);
        else
            by_futex(turns);
        uint64_t wall = clock_ns(CLOCK_MONOTONIC) - start;
        used = used_ns() - used;
        printf("%llu %llu\n", (unsigned long long)wall,
               (unsigned long long)(wall > used ? wall - used : 0));
        fflush(stdout);
        alarm(240);
    }
    return 0;
}
