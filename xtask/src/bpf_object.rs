//! Stripping of a linked BPF object before it ships.
//!
//! In: an ELF file fresh from the linker. Out: the same without debug sections, which are large and tell where they were
//! made, and without the lines of instructions. It never touches programs, maps, or types.

use anyhow::{Context as _, Result, bail};
use object::build::elf::{Builder, SectionData};
use object::elf::SHT_STRTAB;

/// Removes DWARF, the host's unwind tables, their relocations, and the lines in `.BTF.ext`.
pub(crate) fn strip(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object).context("the linker made no ELF object")?;
    for section in &mut builder.sections {
        let name = section.name.to_vec();
        let name = name.strip_prefix(b".rel").unwrap_or(&name);
        section.delete =
            name.starts_with(b".debug_") || name == b".eh_frame" || name == b".llvm_addrsig";
    }
    remove_lines(&mut builder)?;
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

/// Removes the lines of instructions, with which the verifier annotates its log. They are half of the object, and aya copies those of
/// a whole section for each function in it, which takes longer than all else that it does.
fn remove_lines(builder: &mut Builder) -> Result<()> {
    let named = |name: &[u8]| {
        let mut sections = builder.sections.iter();
        let section = sections.find(|section| section.name.as_slice() == name);
        section.map(|section| section.id())
    };
    let (Some(details), Some(relocations)) = (named(b".BTF.ext"), named(b".rel.BTF.ext")) else {
        bail!("the linker made no .BTF.ext");
    };
    let mut end = 0;
    if let SectionData::Data(bytes) = &mut builder.sections.get_mut(details).data {
        let bytes = bytes.to_mut();
        end = without_lines(bytes).context("cannot read the header of .BTF.ext")?;
        bytes.truncate(end);
    }
    if let SectionData::Relocation(relocations) = &mut builder.sections.get_mut(relocations).data {
        relocations.retain(|relocation| relocation.r_offset < end as u64);
    }
    Ok(())
}

/// Says in the header of a `.BTF.ext` (`struct btf_ext_header`) that there are no lines, and returns where the section ends without
/// them. Nothing if something follows them.
fn without_lines(section: &mut [u8]) -> Option<usize> {
    /// Places of the header's length, and of where its parts begin and how long they are.
    const LENGTH: usize = 4;
    const LINES: usize = 16;
    const LINES_LENGTH: usize = 20;
    const RELOCATIONS: usize = 24;
    const RELOCATIONS_LENGTH: usize = 28;
    let word = |at: usize| {
        let bytes = section.get(at..)?.first_chunk();
        bytes.map(|bytes| u32::from_le_bytes(*bytes))
    };
    let lines = word(LINES)?;
    let end = word(LENGTH)? + lines;
    let is_last = word(RELOCATIONS_LENGTH)? == 0;
    section
        .get_mut(LINES_LENGTH..)?
        .first_chunk_mut::<4>()?
        .fill(0);
    *section.get_mut(RELOCATIONS..)?.first_chunk_mut()? = lines.to_le_bytes();
    is_last.then_some(end as usize)
}
