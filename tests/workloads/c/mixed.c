/*
 * Does a known amount of several things, each in a function of its own, when SIGUSR1 says so, and ends: touches
 * fresh pages in `touch`, sleeps in `nap`, calls `counted` from `caller`, uses the CPU in `spin`. Says how often the
 * kernel counted each: "truth FUNCTION TIMES", of `spin` its nanoseconds.
 */
#include "workload.h"
#include <sys/mman.h>
#include <sys/resource.h>

enum { PAGES = 700, PAGE = 4096, NAPS = 150, CALLS = 400 };

FRAME void touch(volatile char *memory)
{
    KEEP_FRAME();
    for (long page = 0; page < PAGES; page++)
        memory[page * PAGE] = 1;
}

FRAME void nap(void)
{
    KEEP_FRAME();
    for (int times = 0; times < NAPS; times++)
        sleep_us(100);
    __asm__ volatile("");
}

FRAME void counted(void)
{
    KEEP_FRAME();
    __asm__ volatile("");
}

FRAME void caller(void)
{
    KEEP_FRAME();
    for (int times = 0; times < CALLS; times++)
        counted();
    __asm__ volatile("");
}

FRAME void spin(uint64_t ns)
{
    uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    KEEP_FRAME();
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun < ns)
        burn(20000);
    __asm__ volatile("");
}

static struct rusage used(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage;
}

int main(void)
{
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE);
    listen_for_a_word();
    announce("");
    while (!told && !stopped)
        pause();
    struct rusage begun = used();
    touch(memory);
    struct rusage touched = used();
    nap();
    struct rusage napped = used();
    caller();
    spin(500000000);
    printf("truth touch %ld\n", touched.ru_minflt - begun.ru_minflt);
    printf("truth nap %ld\n", napped.ru_nvcsw + napped.ru_nivcsw - touched.ru_nvcsw - touched.ru_nivcsw);
    printf("truth counted %d\n", CALLS);
    fflush(stdout);
    /* So that whoever looked on can still see what is mapped where. */
    sleep_us(300000);
    return 0;
}
