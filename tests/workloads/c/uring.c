/*
 * Has a worker of io_uring's, a thread of this process that the kernel made, read a file once; then both wait.
 */
#include "workload.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static FRAME int submit(void)
{
    struct io_uring_params made = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &made);
    if (ring < 0)
        return 1;
    size_t bytes = made.sq_off.array + made.sq_entries * sizeof(uint32_t);
    char *queue = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    bytes = made.sq_entries * sizeof(struct io_uring_sqe);
    struct io_uring_sqe *request =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (queue == MAP_FAILED || request == MAP_FAILED)
        return 1;
    static char buffer[4096];
    memset(request, 0, sizeof *request);
    request->opcode = IORING_OP_READ;
    request->flags = IOSQE_ASYNC;
    request->fd = open("/proc/self/exe", O_RDONLY);
    request->addr = (uintptr_t)buffer;
    request->len = sizeof buffer;
    *(uint32_t *)(queue + made.sq_off.array) = 0;
    __atomic_fetch_add((uint32_t *)(queue + made.sq_off.tail), 1, __ATOMIC_RELEASE);
    return syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1 ? 0 : 1;
}

int main(void)
{
    if (submit())
        return 3;
    announce("");
    while (!stopped)
        sleep_us(10000000);
    return 0;
}
