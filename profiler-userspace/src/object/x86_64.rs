//! ELF's numbers for x86-64 (System V ABI, AMD64 supplement, sections 4.1 and 4.4).

/// The machine, as errors call it.
pub(crate) const NAME: &str = "64-bit x86";

/// The machine.
pub(super) const MACHINE: u16 = object::elf::EM_X86_64;

/// Relocations into which the loader writes an address of the object's own.
pub(crate) const RELATIVE: u32 = object::elf::R_X86_64_RELATIVE;

/// As [`RELATIVE`], of a function that chooses the address.
pub(crate) const INDIRECT: u32 = object::elf::R_X86_64_IRELATIVE;

/// Relocations into which the loader writes the number of a module with thread-local variables.
pub(super) const MODULE_NUMBER: u32 = object::elf::R_X86_64_DTPMOD64;

/// Relocations into which the loader writes the address of a symbol.
pub(super) const SYMBOL_ADDRESS: u32 = object::elf::R_X86_64_GLOB_DAT;
