/*
 * Waits for locks: `contender` for a mutex that another thread holds for 30 ms at a time, ten times over, which
 * it measures; and in `mapper`, for the kernel's lock of its mappings, with other threads that want it too.
 *
 * locks   begins when SIGUSR1 says so. Prints `truth contender NANOSECONDS`, and ends.
 */
#include "workload.h"
#include <pthread.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;

enum { TURNS = 10, MAPPERS = 4, MAPPINGS = 4000 };

static void *holder(void *unused)
{
    (void)unused;
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(&held);
        sleep_us(30000);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&held);
    }
    return NULL;
}

FRAME uint64_t contender(void)
{
    uint64_t spent = 0;
    KEEP_FRAME();
    uint64_t begun = clock_ns(CLOCK_MONOTONIC);
    pthread_mutex_lock(&lock);
    spent = clock_ns(CLOCK_MONOTONIC) - begun;
    pthread_mutex_unlock(&lock);
    return spent;
}

FRAME void mapper(void)
{
    KEEP_FRAME();
    for (int turn = 0; turn < MAPPINGS; turn++) {
        char *page = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        page[0] = 1;
        munmap(page, 1 << 16);
    }
}

static void *map(void *unused)
{
    (void)unused;
    mapper();
    return NULL;
}

int main(void)
{
    pthread_t thread, mappers[MAPPERS];
    uint64_t waited = 0;
    pthread_barrier_init(&held, NULL, 2);
    listen_for_a_word();
    announce("");
    while (!told && !stopped)
        pause();
    pthread_create(&thread, NULL, holder, NULL);
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_barrier_wait(&held);
        waited += contender();
        pthread_barrier_wait(&held);
    }
    pthread_join(thread, NULL);
    for (int number = 0; number < MAPPERS; number++)
        pthread_create(&mappers[number], NULL, map, NULL);
    for (int number = 0; number < MAPPERS; number++)
        pthread_join(mappers[number], NULL);
    printf("truth contender %llu\n", (unsigned long long)waited);
    fflush(stdout);
    return 0;
}
