/*
 * Runs machine code that no file holds: a loop copied to anonymous memory, called from
 * `call_the_unnamed`. Ends with code 77 on an architecture for which it has no code.
 */
#include "workload.h"
#include <sys/mman.h>

/* Counts its first argument down to zero, and keeps the frame-pointer chain. */
#if defined(__x86_64__)
static const unsigned char code[] = {
    0x55,                   /* push %rbp */
    0x48, 0x89, 0xe5,       /* mov %rsp, %rbp */
    0x48, 0xff, 0xcf,       /* dec %rdi */
    0x75, 0xfb,             /* jne back to dec */
    0x5d,                   /* pop %rbp */
    0xc3,                   /* ret */
};
#elif defined(__aarch64__)
static const unsigned char code[] = {
    0xfd, 0x7b, 0xbf, 0xa9, /* stp x29, x30, [sp, #-16]! */
    0xfd, 0x03, 0x00, 0x91, /* mov x29, sp */
    0x00, 0x04, 0x00, 0xf1, /* subs x0, x0, #1 */
    0xe1, 0xff, 0xff, 0x54, /* b.ne back to subs */
    0xfd, 0x7b, 0xc1, 0xa8, /* ldp x29, x30, [sp], #16 */
    0xc0, 0x03, 0x5f, 0xd6, /* ret */
};
#else
static const unsigned char code[1];
#endif

FRAME void call_the_unnamed(void (*unnamed)(unsigned long))
{
    unnamed(1000000);
    __asm__ volatile("");
}

int main(void)
{
    if (sizeof code == 1)
        return 77;
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    memcpy(memory, code, sizeof code);
    if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
        return 1;
    __builtin___clear_cache((char *)memory, (char *)memory + sizeof code);
    announce("");
    while (!stopped)
        call_the_unnamed((void (*)(unsigned long))(uintptr_t)memory);
    return 0;
}
