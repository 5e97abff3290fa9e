/*
 * A process that calls itself what it likes and burns CPU in `named_work`.
 *
 * comm HEX   the name's bytes in hexadecimal, so that any byte can be asked for.
 */
#include "workload.h"

FRAME void named_work(void)
{
    burn(100000);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    char name[16] = "";
    const char *hex = argc > 1 ? argv[1] : "61";
    for (int i = 0; i < 15 && hex[2 * i]; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
        name[i] = (char)strtol(pair, NULL, 16);
    }
    prctl(PR_SET_NAME, name);
    announce("");
    while (!stopped)
        named_work();
    return 0;
}
