/*
 * A coroutine of the C library, which hands over to `main` and is resumed all the time:
 *
 *     <start of the context>;coroutine;inside;burn
 */
#include "workload.h"
#include <ucontext.h>

enum { STACK_BYTES = 1 << 16 };

static ucontext_t of_main, of_coroutine;
static char room[STACK_BYTES];

FRAME void inside(void)
{
    burn(20000);
    __asm__ volatile("");
}

FRAME void coroutine(void)
{
    for (;;) {
        inside();
        swapcontext(&of_coroutine, &of_main);
    }
}

int main(void)
{
    if (getcontext(&of_coroutine))
        return 1;
    of_coroutine.uc_stack.ss_sp = room;
    of_coroutine.uc_stack.ss_size = sizeof room;
    of_coroutine.uc_link = &of_main;
    makecontext(&of_coroutine, coroutine, 0);
    announce("");
    while (!stopped)
        swapcontext(&of_main, &of_coroutine);
    return 0;
}
