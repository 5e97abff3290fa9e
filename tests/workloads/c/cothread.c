/*
 * A coroutine in the manner of libco, which hands over to `main` and is resumed all the time:
 *
 *     crash;entry;inside;burn
 *
 * The first function returns to the first byte of `crash`, which nothing calls. Above the stack are addresses of code.
 */
#include "workload.h"
#include <stdlib.h>

enum { STACK_WORDS = 1 << 13 };

/* In libco these bytes are data. */
void co_swap(void *to, void *from);
__asm__(".text\n.globl co_swap\n.type co_swap,@function\n.align 16\n"
        "co_swap:\n"
        "    movq %rsp, (%rsi)\n"
        "    movq (%rdi), %rsp\n"
        "    popq %rax\n"
        "    movq %rbp, 8(%rsi)\n"
        "    movq %rbx, 16(%rsi)\n"
        "    movq %r12, 24(%rsi)\n"
        "    movq %r13, 32(%rsi)\n"
        "    movq %r14, 40(%rsi)\n"
        "    movq %r15, 48(%rsi)\n"
        "    movq 8(%rdi), %rbp\n"
        "    movq 16(%rdi), %rbx\n"
        "    movq 24(%rdi), %r12\n"
        "    movq 32(%rdi), %r13\n"
        "    movq 40(%rdi), %r14\n"
        "    movq 48(%rdi), %r15\n"
        "    jmp *%rax\n"
        ".size co_swap,.-co_swap\n");

static void *of_main[8], *room[STACK_WORDS + 64] __attribute__((aligned(16)));

FRAME void inside(void)
{
    burn(20000);
    __asm__ volatile("");
}

FRAME void entry(void)
{
    for (;;) {
        inside();
        co_swap(of_main, room);
    }
}

FRAME void crash(void)
{
    abort();
}

int main(void)
{
    for (int word = 0; word < STACK_WORDS + 64; word++)
        room[word] = (char *)inside + 8;
    room[STACK_WORDS - 1] = crash;
    room[STACK_WORDS - 2] = entry;
    room[0] = room + STACK_WORDS - 2;
    announce("");
    while (!stopped)
        co_swap(room, of_main);
    return 0;
}
