/*
 * Runs machine code that no file holds and that keeps no frame pointer: it saves a register and six words of its own before it
 * counts, and then calls back. Among these words are the address of a function, and an address behind a call that is over.
 *
 * With "back" most of the time goes into `called_back`; with "nested" this runs the nameless code once more; with "shared"
 * the code is in memory that could be shared with other processes.
 * Ends with code 77 on an architecture for which it has no code.
 */
#include "workload.h"
#include <sys/mman.h>

typedef void nameless(unsigned long turns, void *const words[6], void (*back)(void));

#if defined(__x86_64__)
static const unsigned char code[] = {
    0x55,                   /* push %rbp */
    0xff, 0x76, 0x28,       /* push 40(%rsi), and so on down to (%rsi) */
    0xff, 0x76, 0x20,
    0xff, 0x76, 0x18,
    0xff, 0x76, 0x10,
    0xff, 0x76, 0x08,
    0xff, 0x36,
    0x48, 0x89, 0xf5,       /* mov %rsi, %rbp */
    0x48, 0xff, 0xcf,       /* dec %rdi */
    0x75, 0xfb,             /* jne back to dec */
    0xff, 0xd2,             /* call *%rdx */
    0x48, 0x83, 0xc4, 0x30, /* add $48, %rsp */
    0x5d,                   /* pop %rbp */
    0xc3,                   /* ret */
};
#else
static const unsigned char code[1];
#endif

static nameless *unnamed;
static void *words[6];

FRAME void note_return_address(void)
{
    words[1] = __builtin_return_address(0);
}

/* Its call is over before the nameless code runs. */
FRAME void decoy(void)
{
    note_return_address();
    __asm__ volatile("");
}

FRAME void nothing(void)
{
    __asm__ volatile("");
}

FRAME void called_back(void)
{
    burn(1000000);
    __asm__ volatile("");
}

FRAME void run_again(void)
{
    unnamed(1000, words, called_back);
    __asm__ volatile("");
}

FRAME void keep_calling(unsigned long turns, void (*back)(void))
{
    while (!stopped)
        unnamed(turns, words, back);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    if (sizeof code == 1)
        return 77;
    const char *how = argc > 1 ? argv[1] : "";
    int sharing = strcmp(how, "shared") ? MAP_PRIVATE : MAP_SHARED;
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    memcpy(memory, code, sizeof code);
    if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
        return 1;
    unnamed = (nameless *)(uintptr_t)memory;
    decoy();
    words[0] = (void *)(uintptr_t)main;
    words[2] = words;
    words[5] = memory;
    announce("");
    if (!strcmp(how, "back"))
        keep_calling(1000, called_back);
    else if (!strcmp(how, "nested"))
        keep_calling(1000, run_again);
    else
        keep_calling(1000000, nothing);
    return 0;
}
