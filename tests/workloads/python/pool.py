"""Work in processes that a pool forks, for some tenths of a second."""

import multiprocessing
import time


def burn():
    total = 0
    for turn in range(3000):
        total += turn ^ (total & 7)


def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        burn()


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, [0.3] * 4)
