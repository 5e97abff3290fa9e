//! Function events: reports to user space what a function of an interpreter's is called, once for each function of each
//! process, when it is first sampled.
//!
//! In: the two words of a frame of the running thread. Out: a record in the queue
//! ([`profiler_common::abi::FunctionEventRecord`]). The function runs now, so its name is what it is called, whatever becomes
//! of its memory later.

use super::{once, send_record, wake};
use crate::{
    events::scratch::Report,
    platform::{
        config::{self, config},
        loops::{Turn, repeat},
        maps::{FUNCTION_SLOTS, FUNCTIONS, Scratch},
        memory,
        subprog::subprog,
    },
    sample::{context::SampleContext, counters},
    walk::runtime::{self, scratch::RUNTIME_KINDS},
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{
        CopiedString, Counter, FUNCTION_EVENT_WORDS, FUNCTION_FILE_BYTES, FUNCTION_NAME_BYTES,
        FrameTag, FrameWord, Header, KernelEventKind, MAX_USER_WORDS, OWNER_BYTES, SampleKey,
        Switches,
    },
    intern::Hash,
    runtime::Encoding,
};

subprog! {
    /// Reports the functions of interpreters in the user stack in the scratch memory, of the process whose key is there.
    pub(crate) fn report_functions(cpu_slot: u32) {
        let (Some(scratch), Some(counters)) = (Scratch::of(cpu_slot), counters::counters(cpu_slot)) else {
            return;
        };
        if !config::has(Switches::RUNTIMES)
            || scratch.user[0].load() == 0
            || scratch.chains.words.load() == 0
        {
            return;
        }
        let mut frames = Frames {
            scratch,
            cpu_slot,
            outcomes: NOTHING,
        };
        repeat(MAX_USER_WORDS as u32, &mut frames);
        if frames.outcomes & DROPPED != 0 {
            counters::bump(counters, Counter::FunctionEventsDropped);
        }
        if frames.outcomes & SENT != 0 {
            wake_for_functions(cpu_slot);
        }
    }
}

/// Nanoseconds in which user space is woken once for functions, as a power of two: 17 ms. To read many together costs much less than one
/// after the other; but they are read while their process lives. Those that are reported behind the wake-up are read with the next ones,
/// or when user space looks of its own accord, ten times a second.
const PAUSE_BITS: u64 = 24;

subprog! {
    /// Wakes user space for the functions that are in the queue, unless that was done a moment ago.
    fn wake_for_functions(cpu_slot: u32) {
        let Some(context) = SampleContext::of(cpu_slot) else {
            return;
        };
        let hash = Hash::new(config!(seed))
            .with(KernelEventKind::Function as u64)
            .with(context.now >> PAUSE_BITS);
        once(hash, wake);
    }
}

/// One word of a stack after the other.
struct Frames {
    scratch: &'static Scratch,
    cpu_slot: u32,
    /// All outcomes of reports.
    outcomes: u32,
}

impl Turn for Frames {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let place = self.scratch.user.get(1 + black_box(index as usize));
        let words = Header(self.scratch.user[0].load()).words();
        let Some(place) = place.filter(|_| (index as usize) < words) else {
            return ControlFlow::Break(());
        };
        if FrameWord(place.load()).runtime().is_some() {
            self.outcomes |= report_function(self.cpu_slot, index);
        }
        ControlFlow::Continue(())
    }
}

/// Outcome of a report: there was nothing new to say. The others are bits.
const NOTHING: u32 = 0;
/// Outcome of a report: it is in the queue.
const SENT: u32 = 1;
/// Outcome of a report: the queue is full.
const DROPPED: u32 = 2;

subprog! {
    /// Reports a function, given the place of its frame in the stack, of the process whose key is in the scratch memory, unless that was
    /// done recently.
    fn report_function(cpu_slot: u32, place: u32) -> u32 {
        Scratch::of(cpu_slot).map_or(NOTHING, |scratch| report(cpu_slot, scratch, place as usize))
    }
}

