/*
 * Twelve functions, each called by the one before, whose frames are made in as many ways; `burn` at the
 * end. No tail calls, nothing inlined.
 *
 * chain [TURNS]   TURNS of `burn`'s loop at the end of each chain: with few, most of the time goes into
 *                 calling and returning.
 *
 * -DROOM=BYTES    the least size of each frame
 * -DAPART         every other function in a section `.text_apart`
 */
#include "workload.h"
#include <alloca.h>
#include <stdarg.h>

#ifndef ROOM
#define ROOM 8
#endif

#ifdef APART
#define ELSEWHERE __attribute__((section(".text_apart")))
#else
#define ELSEWHERE
#endif

/* Takes place on the stack that cannot be optimized away. */
#define TAKE_ROOM()                                                                               \
    volatile char room[ROOM];                                                                     \
    room[0] = room[ROOM - 1] = (char)turns

struct large {
    unsigned long words[9];
};

FRAME ELSEWHERE unsigned long twelfth(unsigned long turns)
{
    TAKE_ROOM();
    if (turns == 0)
        return 1;
    burn(turns / 2);
    burn(turns - turns / 2);
    return turns + (unsigned long)room[0];
}

/* A frame whose size is known at run time alone. */
FRAME unsigned long eleventh(unsigned long turns)
{
    TAKE_ROOM();
    volatile char some[turns % 100 + 1];
    some[0] = room[0];
    return twelfth(turns) + (unsigned long)some[0];
}

FRAME ELSEWHERE unsigned long tenth(unsigned long turns)
{
    TAKE_ROOM();
    unsigned long (*volatile next)(unsigned long) = eleventh;
    return next(turns) + (unsigned long)room[0];
}

/* Returns through memory of its caller's. */
FRAME struct large ninth(unsigned long turns)
{
    TAKE_ROOM();
    struct large all = {{turns, tenth(turns), (unsigned long)room[0]}};
    return all;
}

/* Needs no frame on one of its ways. */
FRAME ELSEWHERE unsigned long eighth(unsigned long turns)
{
    if (turns == 1)
        return 0;
    TAKE_ROOM();
    struct large all = ninth(turns);
    return all.words[turns % 9] + (unsigned long)room[0];
}

FRAME unsigned long seventh(unsigned long turns, ...)
{
    TAKE_ROOM();
    va_list more;
    va_start(more, turns);
    unsigned long sum = eighth(turns) + va_arg(more, unsigned long) + (unsigned long)room[0];
    va_end(more);
    return sum;
}

/* More parameters than there are registers for them. */
FRAME ELSEWHERE unsigned long sixth(unsigned long turns, long a, long b, long c, long d, long e, long f,
                                    long g, long h)
{
    TAKE_ROOM();
    return seventh(turns, (unsigned long)a, 2.0, b) + (unsigned long)(c + d + e + f + g + h + room[0]);
}

FRAME unsigned long fifth(unsigned long turns)
{
    TAKE_ROOM();
    return sixth(turns, 1, 2, 3, 4, 5, 6, 7, 8) + (unsigned long)room[0];
}

FRAME ELSEWHERE unsigned long fourth(unsigned long turns)
{
    TAKE_ROOM();
    volatile char *some = alloca(turns % 50 + 1);
    some[0] = room[0];
    return fifth(turns) + (unsigned long)some[0];
}

FRAME unsigned long third(unsigned long turns)
{
    TAKE_ROOM();
    volatile unsigned long large[500];
    large[turns % 500] = turns;
    return fourth(turns) + large[turns % 500] + (unsigned long)room[0];
}

FRAME ELSEWHERE unsigned long second(unsigned long turns)
{
    TAKE_ROOM();
    return third(turns) + (unsigned long)room[0];
}

/* Keeps so much over the call that every register which outlives one is saved. */
FRAME unsigned long first(unsigned long turns)
{
    TAKE_ROOM();
    unsigned long a = turns * 3, b = turns * 5, c = turns * 7, d = turns * 11, e = turns * 13, f = turns * 17;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    return second(turns) + (a ^ b ^ c ^ d ^ e ^ f) + (unsigned long)room[0];
}

int main(int argc, char **argv)
{
    unsigned long turns = (unsigned long)argument(argc, argv, 1, 100000);
    announce("");
    while (!stopped)
        first(turns);
    return 0;
}
