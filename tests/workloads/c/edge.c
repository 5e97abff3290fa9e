/*
 * Is interrupted at the very first instruction of a function, by a fault which that instruction is; the
 * function before it in memory ends with another frame:
 *
 *     main;edge;<trampoline>;on_trap;burn
 */
#include "workload.h"
#include <ucontext.h>

void edge(void);

/* `ud2`, two bytes, stands for a first instruction that faults. Before it is no padding. */
__asm__(".text\n"
        ".type before_edge, @function\n"
        "before_edge:\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_offset %rbx, -16\n"
        "sub $4096, %rsp\n"
        ".cfi_adjust_cfa_offset 4096\n"
        "ud2\n"
        ".cfi_endproc\n"
        ".size before_edge, . - before_edge\n"
        ".globl edge\n"
        ".type edge, @function\n"
        "edge:\n"
        ".cfi_startproc\n"
        "ud2\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size edge, . - edge\n");

FRAME void on_trap(int signal, siginfo_t *about, void *interrupted)
{
    (void)signal, (void)about;
    burn(100000);
    ((ucontext_t *)interrupted)->uc_mcontext.gregs[REG_RIP] += 2;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    announce("");
    while (!stopped)
        edge();
    return 0;
}
