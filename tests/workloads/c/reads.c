/*
 * Two threads, each of which waits in one system call, read, at three places of the kernel in turn: for a pipe, for an
 * event, and for a timer. A third thread sees to it that each wait ends within a millisecond.
 *
 * reads  until SIGTERM. Each wait is made in a function of its own: read_pipe, read_event, read_timer.
 */
#include "workload.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

enum { READERS = 2 };

static int pipes[READERS][2], events[READERS];

FRAME void read_pipe(int fd)
{
    /* All that has been given: who once came late would find a byte each time, and never wait again. */
    char given[256];
    KEEP_FRAME();
    if (read(fd, given, sizeof given) < 1)
        abort();
    __asm__ volatile("");
}

FRAME void read_event(int fd)
{
    uint64_t count;
    KEEP_FRAME();
    if (read(fd, &count, sizeof count) != sizeof count)
        abort();
    __asm__ volatile("");
}

FRAME void read_timer(int fd)
{
    const struct itimerspec soon = { .it_value.tv_nsec = 300000 };
    uint64_t times;
    KEEP_FRAME();
    if (timerfd_settime(fd, 0, &soon, NULL) || read(fd, &times, sizeof times) != sizeof times)
        abort();
    __asm__ volatile("");
}

FRAME void *reader(void *argument)
{
    long which = (long)argument;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    KEEP_FRAME();
    for (;;) {
        read_pipe(pipes[which][0]);
        read_event(events[which]);
        read_timer(timer);
    }
}

FRAME void *giver(void *argument)
{
    const uint64_t one = 1;
    (void)argument;
    KEEP_FRAME();
    for (;;) {
        for (int which = 0; which < READERS; which++)
            if (write(pipes[which][1], "", 1) != 1)
                abort();
        sleep_us(300);
        for (int which = 0; which < READERS; which++)
            if (write(events[which], &one, sizeof one) != sizeof one)
                abort();
        sleep_us(600);
    }
}

static void start(void *(*function)(void *), long argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, (void *)argument))
        abort();
}

int main(void)
{
    for (int which = 0; which < READERS; which++)
        if (pipe(pipes[which]) || (events[which] = eventfd(0, 0)) < 0)
            abort();
    for (long which = 0; which < READERS; which++)
        start(reader, which);
    start(giver, 0);
    announce("");
    while (!stopped)
        pause();
    return 0;
}
