/* A process that uses no CPU at all once it is ready. */
#include "workload.h"

int main(void)
{
    announce("");
    while (!stopped)
        pause();
    return 0;
}
