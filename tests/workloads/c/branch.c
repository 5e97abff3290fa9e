/*
 * Burns CPU in `before_fork`, then has a child do so that never becomes another program.
 *
 *     main;before_fork;burn      main;in_child;child_work;burn
 *
 * branch MS   MS of CPU time in each process
 */
#include "workload.h"
#include <sys/wait.h>

static inline int has_used(uint64_t ms)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= ms * 1000000u;
}

FRAME void before_fork(uint64_t ms)
{
    while (!has_used(ms))
        burn(50000);
}

FRAME void child_work(void)
{
    burn(100000);
    __asm__ volatile("");
}

FRAME void in_child(uint64_t ms)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!has_used(ms))
        child_work();
}

int main(int argc, char **argv)
{
    uint64_t ms = (uint64_t)argument(argc, argv, 1, 500);
    announce("");
    before_fork(ms);
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0)
        in_child(ms);
    else
        waitpid(child, NULL, 0);
    return 0;
}
