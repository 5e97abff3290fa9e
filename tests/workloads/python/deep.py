"""Burns below as many calls as the first argument says, until it is killed."""

import sys


def burn():
    while True:
        pass


def descend(left):
    if left == 0:
        burn()
    descend(left - 1)


sys.setrecursionlimit(100000)
print("ready", flush=True)
descend(int(sys.argv[1]))
