/*
 * Network load on loopback that spends most of a CPU in softirqs.
 *
 * filters   sends datagrams to many sockets that each look at one for microseconds, in the softirq that the send itself
 *           serves, and burns a little in between. It runs before all others if it may: the kernel's ticks fall together
 *           with switches of tasks. Prints `ready first` or `ready`, and four times a second the kernel's account of
 *           softirqs.
 */
#include "workload.h"
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { RECEIVERS = 200, STEPS = 4000, LONGEST_BURN = 200000 };

/* A filter that multiplies for microseconds, and takes no datagram. One for all, so that its code stays in the caches. */
static int filter(void)
{
    static struct bpf_insn steps[STEPS];
    for (int i = 0; i < STEPS - 2; i++)
        steps[i] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MUL | BPF_K, .imm = 0x5851f42d };
    steps[0].code = steps[STEPS - 2].code = BPF_ALU64 | BPF_MOV | BPF_K;
    steps[STEPS - 2].imm = 0;
    steps[STEPS - 1].code = BPF_JMP | BPF_EXIT;
    union bpf_attr load = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = STEPS };
    load.insns = (uint64_t)(uintptr_t)steps;
    load.license = (uint64_t)(uintptr_t)"GPL";
    return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load);
}

static int receive(uint16_t port, int filter)
{
    int receiver = socket(AF_INET, SOCK_DGRAM, 0), yes = 1;
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_ANY) };
    setsockopt(receiver, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(receiver, (struct sockaddr *)&here, sizeof here) ||
        setsockopt(receiver, SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof filter))
        exit(2);
    return receiver;
}

int main(void)
{
    int looks = filter(), first = receive(0, looks), sender = socket(AF_INET, SOCK_DGRAM, 0), yes = 1;
    struct sockaddr_in to;
    socklen_t size = sizeof to;
    if (getsockname(first, (struct sockaddr *)&to, &size))
        return 2;
    for (int i = 1; i < RECEIVERS; i++)
        receive(to.sin_port, looks);
    /* A datagram to all is filtered by each. */
    to.sin_addr.s_addr = htonl(0x7fffffff);
    setsockopt(sender, SOL_SOCKET, SO_BROADCAST, &yes, sizeof yes);
    struct sched_param priority = { .sched_priority = 10 };
    announce(sched_setscheduler(0, SCHED_FIFO, &priority) ? "" : "first");
    uint64_t next = 0;
    while (!stopped) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (now >= next) {
            print_softirqs();
            next = now + 250000000u;
        }
        if (sendto(sender, "x", 1, 0, (const struct sockaddr *)&to, sizeof to) < 0)
            return 2;
        burn((unsigned long)random() % LONGEST_BURN);
    }
    return 0;
}
