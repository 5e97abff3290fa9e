//! Rows for Go's functions, which no unwind section describes in a stripped program.
//!
//! In: the size of each function's frame at each instruction, which Go's own table has
//! ([`Frames`]). Out: stretches of code with their rules. Compiled functions all have the same frame: on top the return
//! address, below it the caller's frame pointer (`cmd/internal/obj/x86/obj6.go`, `preprocess`). What was written in assembly is
//! [read](assembly).

mod assembly;

use super::found::{Change, Found, Stretch, count};
use super::x86_64;
use crate::code::{Frames, GoFunctions};
use assembly::Switch;
use profiler_common::abi::{How, Origin, Rule, Slot};
use profiler_common::walk::x86_64::{RBP, RSP};
use std::ops::Range;

/// The most bytes of one function that are decoded. Of Go's own, the longest (elliptic curves) has a third.
const MAX_CODE_BYTES: usize = 64 << 10;

/// Where the caller's frame pointer is in a frame, from the CFA: below the return address.
const SAVED: i64 = -16;

/// Adds the functions of a Go program whose code is there.
pub(super) fn describe(program: &mut GoFunctions<'_>, code: &[Range<u64>], found: &mut Found) {
    let mut style = None;
    program.each_frames(|program, frames| {
        let addresses = &frames.addresses;
        let before = code.partition_point(|part| part.start <= addresses.start);
        let part = code.get(..before).and_then(<[_]>::last);
        let Some(part) = part.filter(|part| part.contains(&addresses.start)) else {
            found.statistics.strays += 1;
            return;
        };
        let changes = changes(program, &frames, &mut style);
        let end = frames.sizes.last().map_or(0, |(end, _)| *end);
        let is_return = is_signal_return(&frames);
        let addresses = Range {
            // A handler returns to the first byte, and is looked up one byte before.
            start: addresses.start - u64::from(is_return),
            end: addresses.start.saturating_add(end).min(part.end),
        };
        let first = count(found.changes.len());
        let mut last = None;
        for (after, rule) in changes {
            if last != Some(rule) {
                last = Some(rule);
                let rule = found.rules.place(rule);
                found.changes.push(Change { after, rule });
            }
        }
        found.stretches.push(Stretch {
            addresses,
            changes: first..count(found.changes.len()),
        });
    });
}

/// Whether it is where the kernel lets signal handlers return to.
fn is_signal_return(frames: &Frames) -> bool {
    frames.name.starts_with(b"runtime.sigreturn")
}

/// The rules of a function, each with the offset from which it holds.
fn changes(
    program: &GoFunctions<'_>,
    frames: &Frames,
    style: &mut Option<Prologue>,
) -> Vec<(u32, Rule)> {
    let code = || program.code(&frames.addresses, MAX_CODE_BYTES);
    if is_signal_return(frames) {
        vec![(0, x86_64::SIGNAL_RETURN)]
    } else if is_outermost(frames) {
        vec![(0, Rule::ROOT)]
    } else if frames.is_assembly || frames.moves_stack {
        let switch = switch(&frames.name);
        assembly::rules(&code(), &frames.sizes, frames.moves_stack, switch)
    } else {
        compiled(&frames.sizes, |place| {
            *style.get_or_insert_with(|| Prologue::of(&code(), place))
        })
    }
}

/// Whether walks end here: goroutines and threads begin with it. From the handler of signals they go on to what was
/// interrupted, other than in the runtime.
fn is_outermost(frames: &Frames) -> bool {
    let name = frames.name.as_slice();
    let begins = name.starts_with(b"_rt0_") && !name.ends_with(b"_lib");
    begins || (frames.is_outermost && name != b"runtime.sigtramp")
}

/// The frame that a walk goes on with from a function that has changed to another stack.
fn switch(name: &[u8]) -> Switch {
    match name {
        // The goroutine is left for good: it may run elsewhere by now, on another stack.
        b"runtime.mcall" | b"runtime.morestack" => Switch::Root,
        b"runtime.systemstack" | b"runtime.asmcgocall" | b"runtime.asmcgocall_no_g" => {
            Switch::Pointer
        }
        _ => Switch::Unknown,
    }
}

/// How compilers save the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prologue {
    /// `push rbp`, then the rest of the frame (since Go 1.21).
    Push,
    /// The frame, then `mov [rsp+n], rbp`.
    Store,
}

impl Prologue {
    /// That of a function with this code, whose frame has 8 bytes from `place` on.
    fn of(code: &[u8], place: u64) -> Self {
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
fn compiled(sizes: &[(u64, i32)], push: impl FnOnce(u64) -> Prologue) -> Vec<(u32, Rule)> {
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
    match size.checked_add(8).filter(|_| size >= 0 && size % 8 == 0) {
        Some(cfa) => Rule::new(How::Offset, RSP, cfa).with_slots(Origin::Cfa, fp, Slot::LOST),
        None => Rule::MISSING,
    }
}

/// The rule where the frame pointer leads to the frame.
fn by_pointer() -> Rule {
    Rule::new(How::Offset, RBP, 16).with_slots(Origin::Cfa, saved(), Slot::LOST)
}

#[cfg(test)]
mod tests;
