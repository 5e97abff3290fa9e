//! Jumps from code into the code behind it, and calls.
//!
//! In: bytes that begin with an instruction. Out: whether what follows belongs to the same function, and which functions are called.

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use std::ops::Range;

/// How code leads into the code behind it, the surest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::code) enum Way {
    /// By a jump: functions in assembly may share their ends so.
    Jump,
    /// By a jump that has a condition.
    Branch,
}

/// The surest way in which code at an address leads into this code behind it. A jump to its beginning is none, as it may be the last
/// call of another function, unless it has a condition.
pub(in crate::code) fn way_into(code: &[u8], address: u64, behind: &Range<u64>) -> Option<Way> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let ways = decoder.iter().filter_map(|instruction| {
        let target = instruction.near_branch_target();
        match instruction.flow_control() {
            FlowControl::ConditionalBranch if behind.contains(&target) => Some(Way::Branch),
            FlowControl::UnconditionalBranch
                if behind.contains(&target) && target != behind.start =>
            {
                Some(Way::Jump)
            }
            _ => None,
        }
    });
    ways.max()
}

/// The functions that code at an address calls, by their addresses, in the order of the calls.
pub(in crate::code) fn callees(code: &[u8], address: u64) -> Vec<u64> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let calls = decoder.iter();
    let calls = calls.filter(|instruction| instruction.flow_control() == FlowControl::Call);
    calls
        .map(|instruction| instruction.near_branch_target())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_across_a_label_tells_it_from_a_beginning() {
        let behind = 0x110..0x140;
        let way = |code: &[u8]| way_into(code, 0x100, &behind);
        // test eax, eax; je 0x110
        assert_eq!(way(b"\x85\xc0\x74\x0c"), Some(Way::Branch));
        // jmp 0x110; jmp 0x120; jmp 0x140
        assert_eq!(way(b"\xeb\x0e"), None, "a last call");
        assert_eq!(way(b"\xeb\x1e"), Some(Way::Jump));
        assert_eq!(way(b"\xeb\x3e"), None, "another function");
        // call 0x120; ret; mov eax, 0x1e_eb
        assert_eq!(way(b"\xe8\x1b\0\0\0\xc3\xb8\xeb\x1e\0\0"), None);
    }

    #[test]
    fn callees_are_told_by_direct_calls() {
        // call 0x120; call rax; jmp 0x120; call 0x105
        let code = b"\xe8\x1b\0\0\0\xff\xd0\xeb\x17\xe8\xf7\xff\xff\xff";
        assert_eq!(callees(code, 0x100), [0x120, 0x105]);
    }
}
