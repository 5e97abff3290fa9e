/*
 * Burns CPU, half of it in `early` before `main` begins and half in `late`, and ends with a given
 * code; on SIGINT it ends with 42 at once.
 *
 * exit_code CODE [EARLY_MS LATE_MS]   25 ms each unless told otherwise.
 */
#include "workload.h"

static void interrupted(int signal)
{
    (void)signal;
    _exit(42);
}

static void burn_ms(uint64_t ms)
{
    uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ms * 1000000u;
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
        burn(5000);
}

__attribute__((noipa, constructor)) void early(int argc, char **argv)
{
    signal(SIGINT, interrupted);
    burn_ms((uint64_t)argument(argc, argv, 2, 25));
}

FRAME void late(int argc, char **argv)
{
    burn_ms((uint64_t)argument(argc, argv, 3, 25));
}

int main(int argc, char **argv)
{
    announce("");
    late(argc, argv);
    return (int)argument(argc, argv, 1, 0);
}
