//! Stubs of procedure linkage tables.
//!
//! In: addresses. Out: which of them lie in a stub, and by which function that jumps on.

use super::Function;
use super::arch::linkage::slot;
use super::relocations::{self, Slot};
use crate::object::image::read_at;
use crate::object::{Elf, ElfAddress, Image, Part};
use object::LittleEndian as Little;
use std::ops::Range;

/// The sections that linkers put stubs in.
const SECTIONS: [&[u8]; 4] = [b".plt", b".plt.sec", b".plt.got", b".iplt"];

/// A stub's size in bytes where its section does not say it.
const DEFAULT_BYTES: u64 = 16;

/// The size in bytes of the stubs that linkers make smaller.
const SMALL_BYTES: u64 = 8;

struct Stub {
    begin: u64,
    slot: Option<Slot>,
}

/// For each of `addresses` the stub that it lies in.
pub(super) fn stubs(
    image: &Image<'_>,
    elf: &Elf,
    addresses: &[ElfAddress],
) -> Vec<Option<Function>> {
    let sections: Vec<(Range<u64>, u64, u64)> = SECTIONS
        .iter()
        .filter_map(|name| {
            let section = image.section(name)?;
            let part = Part::from(section);
            let entry = match section.sh_entsize.get(Little) {
                SMALL_BYTES => SMALL_BYTES,
                _ => DEFAULT_BYTES,
            };
            Some((part.addresses(), part.offset, entry))
        })
        .collect();
    let stub = |&ElfAddress(address): &ElfAddress| {
        let (range, offset, entry) = sections
            .iter()
            .find(|(range, ..)| range.contains(&address))?;
        let into = (address - range.start) / entry * entry;
        let bytes = read_at(image.file, offset.saturating_add(into), *entry as usize);
        let begin = range.start + into;
        Some(Stub {
            begin,
            slot: slot(&bytes, begin),
        })
    };
    let found: Vec<Option<Stub>> = addresses.iter().map(stub).collect();
    let slots = found.iter().flatten().filter_map(|stub| stub.slot);
    let names = relocations::names(image, elf, slots);
    let function = |stub: Stub| {
        let name = stub.slot.and_then(|slot| names.get(&slot));
        name.map_or(Function::Begins(ElfAddress(stub.begin)), |name| {
            Function::Stub(name.clone())
        })
    };
    found.into_iter().map(|stub| stub.map(function)).collect()
}
