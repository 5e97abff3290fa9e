/*
 * Is interrupted by SIGALRM all the time, and spends as much in the handler as outside of it:
 *
 *     main;outside;interrupted;burn     the same;<trampoline>;on_alarm;inside;burn
 *
 * signals usual   the handler runs on the stack that was interrupted
 *         below   on one of its own, at lower addresses
 *         above   on one of its own, in a caller's frame
 */
#include "workload.h"
#include <sys/mman.h>
#include <sys/time.h>

enum { STACK_BYTES = 1 << 17 };

FRAME void inside(void)
{
    burn(200000);
    __asm__ volatile("");
}

FRAME void on_alarm(int signal)
{
    (void)signal;
    inside();
    __asm__ volatile("");
}

FRAME void interrupted(void)
{
    burn(300);
    __asm__ volatile("");
}

FRAME void outside(void)
{
    while (!stopped)
        interrupted();
}

int main(int argc, char **argv)
{
    char here[STACK_BYTES];
    const char *where = argc > 1 ? argv[1] : "usual";
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    stack_t stack = {.ss_sp = here, .ss_size = sizeof here};
    if (strcmp(where, "below") == 0)
        stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED)
        return 1;
    if (strcmp(where, "usual") != 0) {
        action.sa_flags |= SA_ONSTACK;
        if (sigaltstack(&stack, NULL))
            return 1;
    }
    announce("");
    alarm(0);
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &often, NULL);
    outside();
    return 0;
}
