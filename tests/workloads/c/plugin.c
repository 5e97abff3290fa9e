/*
 * What `host` and `swap` load. Wherever in the outer frame a return address is looked for, there is one: who has the size
 * of the frame wrong does not notice.
 *
 * -DROOM=BYTES   the least size of each frame
 * -DINNER=NAME   the name of the inner function, where it is to be told from another plugin's
 */
#include "workload.h"

#ifndef ROOM
#define ROOM 8
#endif

#ifndef INNER
#define INNER plugin_inner
#endif

FRAME __attribute__((visibility("hidden"))) int INNER(void)
{
    volatile char room[ROOM];
    room[0] = room[ROOM - 1] = 1;
    burn(20000);
    return room[0];
}

FRAME int plugin_outer(void)
{
    void *volatile room[(ROOM * 3 + 7) / 8];
    for (unsigned i = 0; i < sizeof room / sizeof *room; i++)
        room[i] = __builtin_return_address(0);
    return INNER() + (room[0] != 0);
}
