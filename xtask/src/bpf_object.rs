//! Stripping of a linked BPF object before it ships.
//!
//! In: an ELF file fresh from the linker. Out: the same without debug sections, which are large and tell where they were
//! made. It never touches programs, maps, or BTF.

use anyhow::{Context as _, Result};
use object::build::elf::{Builder, SectionData};
use object::elf::SHT_STRTAB;

/// Removes DWARF, the host's unwind tables and their relocations; keeps `.BTF` and `.BTF.ext`.
pub(crate) fn strip(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object).context("the linker made no ELF object")?;
    for section in &mut builder.sections {
        let name = section.name.to_vec();
        let name = name.strip_prefix(b".rel").unwrap_or(&name);
        section.delete =
            name.starts_with(b".debug_") || name == b".eh_frame" || name == b".llvm_addrsig";
    }
    builder.delete_orphans();
    // LLVM keeps the names of sections and of symbols in one table; the writer wants two.
    if !builder
        .sections
        .iter()
        .any(|section| matches!(section.data, SectionData::SectionString))
    {
        let names = builder.sections.add();
        names.name = ".shstrtab".into();
        names.sh_type = SHT_STRTAB;
        names.sh_addralign = 1;
        names.data = SectionData::SectionString;
    }
    let mut bytes = Vec::new();
    builder
        .write(&mut bytes)
        .context("cannot write the stripped object")?;
    Ok(bytes)
}
