/*
 * Code without unwind instructions that begins as if it kept frame pointers, and leads whoever follows them astray:
 *
 *     main;circle;hot         its frame's link leads to itself
 *     main;decoy;hot          its frame pointer leads out of the stack, to a return address into `never`
 *     main;nowhere;hot        its frame's link leads where nothing is mapped
 *
 * `never` does not run.
 */
#include "workload.h"

void circle(void);
void decoy(void);
void nowhere(void);

__asm__(".text\n"
        ".macro function name\n"
        ".p2align 4, 0xcc\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name: push %rbp\n"
        "mov %rsp, %rbp\n"
        ".endm\n"
        ".macro done name\n"
        "pop %rbp\n"
        "ret\n"
        ".size \\name, . - \\name\n"
        ".endm\n"

        "function hot\n"
        "mov $1000, %ecx\n"
        "1: imul $33, %rdx, %rdx\n"
        "dec %ecx\n"
        "jnz 1b\n"
        "done hot\n"

        "function circle\n"
        "push (%rbp)\n"
        "mov %rbp, (%rbp)\n"
        "call hot\n"
        "pop (%rbp)\n"
        "done circle\n"

        "function decoy\n"
        "lea links(%rip), %rbp\n"
        "call hot\n"
        "done decoy\n"

        "function nowhere\n"
        "push (%rbp)\n"
        "movq $0x1230, (%rbp)\n"
        "call hot\n"
        "pop (%rbp)\n"
        "done nowhere\n"

        "function never\n"
        "call hot\n"
        "returns: nop\n"
        "done never\n"

        ".rept 20000\n"
        ".p2align 4, 0xcc\n"
        "push %rbp\n"
        "mov %rsp, %rbp\n"
        ".fill 8, 8, 0x90d2af0f48d2af0f\n"
        "pop %rbp\n"
        "ret\n"
        ".endr\n"
        ".p2align 4, 0xcc\n"
        ".data\n"
        ".p2align 4\n"
        "links: .quad links + 16, returns\n"
        ".quad links + 32, returns\n"
        ".quad 0, 0\n"
        ".text\n");

int main(void)
{
    announce("");
    while (!stopped) {
        circle();
        decoy();
        nowhere();
    }
    return 0;
}
