/* Takes page faults in `touch_pages`, by dropping memory and touching it again. */
#include "workload.h"
#include <sys/mman.h>

enum { PAGES = 64, PAGE = 65536 };

FRAME void touch_pages(volatile char *memory)
{
    KEEP_FRAME();
    for (long page = 0; page < PAGES; page++)
        memory[page * PAGE] = 1;
}

int main(void)
{
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    announce("");
    while (!stopped) {
        touch_pages(memory);
        madvise(memory, PAGES * PAGE, MADV_DONTNEED);
        burn(10000);
    }
    return 0;
}
