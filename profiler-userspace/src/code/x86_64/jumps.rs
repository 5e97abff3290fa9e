//! Jumps from code into the code behind it.
//!
//! In: bytes that begin with an instruction. Out: whether what follows belongs to the same function.

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use std::ops::Range;

/// Whether code at an address jumps into this code behind it. A jump to its beginning may be the last call of another function,
/// unless it has a condition.
pub(in crate::code) fn lead_into(code: &[u8], address: u64, behind: &Range<u64>) -> bool {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    decoder.iter().any(|instruction| {
        let target = instruction.near_branch_target();
        match instruction.flow_control() {
            FlowControl::ConditionalBranch => behind.contains(&target),
            FlowControl::UnconditionalBranch => behind.contains(&target) && target != behind.start,
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_across_a_label_tells_it_from_a_beginning() {
        let behind = 0x110..0x140;
        // test eax, eax; je 0x110
        assert!(lead_into(b"\x85\xc0\x74\x0c", 0x100, &behind));
        // jmp 0x110; jmp 0x120; jmp 0x140
        assert!(!lead_into(b"\xeb\x0e", 0x100, &behind), "a last call");
        assert!(lead_into(b"\xeb\x1e", 0x100, &behind));
        assert!(!lead_into(b"\xeb\x3e", 0x100, &behind), "another function");
        // call 0x120; ret; mov eax, 0x1e_eb
        assert!(!lead_into(
            b"\xe8\x1b\0\0\0\xc3\xb8\xeb\x1e\0\0",
            0x100,
            &behind
        ));
    }
}
