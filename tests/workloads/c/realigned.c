/*
 * Frames that are found through memory, since they were moved to a rounder address:
 *
 *     main;forced;with_room;with_vectors;burn
 */
#include "workload.h"
#include <alloca.h>
#include <immintrin.h>

/* Built for vectors of 32 bytes, and executes no instruction that needs them. */
FRAME __attribute__((target("avx"))) int with_vectors(int turns)
{
    volatile __m256i vectors[2];
    ((volatile int *)vectors)[turns % 16] = turns;
    burn((unsigned long)turns);
    return ((volatile int *)vectors)[turns % 16];
}

FRAME int with_room(int turns)
{
    volatile int table[16] __attribute__((aligned(128)));
    volatile char *more = alloca((size_t)turns % 300 + 1);
    more[0] = 1;
    table[turns % 16] = with_vectors(turns);
    return table[turns % 16] + more[0];
}

FRAME __attribute__((force_align_arg_pointer)) int forced(int turns)
{
    return with_room(turns) + 1;
}

int main(void)
{
    announce("");
    for (int turns = 50; !stopped; turns = turns % 5000 + 7)
        forced(turns);
    return 0;
}
