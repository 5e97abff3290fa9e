"""Everything that can be sampled, within a function: `work` uses the CPU, waits, makes system calls, asks for memory.

late.py SECONDS
"""

import os
import sys
import time


def work():
    total = 0
    for turn in range(20000):
        total += turn ^ (total & 7)
    time.sleep(0.001)
    os.getppid()
    bytearray(300000)
    return total


def main():
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        work()


main()
