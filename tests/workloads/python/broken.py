"""Calls code that nobody can unwind, between work of its own: made at run time, with nonsense in the frame pointer."""

import ctypes
import mmap

# push %rbp; mov $1, %ebp; dec %rdi; jnz -5; pop %rbp; ret
CODE = bytes.fromhex("55 bd01000000 48ffcf 75fb 5d c3")

MEMORY = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
MEMORY.write(CODE)
SPIN = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(MEMORY)))


def burn():
    total = 0
    for turn in range(100_000):
        total += turn ^ (total & 7)
    return total


def in_made_code():
    SPIN(20_000_000)


def main():
    while True:
        burn()
        in_made_code()


print("ready", flush=True)
main()
