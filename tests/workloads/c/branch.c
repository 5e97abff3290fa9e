/*
 * Burns CPU in `before_fork`, then has a child do so that never becomes another program.
 *
 *     main;before_fork;burn      main;in_child;child_work;burn
 *
 * branch MS   MS of CPU time before the fork
 */
#include "workload.h"
#include <sys/wait.h>

FRAME void before_fork(uint64_t ms)
{
    uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ms * 1000000u;
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
        burn(50000);
}

FRAME void child_work(void)
{
    burn(100000);
    __asm__ volatile("");
}

FRAME void in_child(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!stopped)
        child_work();
}

int main(int argc, char **argv)
{
    announce("");
    before_fork((uint64_t)argument(argc, argv, 1, 500));
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0)
        in_child();
    else
        while (!stopped && waitpid(child, NULL, 0) != child)
            ;
    return 0;
}
