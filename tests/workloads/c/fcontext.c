/*
 * A coroutine of Boost.Context, which hands over to `main` and is resumed all the time:
 *
 *     <the trampoline's end>;coroutine;inside;burn
 *
 * Above its stack are addresses of code, as in memory that was used before. Compiled with BOOST, the library's own assembly
 * is linked; else what follows is in its manner, also in how it is described: not at all.
 */
#include "workload.h"

enum { STACK_WORDS = 1 << 13 };

struct transfer {
    void *context, *data;
};

struct transfer jump_fcontext(void *to, void *data);
void *make_fcontext(void *stack, unsigned long size, void (*first)(struct transfer));

#ifndef BOOST
#if defined __CET__ && __CET__ & 1
#define TARGET "endbr64\n"
#else
#define TARGET
#endif
__asm__(".text\n"
        ".globl make_fcontext\n.type make_fcontext,@function\n.align 16\n"
        "make_fcontext:\n" TARGET
        "    movq %rdi, %rax\n"
        "    andq $-16, %rax\n"
        "    leaq -0x40(%rax), %rax\n"
        "    movq %rdx, 0x28(%rax)\n"
        "    stmxcsr (%rax)\n"
        "    fnstcw 0x4(%rax)\n"
        "    leaq trampoline(%rip), %rcx\n"
        "    movq %rcx, 0x38(%rax)\n"
        "    leaq finish(%rip), %rcx\n"
        "    movq %rcx, 0x30(%rax)\n"
        "    ret\n"
        "trampoline:\n" TARGET
        "    push %rbp\n"
        "    jmp *%rbx\n"
        "finish:\n" TARGET
        "    xorq %rdi, %rdi\n"
        "    call _exit@PLT\n"
        "    hlt\n"
        ".size make_fcontext,.-make_fcontext\n"
        ".globl jump_fcontext\n.type jump_fcontext,@function\n.align 16\n"
        "jump_fcontext:\n" TARGET
        "    leaq -0x38(%rsp), %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 0x4(%rsp)\n"
        "    movq %r12, 0x8(%rsp)\n"
        "    movq %r13, 0x10(%rsp)\n"
        "    movq %r14, 0x18(%rsp)\n"
        "    movq %r15, 0x20(%rsp)\n"
        "    movq %rbx, 0x28(%rsp)\n"
        "    movq %rbp, 0x30(%rsp)\n"
        "    movq %rsp, %rax\n"
        "    movq %rdi, %rsp\n"
        "    movq 0x38(%rsp), %r8\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 0x4(%rsp)\n"
        "    movq 0x8(%rsp), %r12\n"
        "    movq 0x10(%rsp), %r13\n"
        "    movq 0x18(%rsp), %r14\n"
        "    movq 0x20(%rsp), %r15\n"
        "    movq 0x28(%rsp), %rbx\n"
        "    movq 0x30(%rsp), %rbp\n"
        "    leaq 0x40(%rsp), %rsp\n"
        "    movq %rsi, %rdx\n"
        "    movq %rax, %rdi\n"
        "    jmp *%r8\n"
        ".size jump_fcontext,.-jump_fcontext\n");
#endif

static void *room[STACK_WORDS + 64] __attribute__((aligned(16)));

FRAME void inside(void)
{
    burn(20000);
    __asm__ volatile("");
}

FRAME void coroutine(struct transfer from)
{
    for (;;) {
        inside();
        from = jump_fcontext(from.context, 0);
    }
}

int main(void)
{
    for (int word = 0; word < STACK_WORDS + 64; word++)
        room[word] = (char *)inside + 8;
    void *context = make_fcontext(room + STACK_WORDS, sizeof room, coroutine);
    announce("");
    while (!stopped)
        context = jump_fcontext(context, 0).context;
    return 0;
}
