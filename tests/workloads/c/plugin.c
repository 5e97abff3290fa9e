/*
 * What `host` loads.
 *
 * -DROOM=BYTES   the least size of each frame
 */
#include "workload.h"

#ifndef ROOM
#define ROOM 8
#endif

FRAME __attribute__((visibility("hidden"))) int plugin_inner(void)
{
    volatile char room[ROOM];
    room[0] = room[ROOM - 1] = 1;
    burn(20000);
    return room[0];
}

FRAME int plugin_outer(void)
{
    volatile char room[ROOM * 3];
    room[0] = room[ROOM - 1] = 1;
    return plugin_inner() + room[0];
}
