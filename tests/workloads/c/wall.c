/*
 * Threads that spend their time in known ways, and a first thread that tells how, by the kernel's own accounts.
 *
 * wall [SPINNERS [FILE]]   until SIGTERM. Prints at SIGUSR2, for each thread, how long it ran, and how long it could have
 *                          run and had no CPU, since SIGUSR1: `truth FUNCTION TID RAN WAITED PASSED`, in nanoseconds.
 *
 * Threads: SPINNERS that only spin (1), one that only sleeps, one that sleeps and never wakes, one that spins for half of
 * the time and sleeps for the other, two that contend for a lock and hold it while they spin, and, if there is a FILE, one
 * that writes to it and waits for the disk.
 */
#include "workload.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>

enum { MOST = 64 };

static struct {
    const char *function;
    pthread_t thread;
    pid_t tid;
    uint64_t ran, delayed;
} threads[MOST];
static int count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int never[2];
static const char *file;

/* By the thread's own clock: however long it takes. */
static void spin_us(unsigned long us)
{
    uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        burn(1000);
}

FRAME void spin_only(void) { KEEP_FRAME(); for (;;) burn(100000); }

FRAME void sleep_only(void) { KEEP_FRAME(); for (;;) sleep_us(30000); }

FRAME void sleep_through(void)
{
    char byte;
    KEEP_FRAME();
    if (read(never[0], &byte, 1) != 1)
        abort();
    __asm__ volatile("");
}

FRAME void spin_half(void) { KEEP_FRAME(); spin_us(20000); __asm__ volatile(""); }
FRAME void sleep_half(void) { KEEP_FRAME(); sleep_us(20000); __asm__ volatile(""); }

FRAME void half_and_half(void)
{
    KEEP_FRAME();
    for (;;) {
        uint64_t end = clock_ns(CLOCK_MONOTONIC) + 40000000;
        spin_half();
        do
            sleep_half();
        while (clock_ns(CLOCK_MONOTONIC) < end);
    }
}

FRAME void contend(void)
{
    KEEP_FRAME();
    for (;;) {
        pthread_mutex_lock(&lock);
        spin_us(4000);
        pthread_mutex_unlock(&lock);
        sleep_us(200);
    }
}

FRAME void write_out(void)
{
    static char bytes[1 << 16];
    int out = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    KEEP_FRAME();
    if (out < 0)
        abort();
    for (;;) {
        if (pwrite(out, bytes, sizeof bytes, 0) < 0 || fsync(out))
            abort();
    }
}

struct start {
    void (*function)(void);
    int number;
};

FRAME void *thread(void *argument)
{
    struct start *start = argument;
    KEEP_FRAME();
    __atomic_store_n(&threads[start->number].tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    start->function();
    return NULL;
}

static void start(const char *name, void (*function)(void))
{
    static struct start starts[MOST];
    if (count == MOST)
        abort();
    starts[count] = (struct start){function, count};
    threads[count].function = name;
    if (pthread_create(&threads[count].thread, NULL, thread, &starts[count]))
        abort();
    while (!__atomic_load_n(&threads[count].tid, __ATOMIC_ACQUIRE))
        sleep_us(100);
    count++;
}

/* What a thread has used of CPUs, and how long it has waited for one, up to now. */
static void account(int number, uint64_t *ran, uint64_t *delayed)
{
    char path[64];
    clockid_t clock;
    unsigned long long used = 0, waited = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", threads[number].tid);
    FILE *stat = fopen(path, "r");
    if (!stat || fscanf(stat, "%llu %llu", &used, &waited) != 2)
        abort();
    fclose(stat);
    if (pthread_getcpuclockid(threads[number].thread, &clock))
        abort();
    *ran = clock_ns(clock);
    *delayed = waited;
}

int main(int argc, char **argv)
{
    sigset_t all;
    uint64_t began = 0;
    long spinners = argument(argc, argv, 1, 1);
    file = argc > 2 ? argv[2] : NULL;
    if (pipe(never))
        abort();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (long spinner = 0; spinner < spinners; spinner++)
        start("spin_only", spin_only);
    start("sleep_only", sleep_only);
    start("sleep_through", sleep_through);
    start("half_and_half", half_and_half);
    start("contend", contend);
    start("contend", contend);
    if (file)
        start("write_out", write_out);
    announce("");
    for (;;) {
        int signal;
        if (sigwait(&all, &signal))
            abort();
        if (signal == SIGTERM || signal == SIGALRM)
            return 0;
        if (signal == SIGUSR1) {
            began = clock_ns(CLOCK_MONOTONIC);
            for (int number = 0; number < count; number++)
                account(number, &threads[number].ran, &threads[number].delayed);
        } else if (signal == SIGUSR2) {
            uint64_t passed = clock_ns(CLOCK_MONOTONIC) - began;
            for (int number = 0; number < count; number++) {
                uint64_t ran, delayed;
                account(number, &ran, &delayed);
                printf("truth %s %d %llu %llu %llu\n", threads[number].function, (int)threads[number].tid,
                       (unsigned long long)(ran - threads[number].ran),
                       (unsigned long long)(delayed - threads[number].delayed), (unsigned long long)passed);
            }
            fflush(stdout);
        }
    }
}
