/*
 * Fifty megabytes of functions without unwind instructions, of the kinds that a compiler makes, and chains through them:
 *
 *     main;spread;late;leaf           sets its frame up behind the work that it does first
 *     main;spread;pointed;leaf        is called through a pointer alone
 *     main;spread;general;leaf        uses the frame pointer for something else
 *
 * `leaf` has no frame. With WITHOUT_FRAMES no function keeps a frame pointer.
 */
#include "workload.h"

#ifdef WITHOUT_FRAMES
#define SET_UP "push %rbx\n"
#define LEAVE "pop %rbx\nret\n"
#else
#define SET_UP "push %rbp\nmov %rsp, %rbp\n"
#define LEAVE "pop %rbp\nret\n"
#endif

void spread(void);

__asm__(".text\n"
        ".macro function name\n"
        ".p2align 4, 0xcc\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name:\n"
        ".endm\n"
        ".macro work turns\n"
        "mov $\\turns, %ecx\n"
        "1: imul $33, %rdx, %rdx\n"
        "dec %ecx\n"
        "jnz 1b\n"
        ".endm\n"

        "function leaf\n"
        "work 300\n"
        "ret\n"
        ".size leaf, . - leaf\n"

        "function late\n"
        "work 100\n"
        "test %ecx, %ecx\n"
        "jnz 2f\n"
        SET_UP
        "call leaf\n"
        "call leaf\n"
        LEAVE
        "2: ret\n"
        ".size late, . - late\n"

        "function pointed\n"
        SET_UP
        "call leaf\n"
        "call leaf\n"
        LEAVE
        ".size pointed, . - pointed\n"

        "function general\n"
        "push %rbp\n"
        "push %r15\n"
        "push %r14\n"
        "mov $2, %ebp\n"
        "3: mov %rbp, %r14\n"
        "call leaf\n"
        "dec %rbp\n"
        "jnz 3b\n"
        "pop %r14\n"
        "pop %r15\n"
        "pop %rbp\n"
        "ret\n"
        ".size general, . - general\n"

        "function spread\n"
        SET_UP
        "call late\n"
        "lea pointed(%rip), %rax\n"
        "call *%rax\n"
        "call general\n"
        LEAVE
        ".size spread, . - spread\n"

        ".rept 100000\n"
        ".p2align 4, 0xcc\n"
        SET_UP
        ".fill 64, 8, 0x90d2af0f48d2af0f\n"
        LEAVE
        ".endr\n"
        ".p2align 4, 0xcc\n");

int main(void)
{
    announce("");
    while (!stopped)
        spread();
    return 0;
}
