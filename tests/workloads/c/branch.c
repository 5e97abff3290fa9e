/*
 * Burns CPU in `before_fork` until it gets SIGUSR1, then has a child do so that never becomes another program.
 *
 *     main;before_fork;burn      main;in_child;child_work;burn
 */
#include "workload.h"
#include <sys/wait.h>

FRAME void before_fork(void)
{
    while (!told)
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

int main(void)
{
    listen_for_a_word();
    announce("");
    before_fork();
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
