/* Calls the library `tiny` so often that much of its time goes into the procedure linkage table. */
#include "workload.h"

int tiny(int x);

FRAME int call_often(int x)
{
    for (int i = 0; i < 10000; i++)
        x = tiny(x);
    return x;
}

int main(void)
{
    announce("");
    volatile int x = 0;
    while (!stopped)
        x = call_often(x & 0xffff);
    return 0;
}
