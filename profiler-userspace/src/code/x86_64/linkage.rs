//! Stubs of the linkage table.
//!
//! In: the bytes of one. Out: by what it finds its function. See the System V ABI, AMD64 supplement, section 5.2.

use crate::code::relocations::Slot;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, Register};

/// By what a stub finds its function: the word through which it jumps, or the number that it pushes.
pub(in crate::code) fn slot(stub: &[u8], begin: u64) -> Option<Slot> {
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
