/*
 * Moves its own text to other memory at the same addresses, as programs do to have huge pages under
 * their code, and then spends its time there.
 *
 * moved KIND   `anonymous`, `shared` (without a file), `file` (in memory) or `segment` (System V).
 */
#include "workload.h"
#include <sys/mman.h>
#include <sys/shm.h>

FRAME void inner(void) { burn(200000); __asm__ volatile(""); }
FRAME void outer(void) { inner(); __asm__ volatile(""); }

/* Where the text lies, by the line of /proc/self/maps. */
static void find_text(uintptr_t *start, uintptr_t *end)
{
    char line[512], mode[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", start, end, mode) == 3 && mode[2] == 'x' &&
            *start <= (uintptr_t)outer && (uintptr_t)outer < *end)
            break;
    fclose(maps);
}

static int move_text(const char *kind)
{
    uintptr_t start, end;
    find_text(&start, &end);
    size_t size = end - start;
    void *place = (void *)start;
    if (strcmp(kind, "segment") == 0) {
        int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0700);
        void *copy = shmat(id, NULL, 0);
        if (copy == MAP_FAILED)
            return 0;
        memcpy(copy, place, size);
        shmdt(copy);
        copy = shmat(id, place, SHM_REMAP | SHM_EXEC | SHM_RDONLY);
        shmctl(id, IPC_RMID, NULL);
        return copy == place;
    }
    if (strcmp(kind, "file") == 0) {
        int memory = memfd_create("text", 0);
        return write(memory, place, size) == (ssize_t)size &&
               mmap(place, size, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, memory, 0) == place;
    }
    int sharing = strcmp(kind, "shared") == 0 ? MAP_SHARED : MAP_PRIVATE;
    void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return 0;
    memcpy(copy, place, size);
    mprotect(copy, size, PROT_READ | PROT_EXEC);
    return mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place;
}

int main(int argc, char **argv)
{
    if (!move_text(argc > 1 ? argv[1] : "anonymous"))
        return 1;
    announce("");
    while (!stopped)
        outer();
    return 0;
}
