/*
 * The middle of `gap`'s chain as assembly that cannot be followed: it moves its stack by as many bytes as
 * a variable says, keeps the old stack pointer in another variable, and a number in the frame pointer.
 */
unsigned long moved_by = 64, old_stack_pointer;

__asm__(".text\n"
        ".globl middle\n"
        ".type middle, @function\n"
        "middle:\n"
        "push %rbp\n"
        "mov $7, %ebp\n"
        "mov %rsp, old_stack_pointer(%rip)\n"
        "sub moved_by(%rip), %rsp\n"
        "and $-16, %rsp\n"
        "call *%rsi\n"
        "mov old_stack_pointer(%rip), %rsp\n"
        "pop %rbp\n"
        "ret\n"
        ".size middle, . - middle\n");
