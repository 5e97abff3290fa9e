/*
 * Asks for a known number of bytes, by each function that the C library has for that, from a function of its own.
 *
 * alloc   begins when SIGUSR1 says so, and ends.
 */
#include "workload.h"
#include <malloc.h>

/* What may not be optimized away. */
static void *volatile kept;

FRAME void mallocs(void)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 10; turn++) {
        kept = malloc(1000);
        free(kept);
    }
}

FRAME void callocs(void)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 5; turn++) {
        kept = calloc(10, 30);
        free(kept);
    }
}

/* The first of each is as good as a `malloc`, and may become one. */
FRAME void reallocs(void)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 4; turn++) {
        kept = realloc(NULL, 100);
        kept = realloc(kept, 200);
        free(kept);
    }
}

FRAME void arrays(void)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 3; turn++) {
        kept = reallocarray(NULL, 7, 11);
        free(kept);
    }
}

FRAME void aligned(void)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 2; turn++) {
        void *place;
        if (posix_memalign(&place, 64, 500))
            abort();
        kept = place;
        free(kept);
        kept = aligned_alloc(64, 640);
        free(kept);
        kept = memalign(32, 96);
        free(kept);
    }
}

int main(void)
{
    listen_for_a_word();
    announce("");
    while (!told && !stopped)
        pause();
    mallocs();
    callocs();
    reallocs();
    arrays();
    aligned();
    /* So that whoever counted can still look at what is mapped where. */
    sleep_us(300000);
    return 0;
}
