/*
 * Burns CPU in `before_exec` until it gets SIGUSR1, and then becomes another program under the same PID.
 *
 * become PROGRAM [ARGUMENTS]   PROGRAM says `ready` a second time
 */
#include "workload.h"

FRAME void before_exec(void)
{
    while (!told)
        burn(50000);
}

int main(int argc, char **argv)
{
    listen_for_a_word();
    announce("");
    before_exec();
    if (argc > 1)
        execv(argv[1], argv + 1);
    return 1;
}
