/*
 * The middle of `gap`'s chain as a leaf in assembly that cannot be followed: a branch that is never taken leads to bytes that are
 * no instruction.
 */
__asm__(".text\n"
        ".globl middle\n"
        ".type middle, @function\n"
        "middle:\n"
        "1: dec %rdi\n"
        "jg 1b\n"
        "jl 2f\n"
        "ret\n"
        "2: .byte 0x06\n"
        ".size middle, . - middle\n");
