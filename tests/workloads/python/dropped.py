"""Makes a thousand functions a second, each with a name of its own, runs each for a moment and drops it.

The function `made_N` calls `tell_N`, made with it. So a stack in which these two numbers differ has a wrong name. Until it is
killed.
"""

SOURCE = """
def tell_{0}():
    total = 0
    for turn in range(4000):
        total += turn ^ (total & 7)
    return total

def made_{0}():
    return tell_{0}()

made_{0}()
"""

print("ready", flush=True)
number = 0
while True:
    exec(compile(SOURCE.format(number), "made", "exec"), {})
    number += 1
