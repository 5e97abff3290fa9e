"""One chain of calls, through C, a lambda and a generator, for memory that is recorded.

The chain is said from root to leaf, as Python itself has it; then the program runs until it is killed.
"""

import sys


def naïve():
    names, frame = [], sys._getframe()
    while frame:
        code = frame.f_code
        names.append(getattr(code, "co_qualname", code.co_name))
        frame = frame.f_back
    print("chain", ";".join(reversed(names)), flush=True)
    while True:
        pass


class Worker:
    def numbers(self):
        yield naïve()

    def run(self):
        return sorted((2, 1), key=lambda _: next(self.numbers()))


sys.stdout.reconfigure(encoding="utf-8")
print("ready", flush=True)
Worker().run()
