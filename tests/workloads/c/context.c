/*
 * Publishes in its memory which service it is part of, as OpenTelemetry's OTEP 4719 says, and burns in `serve`.
 *
 * context NAME INSTANCE [HOW]   Where HOW is `later`, it publishes when SIGUSR1 says so; where it is `newer`, a version to come;
 *                               `large`, more than there should be; `nowhere`, something where nothing is.
 */
#include "workload.h"
#include <sys/mman.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum { MAPPED = 4096, MOST = 1024 };

/* The mapping's beginning. */
struct header {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    uint64_t published_at_ns;
    uint64_t payload;
};

/* A message that is written from its end on, so that its length is known. */
struct message {
    unsigned char bytes[MOST];
    size_t begin;
};

static void prepend(struct message *message, const void *bytes, size_t size)
{
    if (size > message->begin)
        abort();
    message->begin -= size;
    memcpy(message->bytes + message->begin, bytes, size);
}

/* Makes all from its beginning to `end` the field of this number. */
static void wrap(struct message *message, int number, size_t end)
{
    size_t size = end - message->begin;
    unsigned char head[3] = {(unsigned char)(number << 3 | 2), (unsigned char)(0x80 | (size & 0x7f)),
                             (unsigned char)(size >> 7)};
    prepend(message, head, sizeof head);
}

static void text(struct message *message, int number, const char *text)
{
    size_t end = message->begin;
    prepend(message, text, strlen(text));
    wrap(message, number, end);
}

/* An attribute of the resource. */
static void attribute(struct message *message, const char *key, const char *value)
{
    size_t end = message->begin;
    text(message, 1, value);
    wrap(message, 2, end);
    text(message, 1, key);
    wrap(message, 1, end);
}

static void publish(const char *name, const char *instance, const char *how)
{
    struct message message = {.begin = MOST};
    attribute(&message, "service.instance.id", instance);
    attribute(&message, "container.id", "not its own");
    attribute(&message, "service.name", name);
    wrap(&message, 1, MOST);
    size_t size = MOST - message.begin;

    int file = memfd_create("OTEL_CTX", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, MAPPED))
        abort();
    char *mapped = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    if (mapped == MAP_FAILED || madvise(mapped, MAPPED, MADV_DONTFORK))
        abort();
    struct header *header = (struct header *)mapped;
    memcpy(mapped + sizeof *header, message.bytes + message.begin, size);
    header->version = strcmp(how, "newer") ? 2 : 3;
    header->payload_size = strcmp(how, "large") ? (uint32_t)size : 1 << 20;
    header->published_at_ns = clock_ns(CLOCK_BOOTTIME);
    header->payload = strcmp(how, "nowhere") ? (uint64_t)(uintptr_t)(mapped + sizeof *header) : 0;
    __sync_synchronize();
    memcpy(header->signature, "OTEL_CTX", sizeof header->signature);
    /* Not every kernel names memory; the file's name stays where it does not. */
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, mapped, MAPPED, "OTEL_CTX");
}

FRAME void serve(void)
{
    burn(100000);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *how = argc > 3 ? argv[3] : "";
    int later = !strcmp(how, "later");
    if (!later)
        publish(argv[1], argv[2], how);
    listen_for_a_word();
    announce("");
    while (!stopped) {
        serve();
        if (later && told) {
            later = 0;
            publish(argv[1], argv[2], how);
        }
    }
    return 0;
}
