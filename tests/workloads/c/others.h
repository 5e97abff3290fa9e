/*
 * An assembler's macro: `others COUNT` makes so many functions with unwind instructions, of 64 bytes each, that do not run.
 */
#ifndef OTHERS_H
#define OTHERS_H

__asm__(".macro others count\n"
        ".rept \\count\n"
        ".p2align 6\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbx, -16\n"
        "pop %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".endr\n"
        ".endm\n");

#endif
