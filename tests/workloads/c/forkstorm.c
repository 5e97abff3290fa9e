/*
 * A storm of short-lived children, each of which burns a little CPU at the end of a call chain.
 *
 * forkstorm CHILDREN_PER_SECOND CHILD_US DEPTH [SECONDS]
 */
#include "workload.h"

static uint64_t child_ns;

FRAME void child_work(void)
{
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < child_ns)
        burn(5000);
}

FRAME void dive(long depth)
{
    if (depth <= 1)
        child_work();
    else
        dive(depth - 1);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    long rate = argument(argc, argv, 1, 200), depth = argument(argc, argv, 3, 20);
    uint64_t seconds = (uint64_t)argument(argc, argv, 4, 0);
    child_ns = (uint64_t)argument(argc, argv, 2, 2000) * 1000u;
    signal(SIGCHLD, SIG_IGN);
    announce("");
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    while (!stopped && (!seconds || clock_ns(CLOCK_MONOTONIC) - start < seconds * 1000000000u)) {
        if (fork() == 0) {
            dive(depth);
            _exit(0);
        }
        sleep_us(1000000u / (unsigned long)rate);
    }
    return 0;
}
