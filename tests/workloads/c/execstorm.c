/*
 * A storm of short-lived programs, each executed anew and so at addresses of its own: no two of them
 * share a stack, as address space layout randomization has it.
 *
 * execstorm PROGRAMS_PER_SECOND PROGRAM_US DEPTH
 *
 * PROGRAM_US is the CPU time of one program, exec and the dynamic loader included. Where those take most of it
 * or more, as they do sampled at a high rate on a slow machine, program_work takes half of it all the same.
 */
#include "workload.h"

static uint64_t program_ns;

FRAME void program_work(void)
{
    uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + program_ns / 2;

    if (end < program_ns)
        end = program_ns;
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
        burn(5000);
}

FRAME void descend(long depth)
{
    if (depth <= 1)
        program_work();
    else
        descend(depth - 1);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    long rate = argument(argc, argv, 1, 100);
    program_ns = (uint64_t)argument(argc, argv, 2, 5000) * 1000u;
    if (rate == 0) {
        descend(argument(argc, argv, 3, 20));
        return 0;
    }
    signal(SIGCHLD, SIG_IGN);
    announce("");
    while (!stopped) {
        if (fork() == 0) {
            execl("/proc/self/exe", "execstorm", "0", argc > 2 ? argv[2] : "5000",
                  argc > 3 ? argv[3] : "20", (char *)NULL);
            _exit(1);
        }
        sleep_us(1000000u / (unsigned long)rate);
    }
    return 0;
}
