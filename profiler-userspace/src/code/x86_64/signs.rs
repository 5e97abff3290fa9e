//! Signs that a function begins at a place in code, by the bytes there and before it.
//!
//! In: bytes. Out: a [`Sign`]. Never reads a file.

use super::context::ENDBR64;
use super::padding::{ALIGNMENT, is_padding};
use iced_x86::{Decoder, DecoderOptions, FlowControl};

/// The byte that fills the space between functions where it does not run.
pub(in crate::code) const INT3: u8 = 0xcc;

/// Functions begin at multiples of this, at most: so much stands before them to fill up.
const MAX_FILLING: usize = 64;

/// A sign that a function begins at a place, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::code) enum Sign {
    /// It sets up a frame, or follows what never runs.
    Certain,
    /// Before it stand a return, and instructions that do nothing.
    Return,
    /// Before it stand a jump, with instructions that do nothing or without, or a return alone: it may be a label as well. Or it
    /// saves registers behind a call, which may be one that never returns.
    Jump,
}

impl Sign {
    /// That at an offset in code, as far as the bytes around it tell.
    pub(in crate::code) fn at(code: &[u8], at: usize) -> Option<Self> {
        if sets_up_frame(&code[at..]) || follows_int3(code, at) {
            Some(Self::Certain)
        } else if follows_nops(code, at, returns) {
            Some(Self::Return)
        } else {
            let before = &code[..at];
            let follows_end = ends_by_itself(before) && !reads_stack(&code[at..]);
            let follows_call = calls(before) && saves_registers(&code[at..]);
            let ends = |before: &[u8]| ends_function(before) && ends_in_flow(before);
            let may_begin = follows_nops(code, at, ends)
                || (follows_end || follows_call) && ends_in_flow(before);
            may_begin.then_some(Self::Jump)
        }
    }
}

/// The offsets in so many bytes of code, the first at this address, where a function can begin.
pub(in crate::code) fn places(
    address: u64,
    bytes: usize,
) -> impl DoubleEndedIterator<Item = usize> {
    let first = (address.next_multiple_of(ALIGNMENT) - address) as usize;
    (first..bytes).step_by(ALIGNMENT as usize)
}

/// Whether a function sets up its frame in its first instructions: `push rbp; mov rbp, rsp`, behind `endbr64` where the processor
/// checks the targets of jumps.
pub(in crate::code) fn sets_up_frame(code: &[u8]) -> bool {
    let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
    matches!(
        code,
        [0x55, 0x48, 0x89, 0xe5, ..] | [0x55, 0x48, 0x8b, 0xec, ..]
    )
}

/// Whether at this offset something begins that stands behind the end of a function and what fills up to it.
pub(in crate::code) fn follows_filling(code: &[u8], at: usize) -> bool {
    follows_int3(code, at) || follows_nops(code, at, returns)
}

/// Whether at this offset something begins that stands behind filling that does not run.
fn follows_int3(code: &[u8], at: usize) -> bool {
    let (before, behind) = code.split_at(at);
    if behind.first().is_none_or(|&first| first == INT3) {
        return false;
    }
    let filling = before.iter().rev().take_while(|&&byte| byte == INT3);
    match filling.count() {
        // Instructions hold such bytes, too, but hardly two.
        2.. => true,
        1 => ends_function(&before[..before.len() - 1]),
        _ => false,
    }
}

/// Whether the end of a function, and nothing but instructions that do nothing, stand at the end of these bytes. GCC fills so, also
/// between such an end and a label of the same function: there a function is split in two.
fn follows_nops(code: &[u8], at: usize, is_end: impl Fn(&[u8]) -> bool) -> bool {
    let (before, behind) = code.split_at(at);
    // The last byte of instructions that do nothing; most others are told apart by it.
    let may_be_filling = matches!(before.last(), Some(0x00 | 0x90));
    if !may_be_filling || behind.first().is_none_or(|&first| first == INT3) {
        return false;
    }
    (1..MAX_FILLING).any(|filling| {
        before.len() > filling
            && is_end(&before[..before.len() - filling])
            && is_padding(&before[before.len() - filling..], 0)
    })
}

/// Whether these bytes end with a return.
fn returns(code: &[u8]) -> bool {
    matches!(code, [.., 0xc3])
}

/// Whether these bytes end with a return or a jump.
fn ends_by_itself(code: &[u8]) -> bool {
    returns(code)
        || matches!(code, [.., 0xe9, _, _, _, high] if is_near(*high))
        || matches!(code, [.., 0xeb, _])
}

/// Whether these bytes end with a call, by its distance or through a table.
fn calls(code: &[u8]) -> bool {
    matches!(code, [.., 0xe8, _, _, _, high] if is_near(*high))
        || matches!(code, [.., 0xff, 0x15, _, _, _, _])
}

/// Whether a distance with this highest byte is below 256 MiB: no larger code is known, but vector instructions hold what looks like
/// a jump or a call that far.
fn is_near(high: u8) -> bool {
    matches!(high, 0..=0x0f | 0xf0..)
}

