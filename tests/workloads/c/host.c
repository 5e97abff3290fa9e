/*
 * Burns CPU in `waiting`, unless told not to, until it gets SIGUSR1; then loads a plugin and burns CPU there:
 *
 *     main;waiting;burn      main;call_plugin;plugin_outer;plugin_inner;burn
 *
 * host PLUGIN [now]   with `now` it is ready when the plugin is loaded, without before
 */
#include "workload.h"
#include <dlfcn.h>

FRAME void waiting(void)
{
    while (!told)
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
    int now = argc > 2;
    if (!now) {
        listen_for_a_word();
        announce("");
        waiting();
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    void (*plugin)(void) = library ? (void (*)(void))dlsym(library, "plugin_outer") : NULL;
    if (!plugin)
        return 1;
    if (now)
        announce("");
    call_plugin(plugin);
    return 0;
}
