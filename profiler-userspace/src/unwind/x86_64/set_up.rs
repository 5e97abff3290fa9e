//! Rows of a function that sets up a frame pointer as its first instructions, in code of which that is known.
//!
//! In: its bytes. Out: its rules, by one pass over the instructions: from the set-up on the frame pointer leads to the caller, up
//! to each `pop rbp` or `leave` and what leaves the function behind it. None where it does anything else with the register.

use crate::unwind::found::UnwindFindings;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use profiler_common::abi::Rule;

/// Between the end of a frame and the instruction that leaves the function there are so many others, at most: `vzeroupper`.
const MAX_BETWEEN: usize = 3;

/// The rules of the function that these bytes begin with, whose first has the address `begin`. Bytes behind the function may follow.
pub(in crate::unwind) fn describe(begin: u64, bytes: &[u8]) -> Option<UnwindFindings> {
    let mut found = UnwindFindings::default();
    let mut decoder = Decoder::with_ip(64, bytes, begin, DecoderOptions::NONE);
    let mut instruction = decoder.decode();
    if instruction.mnemonic() == Mnemonic::Endbr64 {
        instruction = decoder.decode();
    }
    put(&mut found, begin, begin, Rule::ENTRY);
    if !is_push(&instruction, Register::RBP) {
        return None;
    }
    put(&mut found, begin, decoder.ip(), Rule::FRAME_POINTER_PUSHED);
    if !sets_up(&decoder.decode()) {
        return None;
    }
    let set_up = decoder.ip();
    put(&mut found, begin, set_up, Rule::SET_UP_FRAME_POINTER);
    let mut end = set_up;
    // How many instructions there may still be until the function is left, where its frame has ended.
    let mut between: Option<usize> = None;
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            break;
        }
        let leaves = matches!(
            instruction.flow_control(),
            FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
        );
        between = match between {
            Some(_) if leaves => {
                put(
                    &mut found,
                    begin,
                    instruction.next_ip(),
                    Rule::SET_UP_FRAME_POINTER,
                );
                None
            }
            Some(0) => return None,
            Some(left) if instruction.flow_control() == FlowControl::Next => Some(left - 1),
            Some(_) => return None,
            None if ends_frame(&instruction) => {
                put(&mut found, begin, instruction.next_ip(), Rule::ENTRY);
                Some(MAX_BETWEEN)
            }
            None if instruction.flow_control() == FlowControl::Return => return None,
            None if writes_frame_pointer(&instruction) => return None,
            None => None,
        };
        end = instruction.next_ip();
    }
    found.add_stretch(begin..end, 0);
    Some(found)
}

fn put(found: &mut UnwindFindings, begin: u64, address: u64, rule: Rule) {
    let after = u32::try_from(address - begin).unwrap_or(u32::MAX);
    found.change(after, rule);
}

fn is_push(instruction: &Instruction, register: Register) -> bool {
    instruction.mnemonic() == Mnemonic::Push && instruction.op0_register() == register
}

fn sets_up(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_register() == Register::RBP
        && instruction.op1_register() == Register::RSP
}

fn ends_frame(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Leave
        || instruction.mnemonic() == Mnemonic::Pop && instruction.op0_register() == Register::RBP
}

fn writes_frame_pointer(instruction: &Instruction) -> bool {
    let is_read = matches!(
        instruction.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push | Mnemonic::Call
    );
    instruction.op_count() > 0
        && !is_read
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == Register::RBP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::found::Change;

    fn rules(bytes: &[u8]) -> Option<Vec<(u64, Rule)>> {
        let found = describe(0x1000, bytes)?;
        let rules = found.rules.rules();
        let rule = |change: &Change| (u64::from(change.after), rules[usize::from(change.rule)]);
        Some(found.changes.iter().map(rule).collect())
    }

    #[test]
    fn a_frame_lasts_from_its_set_up_to_each_end() {
        // push rbp; mov rbp, rsp; push r14; push rbx; je +5; pop rbx; pop r14; pop rbp; ret; xor eax, eax; leave; jmp -2
        let code = b"\x55\x48\x89\xe5\x41\x56\x53\x74\x05\x5b\x41\x5e\x5d\xc3\x31\xc0\xc9\xeb\xfe";
        let body = Rule::SET_UP_FRAME_POINTER;
        assert_eq!(
            rules(code).unwrap(),
            [
                (0, Rule::ENTRY),
                (1, Rule::FRAME_POINTER_PUSHED),
                (4, body),
                (13, Rule::ENTRY),
                (14, body),
                (17, Rule::ENTRY),
                (19, body),
            ]
        );
        let found = describe(0x1000, code).unwrap();
        assert_eq!(
            found.stretches[0].addresses,
            0x1000..0x1000 + code.len() as u64
        );
    }

    #[test]
    fn what_checks_the_targets_of_jumps_may_come_first() {
        // endbr64; push rbp; mov rbp, rsp; nop; pop rbp; ret
        let found = rules(b"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x90\x5d\xc3").unwrap();
        let pushed = (5, Rule::FRAME_POINTER_PUSHED);
        assert_eq!(
            found[..3],
            [(0, Rule::ENTRY), pushed, (8, Rule::SET_UP_FRAME_POINTER)]
        );
    }

    #[test]
    fn what_does_anything_else_with_the_register_has_no_rules_here() {
        assert_eq!(rules(b"\x41\x57\x41\x56\xc3"), None, "no set-up");
        assert_eq!(
            rules(b"\x55\x48\x89\xe5\xc3"),
            None,
            "a return from within the frame"
        );
        assert_eq!(
            rules(b"\x55\x48\x89\xe5\x31\xed\x5d\xc3"),
            None,
            "xor ebp, ebp"
        );
        assert_eq!(
            rules(b"\x55\x48\x89\xe5\x5d\x90\x90\x90\x90\xc3"),
            None,
            "not left at once"
        );
        assert_eq!(
            rules(b"\x55\x48\x89\xe5\x5d\x74\x00\xc3"),
            None,
            "a branch without a frame"
        );
        assert_eq!(rules(b""), None);
    }
}
