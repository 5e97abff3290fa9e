/*
 * visits DIRECTORY COUNT  makes so many cgroups in the one of this directory. From SIGUSR1 on, moves through all of
 *                         them, gives up the CPU in each, and ends in the one of the directory.
 */
#include "workload.h"

#include <fcntl.h>
#include <sys/stat.h>

static void enter(const char *directory, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/cgroup.procs", directory, name);
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, "0", 1) != 1)
        abort();
    close(file);
}

int main(int count, char **arguments)
{
    char name[512];
    if (count != 3)
        return 2;
    unsigned long number = strtoul(arguments[2], NULL, 10);
    for (unsigned long each = 0; each < number; each++) {
        snprintf(name, sizeof name, "%s/c%lu", arguments[1], each);
        if (mkdir(name, 0755))
            abort();
    }
    listen_for_a_word();
    announce("");
    while (!told)
        sleep_us(1000);
    for (unsigned long each = 0; each < number; each++) {
        snprintf(name, sizeof name, "c%lu", each);
        enter(arguments[1], name);
        sleep_us(1);
    }
    enter(arguments[1], ".");
    return 0;
}
