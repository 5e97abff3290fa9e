"""Greenlets, each of which has a chain of calls of its own.

First the call chains are said, as `chain FUNCTION;FUNCTION;…` lines from root to leaf, behind `ready`; then the program runs
until it is killed.
"""

import greenlet


def burn():
    total = 0
    for turn in range(3000):
        total += turn ^ (total & 7)


def deep(calls):
    if calls:
        deep(calls - 1)
    else:
        burn()
        greenlet.getcurrent().parent.switch()
        burn()


def one():
    while True:
        deep(3)


def other():
    while True:
        sorted((1,), key=lambda _: deep(1))


def main():
    greenlets = [greenlet.greenlet(one), greenlet.greenlet(other)]
    print("ready", flush=True)
    print("chain <module>;main;burn", flush=True)
    print("chain one;deep;deep;deep;deep;burn", flush=True)
    print("chain other;other.<locals>.<lambda>;deep;deep;burn", flush=True)
    while True:
        for each in greenlets:
            each.switch()
            burn()


main()
