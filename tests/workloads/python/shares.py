"""Two phases that take 70 and 30 percent of the program's time by construction, through functions, a class and callbacks.

Until SIGTERM; then the measured truth as `truth FUNCTION NANOSECONDS` lines.
"""

import signal
import time


def burn(turns):
    total = 0
    for turn in range(turns):
        total += turn ^ (total & 7)
    return total


def long_phase():
    for _ in range(7):
        burn(20000)


def weigh(_):
    return burn(20000)


def short_phase():
    sorted([0, 1, 2], key=weigh)


def measured(phase):
    before = time.thread_time_ns()
    phase()
    return time.thread_time_ns() - before


def main():
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    spent = {long_phase: 0, short_phase: 0}
    print("ready", flush=True)
    while not stopped:
        for phase in spent:
            spent[phase] += measured(phase)
    for phase, nanoseconds in spent.items():
        print("truth", phase.__name__, nanoseconds, flush=True)


main()
