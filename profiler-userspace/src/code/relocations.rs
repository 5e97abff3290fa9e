//! Relocations of an image: values that the loader writes, and the symbols that they are of.
//!
//! In: relocations with addends, as those of 64-bit machines are. Out: addends or names of those at some places.

use crate::object::arch::{INDIRECT, RELATIVE};
use crate::object::image::read_at;
use crate::object::{Elf, Image, Part};
use object::LittleEndian as Little;
use object::elf::{SHT_RELA, Sym64};
use object::pod::from_bytes;
use std::collections::HashMap;

/// A name may have so many bytes.
const MAX_NAME_BYTES: usize = 4096;

/// Calls `visit` with each place in `parts` into which the loader writes an address, and that address, before relocation.
pub(super) fn each_relative(image: &Image<'_>, parts: &[Part], mut visit: impl FnMut(u64, u64)) {
    if parts.is_empty() {
        return;
    }
    for section in image.sections_of_type(SHT_RELA) {
        image.each_relocation(section.into(), |_, relocation| {
            let place = relocation.r_offset.get(Little);
            let within = |part: &Part| part.addresses().contains(&place);
            if relocation.r_type(Little, false) == RELATIVE && parts.iter().any(within) {
                visit(place, relocation.r_addend.get(Little).cast_unsigned());
            }
        });
    }
}

/// Calls `visit` with each address that the loader writes, before relocation.
pub(super) fn each_address(image: &Image<'_>, mut visit: impl FnMut(u64)) {
    for section in image.sections_of_type(SHT_RELA) {
        image.each_relocation(section.into(), |_, relocation| {
            let kind = relocation.r_type(Little, false);
            if matches!(kind, RELATIVE | INDIRECT) {
                visit(relocation.r_addend.get(Little).cast_unsigned());
            }
        });
    }
}

/// A place whose relocation is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    /// By the address that is written to.
    Address(u64),
    /// By the number among the linkage table's own.
    Number(u64),
}

/// The names of the symbols that `slots` are relocated by, where they have one.
pub(super) fn names(
    image: &Image<'_>,
    elf: &Elf,
    slots: impl Iterator<Item = Slot>,
) -> HashMap<Slot, String> {
    let mut symbols: HashMap<Slot, Option<u32>> = slots.map(|slot| (slot, None)).collect();
    let mut names = HashMap::new();
    let Some(table) = elf.dynamic_symbols.as_ref().filter(|_| !symbols.is_empty()) else {
        return names;
    };
    for section in image.sections_of_type(SHT_RELA) {
        let is_linkage = image.section_name(section) == b".rela.plt";
        image.each_relocation(section.into(), |number, relocation| {
            let symbol = relocation.r_sym(Little, false);
            // Nearly all have none, and there may be a million.
            if symbol == 0 {
                return;
            }
            let address = Slot::Address(relocation.r_offset.get(Little));
            let number = is_linkage.then_some(Slot::Number(number));
            for slot in std::iter::once(address).chain(number) {
                if let Some(known) = symbols.get_mut(&slot) {
                    *known = Some(symbol);
                }
            }
        });
    }
    for (slot, symbol) in symbols {
        let name = symbol.and_then(|symbol| {
            let size = size_of::<Sym64<Little>>();
            let at = (u64::from(symbol)).checked_mul(size as u64)?;
            let at = table.symbols.start.checked_add(at)?;
            let bytes = (at < table.symbols.end).then(|| read_at(image.file, at, size))?;
            let (symbol, _) = from_bytes::<Sym64<Little>>(&bytes).ok()?;
            let at = table
                .names
                .start
                .checked_add(symbol.st_name.get(Little).into())?;
            let bytes = (at < table.names.end).then(|| read_at(image.file, at, MAX_NAME_BYTES))?;
            let name = bytes.split(|&byte| byte == 0).next()?;
            (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
        });
        names.extend(name.map(|name| (slot, name)));
    }
    names
}