#[inline(always)]
fn report(cpu_slot: u32, scratch: &'static Scratch, place: usize) -> u32 {
    // Hidden from the compiler, which would check another number than the one that is used.
    let word = |index: usize| {
        let word = scratch.user.get(index + black_box(place));
        word.map_or(0, |word| word.load())
    };
    let (function, position) = (FrameWord(word(1)), FrameWord(word(2)));
    let (caller, call) = (word(3), word(4));
    let kind = (function.0 >> 56).wrapping_sub(FrameTag::Function as u64);
    // Of another stack, where this one ends.
    let is_behind = place + 3 < Header(scratch.user[0].load()).words();
    let is_called = is_behind
        && runtime::NAMED_BY_CALLER >> (kind & (RUNTIME_KINDS as u64 - 1)) & 1 != 0
        && caller >> 56 == function.0 >> 56;
    let (caller, call) = if is_called { (caller, call) } else { (0, 0) };
    // Loaded twice, or they would be kept on the stack meanwhile, of which older kernels have just enough.
    let incarnation = || scratch.key[SampleKey::INCARNATION_WORD].load();
    let tgid = || scratch.key[SampleKey::TGID_WORD].load() as u32;
    let hash = Hash::new(config!(seed))
        .with(incarnation())
        .with(u64::from(tgid()))
        .with(function.0)
        // Without what names a line. The rest of the check is in the function's word.
        .with(position.0 >> 32)
        .with(caller)
        .with(call);
    let Some(slot) = FUNCTIONS.get(hash.slot(0, FUNCTION_SLOTS - 1)) else {
        return NOTHING;
    };
    if slot.load() == hash.0 {
        return NOTHING;
    }
    let Some(chain) = scratch.chains.of.get(kind as usize & (RUNTIME_KINDS - 1)) else {
        return NOTHING;
    };
    scratch.report.place.store(place as u64);
    if !runtime::strings_of(kind, cpu_slot, function.function_address()) {
        return NOTHING;
    }
    let report = &scratch.report;
    report.length.store(0);
    let [owner, name, file] = [0, 1, 2].map(|index| copy_string(cpu_slot, index));
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    // The fields of `FunctionEventRecord`, in order.
    let words: [u64; FUNCTION_EVENT_WORDS] = [
        pair(KernelEventKind::Function as u32, tgid()),
        incarnation(),
        function.0,
        chain.bias.load(),
        report.extra.load(),
        pair(position.check_of(function), chain.descriptor.load() as u32),
        pair(report.first_line.load() as u32, owner),
        pair(name, file),
        caller,
        call,
        position.0,
    ];
    for (place, word) in report.record.iter().zip(words) {
        place.store(word);
    }
    if !send_record::<FUNCTION_EVENT_WORDS>(&report.record, &report.length, false) {
        return DROPPED;
    }
    slot.store(hash.0);
    SENT
}

subprog! {
    /// Copies one of the strings behind the record and the strings before it; a [`CopiedString`].
    fn copy_string(cpu_slot: u32, index: u32) -> u32 {
        Scratch::of(cpu_slot).map_or(0, |scratch| copy(&scratch.report, index))
    }
}

#[inline(always)]
fn copy(report: &'static Report, index: u32) -> u32 {
    let Some(piece) = report.pieces.get(index as usize) else {
        return 0;
    };
    let most = match index {
        0 => OWNER_BYTES,
        1 => FUNCTION_NAME_BYTES,
        _ => FUNCTION_FILE_BYTES,
    } as u64;
    let (address, encoding) = (piece.address.load(), piece.encoding.load());
    let length = report.length.load();
    let (bytes, missing) = if address == 0 {
        (0, 0)
    } else if encoding == Encoding::CString as u64 {
        let bytes = memory::copy_user_text(&report.record, length, address, most);
        let missing = if bytes + 1 >= most {
            CopiedString::NO_END
        } else {
            0
        };
        (bytes, missing)
    } else {
        let whole = piece.bytes.load();
        let (skip, bytes, missing) = if whole <= most {
            (0, whole, 0)
        } else if index == 2 {
            // The limit is a multiple of every width.
            (whole - most, most, CopiedString::NO_BEGINNING)
        } else {
            (0, most, CopiedString::NO_END)
        };
        let from = address.wrapping_add(skip);
        let copied = memory::copy_user(&report.record, length, from, bytes);
        (if copied { bytes } else { 0 }, missing)
    };
    report.length.store(length.wrapping_add(bytes));
    CopiedString::new(bytes as u32, encoding as u32, missing).0
}

const _: () = assert!(
    OWNER_BYTES.is_multiple_of(4)
        && FUNCTION_NAME_BYTES.is_multiple_of(4)
        && FUNCTION_FILE_BYTES.is_multiple_of(4)
);
