/*
 * Reads and writes files by way of memory, each way from a function of its own.
 *
 * mapped FILE   makes FILE and drops it from the page cache, and begins when SIGUSR1 says so. Prints
 *               `truth FUNCTION NANOSECONDS` and `faults FUNCTION MAJOR`, and ends.
 */
#include "workload.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { PAGE = 4096, PAGES = 600, LONG = 16 * PAGES };

static char buffer[PAGE];
static volatile char sink;

static void must(int done)
{
    if (!done)
        abort();
}

static long major_faults(void)
{
    struct rusage usage;
    must(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_majflt;
}

/* The file's pages are on the disk, and in no memory. */
static void drop(int fd)
{
    must(fsync(fd) == 0);
    must(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
}

static char *map(int fd, int flags, long pages, int advice)
{
    char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
    must(memory != MAP_FAILED);
    must(madvise(memory, pages * PAGE, advice) == 0);
    return memory;
}

static FRAME void touch(volatile char *memory, long pages)
{
    KEEP_FRAME();
    for (long page = 0; page < pages; page++)
        sink = memory[page * PAGE];
}

/* Every page has to be read, one by one. */
FRAME void reads_pages(char *memory)
{
    KEEP_FRAME();
    touch(memory, PAGES);
    KEEP_FRAME();
}

/* The kernel reads on while this goes on, as fast as it can. */
FRAME void reads_on(char *memory)
{
    KEEP_FRAME();
    touch(memory, LONG);
    KEEP_FRAME();
}

/* All pages are in memory. */
FRAME void touches_again(char *memory)
{
    KEEP_FRAME();
    touch(memory, PAGES);
    KEEP_FRAME();
}

FRAME void takes_memory(char *memory)
{
    KEEP_FRAME();
    for (long page = 0; page < PAGES; page++)
        memory[page * PAGE] = 1;
    KEEP_FRAME();
}

/* The kernel touches the pages, in a call that is about a file. */
FRAME void writes_pages(int fd, const char *memory)
{
    KEEP_FRAME();
    for (long page = 0; page < 20; page++)
        must(pwrite(fd, memory + page * PAGE, 100, 0) == 100);
}

/* The kernel touches the pages, in a call that is about none. */
FRAME void asks_by_pages(const char *memory)
{
    struct stat status;
    KEEP_FRAME();
    for (long page = 20; page < 40; page++)
        must(stat(memory + page * PAGE, &status) != 0);
}

static uint64_t begun;
static long faults;

static void begin(void)
{
    faults = major_faults();
    begun = clock_ns(CLOCK_MONOTONIC);
}

static void tell_truth(const char *function)
{
    uint64_t spent = clock_ns(CLOCK_MONOTONIC) - begun;
    printf("truth %s %llu\n", function, (unsigned long long)spent);
    printf("faults %s %ld\n", function, major_faults() - faults);
}

int main(int argc, char **argv)
{
    must(argc > 1);
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0);
    memset(buffer, 'x', sizeof buffer - 1);
    for (long page = 0; page < LONG; page++)
        must(write(fd, buffer, PAGE) == PAGE);
    char other[4096];
    must(snprintf(other, sizeof other, "%s.other", argv[1]) < (int)sizeof other);
    int to = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(to >= 0);
    drop(fd);
    listen_for_a_word();
    announce("");
    while (!told && !stopped)
        pause();

    char *memory = map(fd, MAP_SHARED, PAGES, MADV_RANDOM);
    begin();
    reads_pages(memory);
    tell_truth("reads_pages");

    /* What is mapped cannot be dropped, and what is mapped anew has to be found again. */
    must(munmap(memory, PAGES * PAGE) == 0);
    memory = map(fd, MAP_SHARED, PAGES, MADV_RANDOM);
    begin();
    touches_again(memory);
    tell_truth("touches_again");

    must(munmap(memory, PAGES * PAGE) == 0);
    memory = map(-1, MAP_PRIVATE | MAP_ANONYMOUS, PAGES, MADV_RANDOM);
    begin();
    takes_memory(memory);
    tell_truth("takes_memory");

    must(munmap(memory, PAGES * PAGE) == 0);
    drop(fd);
    memory = map(fd, MAP_SHARED, LONG, MADV_NORMAL);
    begin();
    reads_on(memory);
    tell_truth("reads_on");

    must(munmap(memory, LONG * PAGE) == 0);
    drop(fd);
    memory = map(fd, MAP_SHARED, PAGES, MADV_RANDOM);
    begin();
    writes_pages(to, memory);
    tell_truth("writes_pages");
    begin();
    asks_by_pages(memory);
    tell_truth("asks_by_pages");
    fflush(stdout);
    return 0;
}
