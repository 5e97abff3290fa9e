/*
 * Loads one plugin, burns CPU in it, unloads it, and does the same with the other, which the dynamic linker
 * puts where the first was:
 *
 *     main;call_plugin;plugin_outer;plugin_inner;burn
 *
 * swap PLUGIN OTHER
 */
#include "workload.h"
#include <dlfcn.h>

FRAME void call_plugin(void (*plugin)(void))
{
    for (int i = 0; i < 40; i++)
        plugin();
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    announce("");
    for (int turn = 0; !stopped; turn++) {
        void *library = dlopen(argv[1 + turn % 2], RTLD_NOW);
        void (*plugin)(void) = library ? (void (*)(void))dlsym(library, "plugin_outer") : NULL;
        if (!plugin)
            return 1;
        call_plugin(plugin);
        dlclose(library);
    }
    return 0;
}
