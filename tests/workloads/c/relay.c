/*
 * Burns CPU in `before_exec` and then becomes another program under the same PID.
 *
 * relay MS PROGRAM [ARGUMENTS]   PROGRAM says `ready` a second time.
 */
#include "workload.h"

FRAME void before_exec(uint64_t ms)
{
    uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ms * 1000000u;
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
        burn(5000);
}

int main(int argc, char **argv)
{
    announce("");
    before_exec((uint64_t)argument(argc, argv, 1, 1000));
    if (argc > 2)
        execv(argv[2], argv + 2);
    return 1;
}
