/*
 * Four call chains that take 50, 30, 15 and 5 percent of the program's time by construction: each
 * round deals that many equal slots in a random order, so no sampling rate can march in step.
 *
 * shares [CPU_MS]   0 or nothing: until SIGTERM. Prints the measured truth at the end, as
 *                   `truth FUNCTION NANOSECONDS` lines.
 */
#include "workload.h"

enum { SLOTS = 20, TURNS = 100000 };

FRAME void alpha_inner(void) { burn(TURNS); __asm__ volatile(""); }
FRAME void alpha(void) { alpha_inner(); __asm__ volatile(""); }
FRAME void beta(void) { burn(TURNS); __asm__ volatile(""); }
FRAME void gamma_leaf(void) { burn(TURNS); __asm__ volatile(""); }
FRAME void gamma_inner(void) { gamma_leaf(); __asm__ volatile(""); }
FRAME void gamma_outer(void) { gamma_inner(); __asm__ volatile(""); }
FRAME void delta(void) { burn(TURNS); __asm__ volatile(""); }

static const struct {
    const char *name;
    void (*function)(void);
    int slots;
} chains[] = {
    {"alpha", alpha, 10},
    {"beta", beta, 6},
    {"gamma_outer", gamma_outer, 3},
    {"delta", delta, 1},
};

static uint64_t spent[4];

FRAME void work_round(void)
{
    static uint64_t random = 88172645463325252u;
    int deck[SLOTS], size = 0;
    for (int chain = 0; chain < 4; chain++)
        for (int i = 0; i < chains[chain].slots; i++)
            deck[size++] = chain;
    for (; size > 0; size--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        int pick = (int)(random % (uint64_t)size), chain = deck[pick];
        deck[pick] = deck[size - 1];
        uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        chains[chain].function();
        spent[chain] += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    }
}

int main(int argc, char **argv)
{
    uint64_t budget = (uint64_t)argument(argc, argv, 1, 0) * 1000000u;
    announce("");
    while (!stopped && (!budget || clock_ns(CLOCK_PROCESS_CPUTIME_ID) < budget))
        work_round();
    for (int chain = 0; chain < 4; chain++)
        printf("truth %s %llu\n", chains[chain].name, (unsigned long long)spent[chain]);
    return 0;
}
