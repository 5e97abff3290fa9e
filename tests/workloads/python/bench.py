"""Works a fixed amount under a stack of a given depth, on one CPU, each time it is told two numbers: depth and turns.

Answers with two numbers: how many nanoseconds that took, and how many of them it waited for a CPU.
"""

import os
import sys
import time


def work(turns):
    total = 0
    for turn in range(turns):
        total += turn ^ (total & 7)
    return total


def descend(left, turns):
    if left > 1:
        return descend(left - 1, turns) + 1
    return work(turns)


def waited():
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[1])


os.sched_setaffinity(0, [int(sys.argv[1])])
sys.setrecursionlimit(100000)
print("ready", flush=True)
for line in sys.stdin:
    depth, turns = map(int, line.split())
    before, began = waited(), time.monotonic_ns()
    descend(depth, turns)
    print(time.monotonic_ns() - began, waited() - before, flush=True)
