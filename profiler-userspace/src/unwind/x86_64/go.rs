//! Frames of Go's functions on x86-64.
//!
//! In: the size of a function's frame at each instruction. Out: its rules. Compiled functions all have the same frame: on top the
//! return address, below it the caller's frame pointer (`cmd/internal/obj/x86/obj6.go`, `preprocess`). What was written in assembly
//! is [read](assembly).

pub(in crate::unwind) mod assembly;

use profiler_common::abi::{Origin, Rule, RuleKind, Slot};
use profiler_common::walk::x86_64::{FP as RBP, SP as RSP};

/// Where the caller's frame pointer is in a frame, from the CFA: below the return address.
const SAVED: i64 = -16;

/// How compilers save the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::unwind) enum Prologue {
    /// `push rbp`, then the rest of the frame (since Go 1.21).
    Push,
    /// The frame, then `mov [rsp+n], rbp`.
    Store,
}

impl Prologue {
    /// That of a function with this code, whose frame has 8 bytes from `place` on.
    pub(in crate::unwind) fn of(code: &[u8], place: u64) -> Self {
        const PUSH: u8 = 0x55;
        let before = usize::try_from(place).ok().and_then(|at| at.checked_sub(1));
        match before.and_then(|at| code.get(at)) {
            Some(&PUSH) => Self::Push,
            _ => Self::Store,
        }
    }
}

/// The rules of a compiled function. `push` tells which prologue the program has, from a function whose first frame has one
/// word from an offset on.
pub(in crate::unwind) fn compiled(
    sizes: &[(u64, i32)],
    push: impl FnOnce(u64) -> Prologue,
) -> Vec<(u32, Rule)> {
    let mut rules = Vec::new();
    let mut push = Some(push);
    let mut start = 0;
    for &(end, size) in sizes {
        let Ok(after) = u32::try_from(start) else {
            break;
        };
        start = end;
        if size != 0
            && let Some(push) = push.take()
            && let Some(store) = store_bytes(size)
            && (size > 8 || push(after.into()) == Prologue::Store)
        {
            // Until it is saved, it is the caller's.
            rules.push((after, frame(size, Slot::SAME)));
            let after = after.saturating_add(store);
            if u64::from(after) < end {
                rules.push((after, frame(size, saved())));
            }
            continue;
        }
        let slot = if size == 0 { Slot::SAME } else { saved() };
        rules.push((after, frame(size, slot)));
    }
    rules
}

/// The size of `mov [rsp+n], rbp` that saves the frame pointer in a frame of so many bytes.
fn store_bytes(size: i32) -> Option<u32> {
    match size.checked_sub(8)? {
        0 => Some(4),
        1..=127 => Some(5),
        128.. => Some(8),
        _ => None,
    }
}

fn saved() -> Slot {
    Slot::at(SAVED).unwrap_or(Slot::LOST)
}

/// The rule where so many bytes are between the stack pointer and the return address.
fn frame(size: i32, fp: Slot) -> Rule {
    let cfa = (size >= 0 && size % 8 == 0).then(|| i64::from(size) + 8);
    cfa.and_then(|cfa| Rule::fitting(RuleKind::Offset, RSP, cfa))
        .map_or(Rule::MISSING, |rule| {
            rule.with_slots(Origin::Cfa, fp, Slot::LOST)
        })
}

/// The rule where the frame pointer leads to the frame.
pub(in crate::unwind) fn by_pointer() -> Rule {
    Rule::new(RuleKind::Offset, RBP, 16).with_slots(Origin::Cfa, saved(), Slot::LOST)
}

#[cfg(test)]
mod tests;
