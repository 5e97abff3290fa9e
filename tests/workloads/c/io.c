/*
 * A known number of calls that read, write and sync, of a known number of bytes, each kind from a function of
 * its own; and two that wait, for a time that they measure.
 *
 * io FILE   makes FILE, and begins when SIGUSR1 says so. Prints `truth FUNCTION NANOSECONDS` for those that
 *           wait, and ends.
 */
#include "workload.h"
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

static char buffer[4096];

static void must(int done)
{
    if (!done)
        abort();
}

FRAME void writes(int fd)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 50; turn++)
        must(write(fd, buffer, 1000) == 1000);
}

FRAME void reads(int fd)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 100; turn++)
        must(pread(fd, buffer, 400, 0) == 400);
}

FRAME void syncs(int fd)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 3; turn++)
        must(fsync(fd) == 0);
}

FRAME void through_pipe(const int *ends)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 20; turn++) {
        must(write(ends[1], buffer, 300) == 300);
        must(read(ends[0], buffer, 300) == 300);
    }
}

FRAME void through_socket(const int *ends)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 10; turn++) {
        must(send(ends[1], buffer, 200, 0) == 200);
        must(recv(ends[0], buffer, 200, 0) == 200);
    }
}

FRAME void sends_file(int socket, int fd)
{
    KEEP_FRAME();
    for (int turn = 0; turn < 5; turn++) {
        off_t from = 0;
        must(sendfile(socket, fd, &from, 100) == 100);
    }
}

FRAME uint64_t waits_for_pipe(int fd)
{
    uint64_t spent = 0;
    KEEP_FRAME();
    for (int turn = 0; turn < 5; turn++) {
        uint64_t begun = clock_ns(CLOCK_MONOTONIC);
        must(read(fd, buffer, 1) == 1);
        spent += clock_ns(CLOCK_MONOTONIC) - begun;
    }
    return spent;
}

FRAME uint64_t sleeps(void)
{
    uint64_t begun = clock_ns(CLOCK_MONOTONIC);
    KEEP_FRAME();
    for (int turn = 0; turn < 4; turn++)
        sleep_us(50000);
    return clock_ns(CLOCK_MONOTONIC) - begun;
}

int main(int argc, char **argv)
{
    int ends[2], sockets[2], slow[2];
    int fd = open(argc > 1 ? argv[1] : "/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && !pipe(ends) && !pipe(slow) && !socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    listen_for_a_word();
    announce("");
    while (!told && !stopped)
        pause();
    writes(fd);
    reads(fd);
    syncs(fd);
    through_pipe(ends);
    through_socket(sockets);
    sends_file(sockets[0], fd);
    pid_t writer = fork();
    if (writer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int turn = 0; turn < 5; turn++) {
            sleep_us(40000);
            must(write(slow[1], buffer, 1) == 1);
        }
        sleep_us(1000000);
        _exit(0);
    }
    uint64_t waited = waits_for_pipe(slow[0]);
    uint64_t slept = sleeps();
    printf("truth waits_for_pipe %llu\n", (unsigned long long)waited);
    printf("truth sleeps %llu\n", (unsigned long long)slept);
    fflush(stdout);
    return 0;
}
