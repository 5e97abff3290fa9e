/*
 * Loaded into a program, takes MEBIBYTES of its memory two and a half seconds later.
 *
 * -DMEBIBYTES=N  how many
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *take(void *nothing)
{
    size_t bytes = (size_t)MEBIBYTES << 20;
    usleep(2500000);
    char *memory = malloc(bytes);
    if (memory)
        memset(memory, 1, bytes);
    /* So that the compiler keeps what nobody reads. */
    __asm__ volatile("" : : "r"(memory) : "memory");
    return nothing;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, take, NULL);
}
