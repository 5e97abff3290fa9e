//! Rows for Go's functions, which no unwind section describes in a stripped program.
//!
//! In: the size of each function's frame at each instruction, which Go's own table has
//! ([`Frames`]). Out: stretches of code with their rules. Where a frame of a size has the caller's frame pointer and the return
//! address is the machine's business, as is what was written in assembly.

use super::arch;
use super::arch::go::{Prologue, assembly::Switch};
use super::found::{UnwindFindings, part_at};
use crate::code::{Frames, GoFunctions};
use profiler_common::abi::Rule;
use std::ops::Range;

/// The most bytes of one function that are decoded. Of Go's own, the longest (elliptic curves) has a third.
const MAX_CODE_BYTES: usize = 64 << 10;

/// Adds the functions of a Go program whose code is there.
pub(super) fn describe(
    program: &mut GoFunctions<'_>,
    code: &[Range<u64>],
    found: &mut UnwindFindings,
) {
    let mut style = None;
    program.each_frames(|program, frames| {
        let addresses = &frames.addresses;
        let Some(part) = part_at(code, addresses.start) else {
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
        let first = found.next_change();
        let mut last = None;
        for (after, rule) in changes {
            if last != Some(rule) {
                last = Some(rule);
                found.change(after, rule);
            }
        }
        found.add_stretch(addresses, first);
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
        vec![(0, arch::SIGNAL_RETURN)]
    } else if is_outermost(frames) {
        vec![(0, Rule::ROOT)]
    } else if frames.is_assembly || frames.moves_stack {
        let switch = switch(&frames.name);
        arch::go::assembly::rules(&code(), &frames.sizes, frames.moves_stack, switch)
    } else {
        arch::go::compiled(&frames.sizes, |place| {
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

#[cfg(test)]
pub(super) mod tests;
