/*
 * Runs machine code that no file holds: a loop copied to anonymous memory, called from
 * `call_the_unnamed`. Ends with code 77 on an architecture for which it has no code.
 *
 * As a runtime would, it tells of its code: after `map` in /tmp/perf-PID.map, where it is called
 * `told_in_a_map`; after `dump FOLDER` in FOLDER/jit-PID.dump, where it is called `told_in_a_dump`. With
 * one more argument it ends by itself after that many milliseconds of CPU time.
 */
#include "workload.h"
#include <fcntl.h>
#include <sys/mman.h>

/* Counts its first argument down to zero, and keeps the frame-pointer chain. */
#if defined(__x86_64__)
static const unsigned char code[] = {
    0x55,                   /* push %rbp */
    0x48, 0x89, 0xe5,       /* mov %rsp, %rbp */
    0x48, 0xff, 0xcf,       /* dec %rdi */
    0x75, 0xfb,             /* jne back to dec */
    0x5d,                   /* pop %rbp */
    0xc3,                   /* ret */
};
#elif defined(__aarch64__)
static const unsigned char code[] = {
    0xfd, 0x7b, 0xbf, 0xa9, /* stp x29, x30, [sp, #-16]! */
    0xfd, 0x03, 0x00, 0x91, /* mov x29, sp */
    0x00, 0x04, 0x00, 0xf1, /* subs x0, x0, #1 */
    0xe1, 0xff, 0xff, 0x54, /* b.ne back to subs */
    0xfd, 0x7b, 0xc1, 0xa8, /* ldp x29, x30, [sp], #16 */
    0xc0, 0x03, 0x5f, 0xd6, /* ret */
};
#else
static const unsigned char code[1];
#endif

FRAME void call_the_unnamed(void (*unnamed)(unsigned long))
{
    unnamed(1000000);
    __asm__ volatile("");
}

static void write_map(void *memory)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (!map)
        exit(1);
    /* Something else was there before. */
    fprintf(map, "%lx %zx of_old\n", (unsigned long)memory, sizeof code);
    fprintf(map, "%lx %zx told_in_a_map\n", (unsigned long)memory, sizeof code);
    fclose(map);
}

static void write_dump(void *memory, const char *folder)
{
    static const char name[] = "told_in_a_dump";
    struct {
        uint32_t magic, version, size, machine, pad, pid;
        uint64_t time, flags;
    } header = {0x4a695444, 1, sizeof header, 0, 0, (uint32_t)getpid(), 0, 0};
    struct {
        uint32_t kind, size;
        uint64_t time;
        uint32_t pid, tid;
        uint64_t twin, start, length, number;
    } load = {0, sizeof load + sizeof name + sizeof code, 0, header.pid, header.pid,
              (uintptr_t)memory, (uintptr_t)memory, sizeof code, 1};
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, (int)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, &header, sizeof header) < 0 || write(file, &load, sizeof load) < 0 ||
        write(file, name, sizeof name) < 0 || write(file, code, sizeof code) < 0)
        exit(1);
    /* The sign by which profilers find it. */
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
        exit(1);
}

int main(int argc, char **argv)
{
    if (sizeof code == 1)
        return 77;
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    memcpy(memory, code, sizeof code);
    if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
        return 1;
    __builtin___clear_cache((char *)memory, (char *)memory + sizeof code);
    int next = 1;
    if (argc > 1 && !strcmp(argv[1], "map")) {
        write_map(memory);
        next = 2;
    } else if (argc > 2 && !strcmp(argv[1], "dump")) {
        write_dump(memory, argv[2]);
        next = 3;
    }
    uint64_t most = (uint64_t)argument(argc, argv, next, 1000000) * 1000000u;
    announce("");
    while (!stopped && clock_ns(CLOCK_PROCESS_CPUTIME_ID) < most)
        call_the_unnamed((void (*)(unsigned long))(uintptr_t)memory);
    return 0;
}
