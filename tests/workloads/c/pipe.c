/*
 * A writer and a reader at the two ends of a pipe, both of which live in the kernel nearly all the
 * time. System calls are made in line, because a C library built without frame pointers would hide
 * the function that called it.
 *
 * Prints `ready READER_PID`; the writer is the process that was started.
 */
#include "workload.h"
#include <sys/syscall.h>

static inline long system_call(long number, long fd, void *buffer, long length)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(fd), "S"(buffer), "d"(length)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = fd, x2 __asm__("x2") = length;
    register void *x1 __asm__("x1") = buffer;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#else
    return syscall(number, fd, buffer, length);
#endif
}

enum { MESSAGE = 4096 };
static char message[MESSAGE];

FRAME void write_messages(int fd)
{
    KEEP_FRAME();
    while (!stopped && system_call(SYS_write, fd, message, MESSAGE) > 0)
        ;
}

FRAME void read_messages(int fd)
{
    KEEP_FRAME();
    while (system_call(SYS_read, fd, message, MESSAGE) > 0)
        ;
}

int main(void)
{
    int ends[2];
    char words[32];
    if (pipe(ends))
        return 1;
    pid_t reader = fork();
    if (reader == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[1]);
        read_messages(ends[0]);
        return 0;
    }
    close(ends[0]);
    snprintf(words, sizeof words, "%d", reader);
    announce(words);
    write_messages(ends[1]);
    return 0;
}
