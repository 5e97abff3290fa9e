/*
 * Sixty thousand functions with unwind instructions, which use the frame pointer for something else, and a chain from those before
 * all others to the one behind them:
 *
 *     main;outer;inner;hot
 */
#include "others.h"
#include "workload.h"

void outer(unsigned long turns);

__asm__(".text\n"
        ".macro caller name, callee, turns\n"
        ".p2align 4\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name: .cfi_startproc\n"
        "push %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbx, -16\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 24\n"
        ".cfi_offset %rbp, -24\n"
        "sub $8, %rsp\n"
        ".cfi_def_cfa_offset 32\n"
        "mov \\turns, %rbx\n"
        "1: mov %rbx, %rbp\n"
        "mov %rbx, %rdi\n"
        "call \\callee\n"
        "dec %rbx\n"
        "jnz 1b\n"
        "add $8, %rsp\n"
        ".cfi_def_cfa_offset 24\n"
        "pop %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        "pop %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size \\name, . - \\name\n"
        ".endm\n"
        "caller outer, inner, %rdi\n"
        "caller inner, hot, $1000\n"
        "others 60000\n"
        ".p2align 6\n"
        ".type hot, @function\n"
        "hot: .cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov $100, %ebp\n"
        "1: imul %rdi, %rax\n"
        "dec %ebp\n"
        "jnz 1b\n"
        "pop %rbp\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size hot, . - hot\n");

int main(void)
{
    announce("");
    while (!stopped)
        outer(100);
    return 0;
}
