/*
 * One look at each entry of a symbol table, timed by the program itself: what naming code cannot do without.
 *
 * bench_table FILE   reads the .symtab of a 64-bit ELF file of this machine's byte order, in blocks, and asks of each
 *                    symbol whether it is a function that is defined here and covers the middle of the file's code. Prints
 *                    `NS SYMBOLS FUNCTIONS COVERING`: how long that took from opening the file on, how many symbols
 *                    there are, and how many of them are functions and cover it.
 */
#include "workload.h"
#include <elf.h>
#include <fcntl.h>

enum { BLOCK = 4096 };

static void read_all(int file, void *into, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t count = pread(file, into, bytes, at);
        if (count <= 0)
            exit(3);
        into = (char *)into + count;
        bytes -= (size_t)count;
        at += count;
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    int file = open(argv[1], O_RDONLY | O_CLOEXEC);
    Elf64_Ehdr header;
    read_all(file, &header, sizeof header, 0);
    Elf64_Shdr *sections = calloc(header.e_shnum, sizeof *sections);
    if (!sections)
        return 3;
    read_all(file, sections, header.e_shnum * sizeof *sections, (off_t)header.e_shoff);
    uint64_t symbols = 0, middle = 0, longest = 0, at = 0;
    for (int number = 0; number < header.e_shnum; number++) {
        const Elf64_Shdr *section = &sections[number];
        if (section->sh_type == SHT_SYMTAB) {
            symbols = section->sh_size / sizeof(Elf64_Sym);
            at = section->sh_offset;
        }
        if (section->sh_flags & SHF_EXECINSTR && section->sh_size > longest) {
            longest = section->sh_size;
            middle = section->sh_addr + longest / 2;
        }
    }
    Elf64_Sym *block = malloc(BLOCK * sizeof *block);
    if (!block)
        return 3;
    uint64_t functions = 0, covering = 0;
    for (uint64_t done = 0; done < symbols; done += BLOCK) {
        uint64_t count = symbols - done < BLOCK ? symbols - done : BLOCK;
        read_all(file, block, count * sizeof *block, (off_t)(at + done * sizeof *block));
        for (uint64_t number = 0; number < count; number++) {
            const Elf64_Sym *symbol = &block[number];
            if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF) {
                functions++;
                covering += middle - symbol->st_value < symbol->st_size;
            }
        }
    }
    uint64_t took = clock_ns(CLOCK_MONOTONIC) - begin;
    printf("%llu %llu %llu %llu\n", (unsigned long long)took, (unsigned long long)symbols,
           (unsigned long long)functions, (unsigned long long)covering);
    return 0;
}
