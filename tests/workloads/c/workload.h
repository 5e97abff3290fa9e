/*
 * What the C and C++ workloads share: saying that they are ready, burning CPU in known amounts, and
 * dying of old age should the test that started them be gone.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* A function that must be a frame of its own: never inlined, cloned or renamed. */
#define FRAME __attribute__((noipa))

/*
 * GCC leaves the frame pointer out of leaves that need no stack whatever it is told, and the leaf's
 * caller would go missing. Asking for the frame's address keeps it, unless FRAMELESS says that nothing
 * shall have a frame pointer.
 */
#ifdef FRAMELESS
#define KEEP_FRAME() ((void)0)
#else
#define KEEP_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))
#endif

/* One turn of the loop is a dependent multiplication, so its cost does not depend on the caller. */
static FRAME void burn(unsigned long turns)
{
    uint64_t x = turns | 1;
    KEEP_FRAME();
    while (turns--) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
}

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void sleep_us(unsigned long us)
{
    struct timespec pause = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    nanosleep(&pause, NULL);
}

static volatile sig_atomic_t stopped;

static inline void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

/* The first line on stdout; `words` may carry process or thread IDs for the test. */
static inline void announce(const char *words)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = stop;
    sigaction(SIGTERM, &action, NULL);
    alarm(240);
    printf("ready%s%s\n", *words ? " " : "", words);
    fflush(stdout);
}

static volatile sig_atomic_t told;

static inline void tell(int signal)
{
    (void)signal;
    told = 1;
}

/* From now on SIGUSR1 sets `told`. Comes before `announce`, behind which the test may send it. */
static inline void listen_for_a_word(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = tell;
    sigaction(SIGUSR1, &action, NULL);
}

static inline long argument(int argc, char **argv, int index, long otherwise)
{
    return index < argc ? strtol(argv[index], NULL, 10) : otherwise;
}

#endif
