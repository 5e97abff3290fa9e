"""An interpreter that runs another, in the main thread and in a thread of its own.

Once both have run once, and so imported what they need, the call chains are said, as `chain FUNCTION;FUNCTION;…` lines from
root to leaf, behind `ready`; the program runs until it is killed.
"""

import _thread
import sys
import threading
import time


def burn():
    total = 0
    for turn in range(3000):
        total += turn ^ (total & 7)


def brief():
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        burn()


# Another interpreter runs the same, that is, what stands above.
with open(__file__, encoding="utf-8") as FILE:
    INNER = FILE.read().split("# Another")[0] + "brief()"

if sys.version_info >= (3, 13):
    import _interpreters

    RUN = _interpreters.exec
else:
    import _xxsubinterpreters as _interpreters

    RUN = _interpreters.run_string


# The threads take turns: up to 3.11, one that runs another interpreter keeps the GIL for long.
TURNS = _thread.allocate_lock(), _thread.allocate_lock()


def run(number):
    # Up to 3.11 an interpreter knows the thread that made it.
    made = _interpreters.create()
    turns = 0
    while True:
        TURNS[number].acquire()
        RUN(made, INNER)
        turns += 1
        if turns == 1 and number == 0:
            say_chains()
        brief()
        TURNS[1 - number].release()


def say_chains():
    print("ready", flush=True)
    for root in ("<module>;main", "Thread._bootstrap;Thread._bootstrap_inner;Thread.run"):
        print(f"chain {root};run;<module>;brief;burn", flush=True)
        print(f"chain {root};run;brief;burn", flush=True)


def main():
    # The thread's is the first turn.
    TURNS[0].acquire()
    threading.Thread(target=run, args=(1,), daemon=True).start()
    run(0)


main()
