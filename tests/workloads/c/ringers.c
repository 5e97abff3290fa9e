/*
 * A process that waits for others, of which each lives for 25 ms: after 20 it rings, for which `hear` waits, and after
 * another 5 it ends, for which `bury` waits.
 *
 * ringers        until SIGTERM. Those who ring are called `ringer`.
 */
#include "workload.h"

#include <sys/prctl.h>
#include <sys/wait.h>

FRAME void ring(int bell)
{
    KEEP_FRAME();
    if (write(bell, "", 1) != 1)
        abort();
    __asm__ volatile("");
}

FRAME void live(int bell)
{
    KEEP_FRAME();
    prctl(PR_SET_NAME, "ringer");
    sleep_us(20000);
    ring(bell);
    sleep_us(5000);
    _exit(0);
}

FRAME void hear(int bell)
{
    char byte;
    KEEP_FRAME();
    while (read(bell, &byte, 1) != 1 && !stopped)
        ;
    __asm__ volatile("");
}

FRAME void bury(pid_t child)
{
    KEEP_FRAME();
    while (waitpid(child, 0, 0) != child && !stopped)
        ;
    __asm__ volatile("");
}

int main(void)
{
    int ends[2];
    if (pipe(ends))
        abort();
    announce("");
    while (!stopped) {
        pid_t child = fork();
        if (child < 0)
            abort();
        if (!child)
            live(ends[1]);
        hear(ends[0]);
        bury(child);
    }
    return 0;
}