/// Whether code begins with a push of two of the registers that a function keeps for its caller: rbx, rbp, r12 to r15.
fn saves_registers(code: &[u8]) -> bool {
    fn behind_push(code: &[u8]) -> Option<&[u8]> {
        match code {
            [0x53 | 0x55, rest @ ..] | [0x41, 0x54..=0x57, rest @ ..] => Some(rest),
            _ => None,
        }
    }
    behind_push(code).and_then(behind_push).is_some()
}

/// Whether code begins with a load of a register from above the stack pointer: what code does in the middle of a function that
/// keeps variables there, and hardly any at its beginning, where callers' frames are above it.
fn reads_stack(code: &[u8]) -> bool {
    matches!(code, [0x48 | 0x4c, 0x8b, modrm, 0x24, ..] if matches!(modrm & 0b1100_0111, 0x44 | 0x84))
}

/// Decoding begins so many bytes before the end of code, each time elsewhere: after a few instructions nearly all agree on where the
/// next begins.
const LEADS: [usize; 7] = [64, 69, 74, 79, 84, 89, 94];

/// Whether code whose last bytes look like a return, a jump or a call ends with one: vector instructions hold such bytes, too.
fn ends_in_flow(code: &[u8]) -> bool {
    let (mut all, mut ending) = (0, 0);
    for lead in LEADS {
        let code = &code[code.len().saturating_sub(lead)..];
        let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
        let mut flow = None;
        while decoder.can_decode() {
            let instruction = decoder.decode();
            flow = (!instruction.is_invalid()).then(|| instruction.flow_control());
            if flow.is_none() {
                break;
            }
        }
        // An instruction that goes beyond the end is invalid.
        all += usize::from(flow.is_some() || decoder.position() == code.len());
        ending += usize::from(flow.is_some_and(|flow| flow != FlowControl::Next));
    }
    ending * 2 > all
}

/// Whether these bytes end with a return, a jump, or what never goes on.
fn ends_function(code: &[u8]) -> bool {
    ends_by_itself(code) || matches!(code, [.., 0x0f, 0x0b])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_functions_are_filled_up_with_ends_them() {
        assert!(follows_filling(b"\xc3\xcc\x41", 2));
        assert!(follows_filling(b"\x90\xcc\xcc\x41", 3));
        assert!(follows_filling(b"\xe9\0\0\0\0\xcc\x41", 6));
        assert!(follows_filling(b"\xc3\x66\x90\x41", 3));
        assert!(
            !follows_filling(b"\x90\xcc\x41", 2),
            "a byte of an instruction"
        );
        assert!(!follows_filling(b"\xc3\xcc\xcc", 2), "more filling");
        // vphadduwq xmm3, xmm3, and the beginning of another vector instruction
        let vectors = b"\x8f\xe9\x78\xd7\xdb\xc5\xcc\x41";
        assert!(!follows_filling(vectors, 7), "no jump");
        assert!(!follows_filling(b"\x90\x66\x90\x41", 3), "a label");
        assert!(!follows_filling(b"\x41", 0));
    }

    #[test]
    fn a_function_may_begin_behind_a_call_that_never_returns() {
        // call …; push rbp; push r15
        assert_eq!(
            Sign::at(b"\xff\x15\0\0\0\0\x55\x41\x57", 6),
            Some(Sign::Jump)
        );
        assert_eq!(Sign::at(b"\xe8\0\0\0\0\x41\x56\x53", 5), Some(Sign::Jump));
        assert_eq!(Sign::at(b"\xe8\0\0\0\0\x55\x90", 5), None);
        assert_eq!(Sign::at(b"\x90\0\0\0\0\x55\x53", 5), None);
    }

    #[test]
    fn a_function_may_begin_where_another_returns() {
        assert_eq!(Sign::at(b"\x90\xc3\x41\x57", 2), Some(Sign::Jump));
        assert_eq!(Sign::at(b"\x90\x90\x41\x57", 2), None);
        // `mov rcx, [rsp + 0x18]`: a label behind a return.
        assert_eq!(Sign::at(b"\x90\xc3\x48\x8b\x4c\x24\x18", 2), None);
        assert_eq!(Sign::at(b"\x90\xc3\x4c\x8b\xac\x24\x18\x01\0\0", 2), None);
    }

    #[test]
    fn a_vector_instruction_is_no_jump_and_no_return() {
        // vpor xmm4, xmm4, xmm6; vpunpcklbw xmm0, xmm0, xmm3
        for instruction in [b"\xc5\xd9\xeb\xe6", b"\xc5\xf9\x60\xc3"] {
            let code = instruction.repeat(40);
            assert_eq!(Sign::at(&code, 112), None);
            let jumping = [&code[..112], b"\xeb\x20", &code].concat();
            assert_eq!(Sign::at(&jumping, 114), Some(Sign::Jump));
        }
    }
}
