"""Every way in which one function of Python comes to run another, one after the other.

First the call chains that there are and that there may be are said, as `chain FUNCTION;FUNCTION;…` and `rare FUNCTION;…` lines
from root to leaf, behind `ready`; then the program runs until it is killed.

Three threads do so. In a round each runs every way for the same CPU time, and then waits for the others: who gives up the GIL
in C code and takes it back at once wins it again and again, so that others would stand still for seconds.
"""

import _thread
import asyncio
import ctypes
import functools
import re
import threading
import time

TURNS = 300
# For how long a way is run in a round.
SECONDS = 0.001
# The main thread waits for the others at the end of a round, and they wait for it before the next.
ENDED = _thread.allocate_lock(), _thread.allocate_lock()
BEGINS = _thread.allocate_lock(), _thread.allocate_lock()


def burn(*_):
    total = 0
    for turn in range(TURNS):
        total += turn ^ (total & 7)
    return total


def by_key(value):
    burn()
    return value


def with_sorted():
    sorted((3, 1, 2), key=by_key)


class Item:
    def __init__(self, value):
        burn()
        self.value = value

    def __lt__(self, other):
        burn()
        return self.value < other.value

    def __del__(self):
        burn()

    @property
    def size(self):
        return burn()

    def naïve(self):
        return burn()


def with_comparison():
    ITEMS[:] = sorted(ITEMS)


def with_init_and_del():
    Item(1)


def with_property():
    return ITEMS[0].size


def with_method():
    return ITEMS[0].naïve()


def added(one, other):
    burn()
    return one + other


def with_reduce():
    return functools.reduce(added, (1, 2, 3))


def replaced(match):
    burn()
    return match.group()


def with_substitution():
    return re.sub("a", replaced, "aaa")


def produced():
    for value in range(3):
        burn()
        yield value


def with_generator():
    for _ in produced():
        pass


def with_generator_in_c():
    return sum(produced())


def with_exec():
    exec(CODE)


def with_eval():
    eval("burn()")


def with_lambda():
    return list(map(lambda value: burn(value), (1, 2, 3)))


COMPARISON = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)
)


def compared_by_libc(one, other):
    burn()
    return one[0] - other[0]


def with_qsort():
    LIBC.qsort((ctypes.c_int * 3)(3, 1, 2), 3, 4, CALLBACK)


async def third():
    return burn()


async def second():
    return await third()


async def first():
    return await second()


def with_coroutines():
    try:
        first().send(None)
    except StopIteration:
        pass


def meet(number):
    if number is None:
        for ended in ENDED:
            ended.acquire()
        for begins in BEGINS:
            begins.release()
    else:
        ENDED[number].release()
        BEGINS[number].acquire()


async def forever():
    while True:
        end = time.thread_time() + SECONDS
        while time.thread_time() < end:
            await first()
        meet(1)


def with_event_loop():
    asyncio.new_event_loop().run_until_complete(forever())


ITEMS = [Item(3), Item(1), Item(2)]
CODE = compile("burn()", "text", "exec")
LIBC = ctypes.CDLL(None)
CALLBACK = COMPARISON(compared_by_libc)

WAYS = {
    with_sorted: "by_key;burn",
    with_comparison: "Item.__lt__;burn",
    with_init_and_del: "Item.__init__;burn",
    with_property: "Item.size;burn",
    with_method: "Item.naïve;burn",
    with_reduce: "added;burn",
    with_substitution: "sub;replaced;burn",
    with_generator: "produced;burn",
    with_generator_in_c: "produced;burn",
    with_exec: "<module>;burn",
    with_eval: "<module>;burn",
    with_lambda: "with_lambda.<locals>.<lambda>;burn",
    with_qsort: "compared_by_libc;burn",
    with_coroutines: "first;second;third;burn",
}
RARE = [
    "with_init_and_del;Item.__del__;burn",
    # `re.sub` looks for the compiled expression, whose class has functions, too.
    "with_substitution;sub;_compile;RegexFlag.__and__",
    "with_substitution;_compile",
    "meet",
]


def run(number=None):
    while True:
        for way in WAYS:
            end = time.thread_time() + SECONDS
            while time.thread_time() < end:
                way()
        meet(number)


def main():
    print("ready", flush=True)
    for way, calls in WAYS.items():
        for root in ("<module>;main;run", f"{THREAD};run"):
            print(f"chain {root};{way.__name__};{calls}", flush=True)
    print(f"chain {THREAD};with_event_loop;{EVENT_LOOP};forever;first;second;third;burn", flush=True)
    print(f"rare {THREAD};with_event_loop;{EVENT_LOOP};forever;meet", flush=True)
    for calls in RARE:
        for root in ("<module>;main;run", f"{THREAD};run"):
            print(f"rare {root};{calls}", flush=True)
    for lock in ENDED + BEGINS:
        lock.acquire()
    threading.Thread(target=run, args=(0,), daemon=True).start()
    threading.Thread(target=with_event_loop, daemon=True).start()
    run()


THREAD = "Thread._bootstrap;Thread._bootstrap_inner;Thread.run"
EVENT_LOOP = ";".join(
    f"BaseEventLoop.{name}" for name in ("run_until_complete", "run_forever", "_run_once")
)
EVENT_LOOP += ";Handle._run"

main()
