/*
 * Six megabytes of functions without unwind instructions, which keep frame pointers, and a chain through them:
 *
 *     main;one_caller;hot
 *     main;other_caller;hot
 *     main;bare_caller;bare
 *
 * `hot` is so short that most of its time goes by before its frame is made and after it is left; `bare` makes none.
 */
#include "workload.h"

void one_caller(unsigned long turns);
void other_caller(unsigned long turns);
void bare_caller(unsigned long turns);

__asm__(".text\n"
        ".p2align 4, 0xcc\n"
        ".type hot, @function\n"
        "hot: push %rbp\n"
        "mov %rsp, %rbp\n"
        "imul %rdi, %rax\n"
        "pop %rbp\n"
        "ret\n"
        ".size hot, . - hot\n"
        ".p2align 4, 0xcc\n"
        ".type bare, @function\n"
        "bare: mov $100, %ecx\n"
        "1: imul %rdi, %rax\n"
        "dec %ecx\n"
        "jnz 1b\n"
        "ret\n"
        ".size bare, . - bare\n"
        ".macro caller name, callee\n"
        ".p2align 4, 0xcc\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name: push %rbp\n"
        "mov %rsp, %rbp\n"
        "push %rbx\n"
        "sub $8, %rsp\n"
        "mov %rdi, %rbx\n"
        "1: call \\callee\n"
        "dec %rbx\n"
        "jnz 1b\n"
        "add $8, %rsp\n"
        "pop %rbx\n"
        "pop %rbp\n"
        "ret\n"
        ".size \\name, . - \\name\n"
        ".endm\n"
        "caller one_caller, hot\n"
        "caller other_caller, hot\n"
        "caller bare_caller, bare\n"
        ".rept 100000\n"
        ".p2align 6, 0xcc\n"
        "push %rbp\n"
        "mov %rsp, %rbp\n"
        "imul %rdi, %rax\n"
        "pop %rbp\n"
        "ret\n"
        ".endr\n"
        ".p2align 6, 0xcc\n");

int main(void)
{
    announce("");
    while (!stopped) {
        one_caller(100000);
        other_caller(100000);
        bare_caller(1000);
    }
    return 0;
}
