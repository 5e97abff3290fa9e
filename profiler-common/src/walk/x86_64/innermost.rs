//! Innermost frames in code that keeps frame pointers: where the function has not made its frame yet, or has left it.
//!
//! In: the bytes around the address. Out: the rule that these bytes tell, if they tell one. Never reads memory. What the rule
//! finds is to be believed only if it follows a call: bytes do not say where an instruction begins.

use crate::abi::Rule;

/// `push rbp`, and the opcodes of instructions that leave a function (Intel SDM, volume 2).
pub const PUSH_FP: u8 = 0x55;
/// See [`PUSH_FP`].
pub const POP_FP: u8 = 0x5d;
/// See [`PUSH_FP`].
pub const RET: u8 = 0xc3;
const RET_POPPING: u8 = 0xc2;
const REP: u8 = 0xf3;
const JUMP: u8 = 0xe9;
const SHORT_JUMP: u8 = 0xeb;

/// The rule at an address, by the eight bytes before it and the eight from it on, each in the order of memory; none if the frame
/// pointer is to be followed.
#[inline(always)]
pub const fn rule(before: u64, at: u64) -> Option<Rule> {
    let last = (before >> 56) as u8;
    let first = at as u8;
    let second = (at >> 8) as u8;
    let is_set_up = at & 0xff_ffff == 0xe5_8948 || at & 0xff_ffff == 0xec_8b48;
    if last == PUSH_FP && is_set_up {
        return Some(Rule::FRAME_POINTER_PUSHED);
    }
    // `endbr64; push rbp`
    let is_entry = first == PUSH_FP || at & 0xff_ffff_ffff == 0x55_fa1e_0ff3;
    let is_return = first == RET || first == RET_POPPING || (first == REP && second == RET);
    // Another function is called in the place of this one; or through a linkage table, in the place of its stub.
    let is_tail_call =
        (last == POP_FP && (first == JUMP || first == SHORT_JUMP)) || at & 0xffff == 0x25ff;
    if is_entry || is_return || is_tail_call {
        return Some(Rule::ENTRY);
    }
    None
}

/// How far above the stack pointer the return address is, by a rule of this module, in bytes.
#[inline(always)]
pub const fn return_address_at(rule: Rule) -> u64 {
    (rule.operand() - 8) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule_of(before: &[u8], at: &[u8]) -> Option<Rule> {
        let (mut low, mut high) = ([0x90; 8], [0x90; 8]);
        low[8 - before.len()..].copy_from_slice(before);
        high[..at.len()].copy_from_slice(at);
        rule(u64::from_le_bytes(low), u64::from_le_bytes(high))
    }

    #[test]
    fn a_frame_is_not_there_before_it_is_made_and_after_it_is_left() {
        let entry = Some(Rule::ENTRY);
        assert_eq!(rule_of(b"\xcc", b"\x55\x48\x89\xe5"), entry);
        assert_eq!(rule_of(b"\xcc", b"\xf3\x0f\x1e\xfa\x55"), entry);
        let pushed = Some(Rule::FRAME_POINTER_PUSHED);
        assert_eq!(rule_of(b"\x55", b"\x48\x89\xe5"), pushed);
        assert_eq!(rule_of(b"\x55", b"\x48\x8b\xec"), pushed);
        assert_eq!(rule_of(b"\x5d", b"\xc3"), entry);
        assert_eq!(rule_of(b"\x5d", b"\xf3\xc3"), entry);
        assert_eq!(rule_of(b"\x5d", b"\xc2\x10\x00"), entry);
        assert_eq!(rule_of(b"\x5d", b"\xe9\x00\x01\x00\x00"), entry);
        assert_eq!(rule_of(b"", b"\xff\x25\x00\x01\x00\x00"), entry);
        assert_eq!(return_address_at(Rule::ENTRY), 0);
        assert_eq!(return_address_at(Rule::FRAME_POINTER_PUSHED), 8);
    }

    #[test]
    fn elsewhere_the_frame_pointer_is_followed() {
        for (before, at) in [
            (&b"\x90"[..], &b"\x48\x89\xe5"[..]),
            (b"\x55", b"\x48\x89\xe8"),
            (b"\x90", b"\x5d\xc3"),
            (b"\x90", b"\xe9\x00\x01\x00\x00"),
            (b"\x90", b"\xf3\x0f\x1e\xfa\x90"),
            (b"\x90", b"\xc9\xc3"),
        ] {
            assert_eq!(rule_of(before, at), None, "{before:02x?} {at:02x?}");
        }
    }
}
