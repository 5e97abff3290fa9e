"""Works for 20 ms and ends."""

import time


def brief_work():
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass


brief_work()
