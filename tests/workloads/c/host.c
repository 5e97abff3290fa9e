/*
 * Burns CPU in `waiting`, then loads a plugin and burns CPU there:
 *
 *     main;waiting;burn      main;call_plugin;plugin_outer;plugin_inner;burn
 *
 * host PLUGIN MS   MS of CPU time before the plugin is loaded; ready before with MS, after with none
 */
#include "workload.h"
#include <dlfcn.h>

FRAME void waiting(uint64_t ms)
{
    uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ms * 1000000u;
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
        burn(50000);
}

FRAME void call_plugin(void (*plugin)(void))
{
    while (!stopped)
        plugin();
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    uint64_t ms = (uint64_t)argument(argc, argv, 2, 0);
    if (ms) {
        announce("");
        waiting(ms);
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    void (*plugin)(void) = library ? (void (*)(void))dlsym(library, "plugin_outer") : NULL;
    if (!plugin)
        return 1;
    if (!ms)
        announce("");
    call_plugin(plugin);
    return 0;
}
