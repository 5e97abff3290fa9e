/*
 * Named threads with known appetites.
 *
 * spin NAME=BUSY_US/IDLE_US...   one thread each; each runs `spin_thread` and burns in `busy`.
 *                                Prints `ready TID...` in the order given.
 */
#include "workload.h"
#include <pthread.h>
#include <sys/syscall.h>

enum { MAX_THREADS = 16 };

struct appetite {
    char name[16];
    unsigned long busy_us, idle_us;
    int tid;
};

static pthread_barrier_t barrier;

FRAME void busy(unsigned long us)
{
    uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000u;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        burn(5000);
}

FRAME void *spin_thread(void *argument)
{
    struct appetite *mine = argument;
    prctl(PR_SET_NAME, mine->name);
    mine->tid = (int)syscall(SYS_gettid);
    pthread_barrier_wait(&barrier);
    while (!stopped) {
        busy(mine->busy_us);
        if (mine->idle_us)
            sleep_us(mine->idle_us);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct appetite appetites[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    char words[256] = "";
    int count = argc - 1 < MAX_THREADS ? argc - 1 : MAX_THREADS;
    pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        struct appetite *next = &appetites[i];
        if (sscanf(argv[i + 1], "%15[^=]=%lu/%lu", next->name, &next->busy_us, &next->idle_us) != 3)
            return 2;
        pthread_create(&threads[i], NULL, spin_thread, next);
    }
    if (count)
        prctl(PR_SET_NAME, appetites[0].name);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < count; i++) {
        size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, i ? " %d" : "%d", appetites[i].tid);
    }
    announce(words);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
