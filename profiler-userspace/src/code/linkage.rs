//! Stubs of procedure linkage tables.
//!
//! In: addresses. Out: which of them lie in a stub, and by which function that jumps on. See the System V ABI, AMD64
//! supplement, section 5.2.

use super::Function;
use super::relocations::{self, Slot};
use crate::object::image::read_at;
use crate::object::{Elf, ElfAddress, Image, Part};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, Register};
use object::LittleEndian as Little;
use std::ops::Range;

/// The sections that linkers put stubs in.
const SECTIONS: [&[u8]; 4] = [b".plt", b".plt.sec", b".plt.got", b".iplt"];

/// A stub's size in bytes where its section does not say it.
const USUAL_BYTES: u64 = 16;

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
                _ => USUAL_BYTES,
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

/// By what a stub finds its function: the word through which it jumps, or the number that it pushes.
fn slot(stub: &[u8], begin: u64) -> Option<Slot> {
    let mut decoder = Decoder::with_ip(64, stub, begin, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        match instruction.mnemonic() {
            Mnemonic::Endbr64 => {}
            Mnemonic::Jmp if instruction.flow_control() == FlowControl::IndirectBranch => {
                let through = instruction.memory_base() == Register::RIP;
                return through.then(|| Slot::Address(instruction.memory_displacement64()));
            }
            Mnemonic::Push => {
                let pushed = instruction.try_immediate(0).ok();
                return pushed.map(Slot::Number);
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_stub_tells_its_slot() {
        let jump = b"\xff\x25\x10\0\0\0\x68\x03\0\0\0\xe9\0\0\0\0";
        assert_eq!(slot(jump, 0x1000), Some(Slot::Address(0x1016)));
        let targeted = b"\xf3\x0f\x1e\xfa\xf2\xff\x25\x10\0\0\0\x0f\x1f\x44\0\0";
        assert_eq!(slot(targeted, 0x1000), Some(Slot::Address(0x101b)));
        let lazy = b"\xf3\x0f\x1e\xfa\x68\x07\0\0\0\xf2\xe9\0\0\0\0\x90";
        assert_eq!(slot(lazy, 0x1000), Some(Slot::Number(7)));
        let head = b"\xff\x35\x10\0\0\0\xff\x25\x10\0\0\0\x0f\x1f\x40\0";
        assert_eq!(slot(head, 0x1000), None);
        assert_eq!(slot(b"", 0), None);
    }
}
