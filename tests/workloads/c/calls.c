/*
 * Calls `counted` a known number of times: 100 times from `few` and 300 times from `many`, then ends. The
 * function asks the C library for memory each time, 8 bytes, and gives it back.
 *
 * calls [wait]   with `wait`, begins when SIGUSR1 says so.
 */
#include "workload.h"

FRAME void counted(void **place)
{
    KEEP_FRAME();
    *place = malloc(8);
    __asm__ volatile("" : : "r"(*place) : "memory");
    free(*place);
}

FRAME void few(int times)
{
    void *place;
    KEEP_FRAME();
    while (times-- > 0)
        counted(&place);
    __asm__ volatile("");
}

FRAME void many(int times)
{
    void *place;
    KEEP_FRAME();
    while (times-- > 0)
        counted(&place);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    (void)argv;
    listen_for_a_word();
    announce("");
    while (argc > 1 && !told && !stopped)
        pause();
    few(100);
    many(300);
    /* So that whoever counted can still look at what is mapped where. */
    sleep_us(300000);
    return 0;
}
