/*
 * Captures its own stack at whatever instruction a timer interrupts: `capture FILE COUNT` writes COUNT
 * records of 64-bit words to FILE, and its mappings to FILE.maps. A record is
 *
 *     registers   in the order of DWARF's numbers, then the instruction pointer
 *     callers     how many, then their addresses, as the C library's own unwinder finds them
 *     stack       the address of the first word, how many words, then the words
 *
 * The work is chosen for frames that are hard to leave: recursion, callbacks from the C library,
 * realigned and huge frames, signal handlers, the vDSO, calls through the procedure linkage table.
 */
#include "workload.h"
#include <alloca.h>
#include <execinfo.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sys/time.h>
#include <ucontext.h>

enum { MOST_CALLERS = 256, RED_ZONE_BYTES = 128 };

static int file;
static volatile int captured, wanted;
static const uint64_t *stack_top;

static void put(const void *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(file, bytes, count);
        if (written <= 0)
            _exit(1);
        bytes = (const char *)bytes + written;
        count -= (size_t)written;
    }
}

static void capture(int signal, siginfo_t *about, void *interrupted)
{
    static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
                                REG_RIP};
    const greg_t *registers = ((ucontext_t *)interrupted)->uc_mcontext.gregs;
    void *found[MOST_CALLERS];
    (void)signal, (void)about;
    if (captured >= wanted)
        return;
    captured++;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        put(&registers[order[i]], 8);
    /*
     * Its own frame and the trampoline come first. The trampoline may also be what was interrupted, in
     * an earlier handler's end, and so be there twice.
     */
    int count = backtrace(found, MOST_CALLERS), first = 2;
    while (first < count && found[first] != (void *)registers[REG_RIP])
        first++;
    first++;
    uint64_t callers = first < count ? (uint64_t)(count - first) : 0;
    put(&callers, 8);
    put(&found[first], 8 * callers);
    uint64_t start = ((uint64_t)registers[REG_RSP] & ~7ull) - RED_ZONE_BYTES;
    uint64_t words = ((uint64_t)stack_top - start) / 8;
    put(&start, 8);
    put(&words, 8);
    put((const void *)start, 8 * words);
}

static FRAME int recurse(int depth, const char *text)
{
    char room[24];
    snprintf(room, sizeof room, "%d %.8s", depth, text);
    return depth ? recurse(depth - 1, room) + (int)strlen(room) : 0;
}

static FRAME int compare(const void *a, const void *b)
{
    char left[16], right[16];
    snprintf(left, sizeof left, "%d", *(const int *)a);
    snprintf(right, sizeof right, "%d", *(const int *)b);
    return strcmp(left, right);
}

static FRAME int sorting(void)
{
    int numbers[300];
    for (int i = 0; i < 300; i++)
        numbers[i] = (i * 7919) % 301;
    qsort(numbers, 300, sizeof *numbers, compare);
    return recurse(3, "sorted") + numbers[7];
}

static FRAME int realigned(int count)
{
    int table[16] __attribute__((aligned(64)));
    char *more = alloca((size_t)count * 16 + 1);
    memset(more, count, (size_t)count * 16 + 1);
    memset(table, more[0], sizeof table);
    return recurse(4, "aligned") + table[count & 15];
}

static FRAME int huge(int count)
{
    volatile char room[100000];
    for (int i = 0; i < 100000; i += 997)
        room[i] = (char)count;
    return sorting() + room[997];
}

static FRAME void in_handler(int signal)
{
    recurse(5 + (signal & 1), "signalled");
}

static FRAME int clocks(void)
{
    struct timespec now;
    int sum = 0;
    for (int i = 0; i < 200; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        sum += (int)now.tv_nsec;
    }
    return sum;
}

static FRAME int jumping(int count)
{
    jmp_buf there;
    if (setjmp(there))
        return recurse(2, "jumped");
    if (count)
        longjmp(there, 1);
    return 0;
}

static FRAME int work(void)
{
    int sum = recurse(30, "deep") + sorting() + realigned(captured % 9) + huge(captured) + clocks();
    for (int i = 0; i < 50; i++)
        sum += jumping(i);
    raise(SIGUSR1);
    char *heap[64];
    for (int i = 0; i < 64; i++)
        heap[i] = strdup("strings on the heap, of some length");
    for (int i = 0; i < 64; i++)
        free(heap[i]);
    return sum;
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    char maps[4096];
    void *warm[8];
    file = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    wanted = atoi(arguments[2]);
    stack_top = (const uint64_t *)arguments;
    backtrace(warm, 8);
    struct sigaction alarm = {.sa_sigaction = capture, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction usual = {.sa_handler = in_handler};
    sigaction(SIGALRM, &alarm, NULL);
    sigaction(SIGUSR1, &usual, NULL);
    struct itimerval often = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &often, NULL);
    volatile int sum = 0;
    while (captured < wanted)
        sum += work();
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    snprintf(maps, sizeof maps, "%s.maps", arguments[1]);
    FILE *from = fopen("/proc/self/maps", "r"), *to = fopen(maps, "w");
    if (!from || !to)
        return 1;
    while (fgets(maps, sizeof maps, from))
        fputs(maps, to);
    return fclose(to);
}
