/*
 * Keeps one CPU busy, much as a service would: some hundreds of call paths, 5 to 36 calls deep, and
 * a share of the time in the kernel.
 *
 * bench_load CPU   keeps to CPU and runs until it is stopped.
 */
#include "workload.h"
#include <fcntl.h>
#include <sched.h>

enum { PATHS = 512, BUFFER = 1 << 19 };

static int zero;
static char buffer[BUFFER];

/* One leaf in eight has the kernel fill a buffer. */
FRAME void leaf(uint32_t path)
{
    if (path % 8 == 0 && read(zero, buffer, sizeof buffer) != (ssize_t)sizeof buffer)
        exit(3);
    burn(20000);
    __asm__ volatile("");
}

FRAME void call(uint32_t path, int left);

#define WAY(number)                                                                               \
    FRAME void way_##number(uint32_t path, int left)                                              \
    {                                                                                             \
        burn(200);                                                                                \
        call(path, left);                                                                         \
        __asm__ volatile("");                                                                     \
    }

WAY(0) WAY(1) WAY(2) WAY(3) WAY(4) WAY(5) WAY(6) WAY(7)

FRAME void call(uint32_t path, int left)
{
    static void (*const ways[])(uint32_t, int) = {way_0, way_1, way_2, way_3,
                                                  way_4, way_5, way_6, way_7};
    if (left <= 0)
        leaf(path >> 16);
    else
        ways[path >> 29](path * 1664525u + 1013904223u, left - 2);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)argument(argc, argv, 1, 0), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        return 2;
    zero = open("/dev/zero", O_RDONLY);
    announce("");
    for (uint32_t path = 0; !stopped; path = (path + 1) % PATHS)
        call(path * 2654435761u, 4 + (int)(path % 32));
    return 0;
}
