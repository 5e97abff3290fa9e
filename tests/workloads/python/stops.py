"""Stops at 50 places that chance chooses, and burns there; the interpreter's own account of its frames says what they are.

First each place is visited once, to say its frames as a `chain FUNCTION;FUNCTION;…` line; then all of them again and again,
until it is killed.
"""

import functools
import random
import sys
import time

STOPS = 50
MILLISECONDS = 20


def stop(path):
    if SAYING:
        names, frame = [], sys._getframe()
        while frame:
            names.append(getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
            frame = frame.f_back
        print("chain " + ";".join(reversed(names)), flush=True)
        return
    end = time.thread_time() + MILLISECONDS / 1000
    total = 0
    while time.thread_time() < end:
        for turn in range(1000):
            total += turn ^ (total & 7)


def go(path):
    if path:
        path[0](path[1:])
    else:
        stop(path)


def by_call(path):
    go(path)


def by_sort(path):
    [0].sort(key=lambda _: go(path))


def by_map(path):
    for _ in map(go, [path]):
        pass


def by_partial(path):
    functools.partial(go, path)()


def produced(path):
    yield go(path)


def by_generator(path):
    next(produced(path))


def by_sum_of_generator(path):
    sum(value or 0 for value in produced(path))


def by_exec(path):
    exec("go(path)", {"go": go, "path": path})


def by_except(path):
    try:
        raise KeyError
    except KeyError:
        go(path)


class Holder:
    def __init__(self, path):
        self.path = path

    def __call__(self):
        go(self.path)

    def __enter__(self):
        go(self.path)

    def __exit__(self, *_):
        pass

    def __len__(self):
        go(self.path)
        return 0

    @classmethod
    def made(cls, path):
        go(path)


def by_call_of_object(path):
    Holder(path)()


def by_with(path):
    with Holder(path):
        pass


def by_len(path):
    len(Holder(path))


def by_class_method(path):
    Holder.made(path)


@functools.lru_cache(maxsize=0)
def cached(path):
    go(path)


def by_cache(path):
    cached(path)


WAYS = [
    by_call, by_sort, by_map, by_partial, by_generator, by_sum_of_generator, by_exec, by_except, by_call_of_object, by_with,
    by_len, by_class_method, by_cache,
]
CHANCE = random.Random(7)
PATHS = [tuple(CHANCE.choice(WAYS) for _ in range(CHANCE.randrange(12))) for _ in range(STOPS)]


def visit():
    for path in PATHS:
        go(path)


print("ready", flush=True)
SAYING = True
visit()
SAYING = False
while True:
    visit()
