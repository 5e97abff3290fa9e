/* Asks the vDSO what time it is, over and over, in `ask_the_time`. */
#include "workload.h"

FRAME void ask_the_time(void)
{
    for (int i = 0; i < 1000; i++)
        clock_ns(CLOCK_MONOTONIC);
}

int main(void)
{
    announce("");
    while (!stopped)
        ask_the_time();
    return 0;
}
