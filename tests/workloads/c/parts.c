/*
 * Ten thousand functions with unwind instructions, of which two run for the same time: one on either side of the 256 KiB of
 * code whose descriptions are read together, and near each other.
 *
 *     main;both;before        main;both;behind
 */
#include "others.h"
#include "workload.h"

void before(void);
void behind(void);

__asm__(".text\n"
        ".macro runs name\n"
        ".p2align 6\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name: .cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov $1000, %ebp\n"
        "1: imul %rdi, %rax\n"
        "dec %ebp\n"
        "jnz 1b\n"
        "pop %rbp\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size \\name, . - \\name\n"
        ".endm\n"
        /* Code begins at an address of some 0x1000. */
        "others 3904\n"
        "runs before\n"
        "others 1\n"
        "runs behind\n"
        "others 6000\n");

FRAME void both(void)
{
    before();
    behind();
    __asm__ volatile("");
}

int main(void)
{
    announce("");
    while (!stopped)
        both();
    return 0;
}
