/*
 * Writes into private mappings of a file whose pages are all in memory, while other threads hold the lock of the process's
 * mappings. The first write to such a mapping has to have that lock (`vmf_anon_prepare` in the kernel's mm/memory.c).
 *
 * contended FILE   makes FILE, and begins when SIGUSR1 says so. Prints `faults touches MAJOR` and `switches touches
 *                  VOLUNTARY` of the thread that touches, and ends.
 */
#include "workload.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { PAGE = 4096, PAGES = 256, OTHERS = 3, ROUNDS = 10000 };

static volatile int over;

static void must(int done)
{
    if (!done)
        abort();
}

static char *map(int flags, int fd)
{
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
    must(memory != MAP_FAILED);
    return memory;
}

static void *maps(void *nothing)
{
    while (!over)
        must(munmap(map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1), PAGES * PAGE) == 0);
    return nothing;
}

FRAME void touches(int fd)
{
    KEEP_FRAME();
    for (int round = 0; round < ROUNDS; round++) {
        volatile char *memory = map(MAP_PRIVATE, fd);
        memory[round % PAGES * PAGE] = 1;
        must(munmap((char *)memory, PAGES * PAGE) == 0);
    }
}

int main(int argc, char **argv)
{
    static char page[PAGE] = {1};
    struct rusage before, after;
    pthread_t others[OTHERS];
    must(argc > 1);
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0);
    for (long written = 0; written < PAGES; written++)
        must(write(fd, page, PAGE) == PAGE);
    listen_for_a_word();
    announce("");
    while (!told && !stopped)
        pause();
    for (int other = 0; other < OTHERS; other++)
        must(pthread_create(&others[other], NULL, maps, NULL) == 0);
    must(getrusage(RUSAGE_THREAD, &before) == 0);
    touches(fd);
    must(getrusage(RUSAGE_THREAD, &after) == 0);
    over = 1;
    for (int other = 0; other < OTHERS; other++)
        must(pthread_join(others[other], NULL) == 0);
    printf("faults touches %ld\n", after.ru_majflt - before.ru_majflt);
    printf("switches touches %ld\n", after.ru_nvcsw - before.ru_nvcsw);
    fflush(stdout);
    return 0;
}
