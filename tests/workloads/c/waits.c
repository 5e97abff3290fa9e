/*
 * Threads that wait in known ways, each for a time that it measures itself: a sleep of 100 ms, a lock
 * that another holds, a pipe that another writes to, a condition that another signals, one that spins,
 * and one that waits for what never comes.
 *
 * waits [TIMES [DEPTH]]  until SIGTERM, each wait so many times shorter, and below so many more frames.
 *                        Prints at the end, as `truth FUNCTION NANOSECONDS` lines, for how long each
 *                        function waited between SIGUSR1 and SIGUSR2.
 *
 * Each wait is made in a function of its own, which another function calls: where callers are lost, the
 * innermost is.
 */
#include "workload.h"

#include <pthread.h>

enum { SLEEP, LOCK, PIPE, CONDITION, NEVER, WAYS };

static const char *const names[WAYS] = {
    "wait_sleep", "wait_lock", "wait_pipe", "wait_condition", "wait_never",
};

/* What each thread has waited for, and since when it waits now; zero while it does not. */
static struct {
    uint64_t spent, since;
} __attribute__((aligned(64))) waited[WAYS];

/* Set by signal handlers in the midst of anything. */
static volatile uint64_t from, until;

static void mark_from(int signal)
{
    (void)signal;
    from = clock_ns(CLOCK_MONOTONIC);
}

static void mark_until(int signal)
{
    (void)signal;
    until = clock_ns(CLOCK_MONOTONIC);
}

/* The part of a wait that lies between the marks. */
static uint64_t within(uint64_t begin, uint64_t end)
{
    if (!from)
        return 0;
    if (begin < from)
        begin = from;
    if (until && end > until)
        end = until;
    return end > begin ? end - begin : 0;
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t signalled = PTHREAD_COND_INITIALIZER;
static int ends[2], turns, never[2];

static unsigned long times = 1, depth;

FRAME void wait_sleep(void) { KEEP_FRAME(); sleep_us(100000 / times); __asm__ volatile(""); }

FRAME void wait_lock(void)
{
    KEEP_FRAME();
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
}

FRAME void wait_pipe(void)
{
    char byte;
    KEEP_FRAME();
    if (read(ends[0], &byte, 1) != 1)
        abort();
    __asm__ volatile("");
}

FRAME void wait_condition(void)
{
    KEEP_FRAME();
    pthread_mutex_lock(&guard);
    int seen = turns;
    while (turns == seen)
        pthread_cond_wait(&signalled, &guard);
    pthread_mutex_unlock(&guard);
}

FRAME void wait_never(void)
{
    char byte;
    KEEP_FRAME();
    if (read(never[0], &byte, 1) != 1)
        abort();
    __asm__ volatile("");
}

static void (*const waits[WAYS])(void) = {
    wait_sleep, wait_lock, wait_pipe, wait_condition, wait_never,
};

/* Between two waits for the lock its holder must have it again. */
FRAME void rest(long way)
{
    KEEP_FRAME();
    if (way == LOCK)
        sleep_us(20000 / times);
}

FRAME void *waiter(void *argument)
{
    long way = (long)argument;
    KEEP_FRAME();
    for (;;) {
        uint64_t before = clock_ns(CLOCK_MONOTONIC);
        __atomic_store_n(&waited[way].since, before, __ATOMIC_RELAXED);
        waits[way]();
        uint64_t after = clock_ns(CLOCK_MONOTONIC);
        __atomic_store_n(&waited[way].since, 0, __ATOMIC_RELAXED);
        waited[way].spent += within(before, after);
        rest(way);
    }
}

FRAME void descend(void *argument, unsigned long frames)
{
    KEEP_FRAME();
    if (frames > 0)
        descend(argument, frames - 1);
    else
        waiter(argument);
    __asm__ volatile("");
}

FRAME void *deep_waiter(void *argument)
{
    KEEP_FRAME();
    descend(argument, depth);
    return NULL;
}

/* Holds the lock, and tells the others to go on, in 40 ms of every 50. */
FRAME void *giver(void *argument)
{
    (void)argument;
    KEEP_FRAME();
    for (;;) {
        pthread_mutex_lock(&held);
        sleep_us(40000 / times);
        pthread_mutex_unlock(&held);
        pthread_mutex_lock(&guard);
        turns++;
        pthread_cond_signal(&signalled);
        pthread_mutex_unlock(&guard);
        if (write(ends[1], "", 1) != 1)
            abort();
        sleep_us(10000 / times);
    }
}

FRAME void *spinner(void *argument)
{
    (void)argument;
    KEEP_FRAME();
    for (;;)
        burn(100000);
}

static void start(void *(*function)(void *), long argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, (void *)argument))
        abort();
}

int main(int count, char **arguments)
{
    sigset_t all;
    if (count > 1)
        times = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        depth = strtoul(arguments[2], NULL, 10);
    if (pipe(ends) || pipe(never))
        abort();
    /* The marks are for this thread alone: a signal would end the others' waits. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (long way = 0; way < WAYS; way++)
        start(depth > 0 ? deep_waiter : waiter, way);
    start(giver, 0);
    start(spinner, 0);
    pthread_sigmask(SIG_UNBLOCK, &all, NULL);
    signal(SIGUSR1, mark_from);
    signal(SIGUSR2, mark_until);
    sleep_us(50000);
    announce("");
    while (!stopped)
        pause();
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    for (int way = 0; way < WAYS; way++) {
        uint64_t since = __atomic_load_n(&waited[way].since, __ATOMIC_RELAXED);
        uint64_t spent = waited[way].spent + (since ? within(since, now) : 0);
        printf("truth %s %llu\n", names[way], (unsigned long long)spent);
    }
    return 0;
}
