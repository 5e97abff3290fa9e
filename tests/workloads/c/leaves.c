/*
 * Spends its time in functions that have no frame, of the C library and its own.
 *
 *     main;count_letters;strlen         main;copy_letters;memcpy         main;call_leaf;leaf
 */
#include "workload.h"

static char letters[4096], others[4096];

FRAME unsigned long leaf(unsigned long turns)
{
    unsigned long x = turns;
    while (turns--)
        __asm__ volatile("imul $33, %0, %0" : "+r"(x));
    return x;
}

FRAME unsigned long call_leaf(void)
{
    unsigned long sum = 0;
    for (int i = 0; i < 2; i++)
        sum += leaf(200);
    return sum;
}

FRAME unsigned long count_letters(void)
{
    unsigned long sum = 0;
    for (int i = 0; i < 64; i++) {
        sum += strlen(letters);
        __asm__ volatile("" : : : "memory");
    }
    return sum;
}

FRAME void copy_letters(void)
{
    for (int i = 0; i < 16; i++) {
        memcpy(others, letters, sizeof letters);
        __asm__ volatile("" : : : "memory");
    }
}

int main(void)
{
    memset(letters, 'x', sizeof letters - 1);
    announce("");
    volatile unsigned long sum = 0;
    while (!stopped) {
        sum += call_leaf();
        sum += count_letters();
        copy_letters();
    }
    return 0;
}
