/*
 * Packets on a loopback device of its own, received in softirqs.
 *
 * packets   sends bursts with pauses between them. Where the kernel can steer packets, they are received by the second
 *           CPU, which mostly sleeps until one comes. Prints `ready steered` or `ready`, and four times a second
 *           `softirq NOW TICKS ALL`: nanoseconds since 1970, and the kernel's account of softirqs and of everything.
 */
#include "workload.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>

enum { BURST = 64, PACKET_BYTES = 1000 };

/* Goes into a network with nothing but a loopback device, whose packets the second CPU receives; zero if that is not possible. */
static int steer(void)
{
    if (unshare(CLONE_NEWNET | CLONE_NEWNS))
        return 0;
    struct ifreq device = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    ioctl(control, SIOCSIFFLAGS, &device);
    close(control);
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("packets", "/sys", "sysfs", 0, NULL))
        return 0;
    FILE *steering = fopen("/sys/class/net/lo/queues/rx-0/rps_cpus", "w");
    if (!steering)
        return 0;
    int is_written = fputs("2", steering) >= 0;
    return fclose(steering) == 0 && is_written;
}

static void account(void)
{
    unsigned long long ticks[8] = { 0 }, all = 0;
    FILE *stat = fopen("/proc/stat", "r");
    if (!stat)
        return;
    if (fscanf(stat, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1], &ticks[2], &ticks[3],
               &ticks[4], &ticks[5], &ticks[6], &ticks[7]) == 8) {
        for (int i = 0; i < 8; i++)
            all += ticks[i];
        printf("softirq %llu %llu %llu\n", (unsigned long long)clock_ns(CLOCK_REALTIME), ticks[6], all);
        fflush(stdout);
    }
    fclose(stat);
}

FRAME void send_burst(int from, const struct sockaddr_in *to)
{
    static char packet[PACKET_BYTES];
    for (int i = 0; i < BURST; i++)
        if (sendto(from, packet, sizeof packet, 0, (const struct sockaddr *)to, sizeof *to) < 0)
            return;
}

int main(void)
{
    /* Before the sockets: they are of the network that the process is in. */
    int is_steered = steer();
    int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof here;
    if (bind(receiver, (struct sockaddr *)&here, size) || getsockname(receiver, (struct sockaddr *)&here, &size))
        return 2;
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    announce(is_steered ? "steered" : "");
    uint64_t next = 0;
    while (!stopped) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (now >= next) {
            account();
            next = now + 250000000u;
        }
        for (int i = 0; i < 8; i++)
            send_burst(sender, &here);
        sleep_us(200);
    }
    return 0;
}
