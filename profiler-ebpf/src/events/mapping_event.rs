//! Mapping events: reports to user space what is mapped at the addresses of a stack, once for each mapping of each process,
//! as the kernel has it at the time of the sample.
//!
//! In: the user stack and the key in the scratch memory. Out: records in the queue ([`profiler_common::abi::MappingEventRecord`]). So a
//! process need not be inspected while it lives, and each sample is named by what was mapped then, whatever the process
//! does later. A file's path is reported with its first mapping.

use super::{function_event, send_record};
use crate::{
    platform::{
        config::{self, config},
        loops::{Turn, repeat},
        maps::{Counters, REPORTED, REPORTED_SLOTS, Scratch},
        memory,
        subprog::subprog,
    },
    sample::counters,
    walk::{code_index, mappings, scratch::FOUND},
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{
        Counter, FrameWord, Header, KernelEventKind, MAPPING_EVENT_WORDS, MAX_USER_WORDS,
        PATH_BYTES, PATH_STEPS, SampleKey, Switches,
    },
    intern::Hash,
};

/// Something of the process was reported: user space knows it.
const KNOWN: u32 = 1;

/// Something could not be reported.
const DROPPED: u32 = 2;

/// A function could not be reported.
const FUNCTION_DROPPED: u32 = 4;

subprog! {
    /// Reports the mappings of the user stack in the scratch memory, for the process whose key is there, unless that was
    /// done recently. Returns whether user space knows the process from it.
    pub(crate) fn report_stack(cpu_slot: u32) -> bool {
        if !config::has(Switches::MAPPING_EVENTS) || !config::has(Switches::USER_STACKS) {
            return false;
        }
        let (Some(scratch), Some(counters)) = (Scratch::of(cpu_slot), counters::counters(cpu_slot)) else {
            return false;
        };
        stack(cpu_slot, scratch, counters)
    }
}

#[inline(always)]
fn stack(cpu_slot: u32, scratch: &'static Scratch, counters: &Counters) -> bool {
    if scratch.user[0].load() == 0 {
        return false;
    }
    let key = &scratch.key;
    // With the position of the stack and its epoch.
    let hash = Hash::new(config!(seed))
        .with(key[SampleKey::INCARNATION_WORD].load())
        .with(u64::from(key[SampleKey::TGID_WORD].load() as u32))
        .with(key[SampleKey::USER_WORD].load() >> 32)
        .with(key[SampleKey::STAMP_WORD].load() >> 32);
    let Some(slot) = REPORTED.get(hash.slot(0, REPORTED_SLOTS - 1)) else {
        return false;
    };
    if slot.load() == hash.0 {
        return true;
    }
    for range in &scratch.report.ranges {
        range.end.store(0);
    }
    scratch.report.space.store(mappings::space());
    let mut frames = Frames {
        scratch,
        cpu_slot,
        reported: 0,
    };
    repeat(MAX_USER_WORDS as u32, &mut frames);
    if frames.reported & DROPPED != 0 {
        counters::bump(counters, Counter::MappingEventsDropped);
    } else if frames.reported & FUNCTION_DROPPED != 0 {
        counters::bump(counters, Counter::FunctionEventsDropped);
    } else {
        slot.store(hash.0);
    }
    frames.reported & KNOWN != 0
}

/// One frame of a stack after the other.
struct Frames {
    scratch: &'static Scratch,
    cpu_slot: u32,
    /// [`KNOWN`], [`DROPPED`] and [`FUNCTION_DROPPED`].
    reported: u32,
}

impl Turn for Frames {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let scratch = self.scratch;
        let place = scratch.user.get(1 + black_box(index as usize));
        let Some(place) =
            place.filter(|_| (index as usize) < Header(scratch.user[0].load()).words())
        else {
            return ControlFlow::Break(());
        };
        let word = FrameWord(place.load());
        if config::has(Switches::RUNTIMES) && !word.is_native() {
            if word.runtime().is_some() && !function_event::report_function(self.cpu_slot, index) {
                self.reported |= FUNCTION_DROPPED;
            }
            return ControlFlow::Continue(());
        }
        // A caller is looked up inside its call, as in user space.
        let address = word.address().wrapping_sub(u64::from(index > 0));
        for range in &scratch.report.ranges {
            if range.start.load() <= address && address < range.end.load() {
                return ControlFlow::Continue(());
            }
        }
        self.reported |= report_address(self.cpu_slot, address);
        ControlFlow::Continue(())
    }
}

subprog! {
    /// Reports the mapping at an address of the running process, unless that was done recently. [`KNOWN`] if user space
    /// knows it, [`DROPPED`] if that failed, zero if there is no mapping it should know.
    fn report_address(cpu_slot: u32, address: u64) -> u32 {
        Scratch::of(cpu_slot).map_or(0, |scratch| report(cpu_slot, scratch, address))
    }
}

#[inline(always)]
fn report(cpu_slot: u32, scratch: &'static Scratch, address: u64) -> u32 {
    let (report, key) = (&scratch.report, &scratch.key);
    let incarnation = key[SampleKey::INCARNATION_WORD].load();
    let tgid = key[SampleKey::TGID_WORD].load() as u32;
    let turn = report.turn.load();
    report.turn.store(turn.wrapping_add(1));
    let Some(range) = report.ranges.get(turn as usize & (FOUND - 1)) else {
        return 0;
    };
    range.start.store(address);
    range.end.store(address.wrapping_add(1));
    let Some(mapping) = mappings::find(report.space.load(), scratch, address) else {
        return 0;
    };
    range.start.store(mapping.start);
    range.end.store(mapping.end);
    if !mapping.is_executable() {
        return 0;
    }
    let (key, offset) = mapping.code();
    let file = code_index::hash(key);
    let whole = file
        .with(incarnation)
        .with(u64::from(tgid))
        .with(mapping.start)
        .with(mapping.end)
        .with(offset);
    let (Some(known), Some(file_known)) = (
        REPORTED.get(whole.slot(0, REPORTED_SLOTS - 1)),
        REPORTED.get(file.slot(0, REPORTED_SLOTS - 1)),
    ) else {
        return 0;
    };
    if known.load() == whole.0 {
        return KNOWN;
    }
    // The fields of `MappingEventRecord`, in order.
    let words: [u64; MAPPING_EVENT_WORDS] = [
        u64::from(KernelEventKind::Mapping as u32) | u64::from(tgid) << 32,
        incarnation,
        mapping.start,
        mapping.end,
        offset,
        key.device,
        key.inode,
        key.modified,
    ];
    for (place, word) in report.record.iter().zip(words) {
        place.store(word);
    }
    report.length.store(0);
    let is_file = key.device != 0;
    if is_file && file_known.load() != file.0 {
        put_path(cpu_slot, mapping.vma);
    }
    // A process that makes code, or runs an unknown file, is inspected while it lives.
    let is_priority = key.is_anonymous() || report.length.load() != 0;
    if !send_record::<MAPPING_EVENT_WORDS>(&report.record, &report.length, is_priority) {
        return DROPPED;
    }
    known.store(whole.0);
    if is_file {
        file_known.store(file.0);
    }
    KNOWN
}

subprog! {
    /// Builds the path of a mapped file behind the record: its names from the last to the first.
    fn put_path(cpu_slot: u32, vma: u64) {
        if let Some(scratch) = Scratch::of(cpu_slot) {
            let report = &scratch.report;
            let [mount, entry] = mappings::path(vma).unwrap_or_default();
            report.mount.store(mount);
            report.entry.store(entry);
            repeat(PATH_STEPS, &mut Names { scratch });
        }
    }
}

/// One name, or mount, after the other.
struct Names {
    scratch: &'static Scratch,
}

impl Turn for Names {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        let report = &self.scratch.report;
        let (mount, entry) = (report.mount.load(), report.entry.load());
        if mount == 0 || entry == 0 {
            return ControlFlow::Break(());
        }
        let root: u64 = memory::kernel(mount + u64::from(config!(mapping.mount_root)));
        if entry == root {
            // As `prepend_path` in `fs/d_path.c` does: on to where this is mounted.
            let whole = mount.wrapping_sub(u64::from(config!(mapping.mount_part)));
            let parent: u64 = memory::kernel(whole + u64::from(config!(mapping.mount_parent)));
            if parent == whole {
                return ControlFlow::Break(());
            }
            report.entry.store(memory::kernel(
                whole + u64::from(config!(mapping.mount_point)),
            ));
            report
                .mount
                .store(parent.wrapping_add(u64::from(config!(mapping.mount_part))));
            return ControlFlow::Continue(());
        }
        let parent: u64 = memory::kernel(entry + u64::from(config!(mapping.entry_parent)));
        let length = report.length.load() as usize;
        // An entry without a parent is a name if it is the first, as for files in memory.
        if parent == entry && length > 0 {
            return ControlFlow::Break(());
        }
        if length >= PATH_BYTES {
            return ControlFlow::Break(());
        }
        let name: u64 = memory::kernel(entry + u64::from(config!(mapping.entry_name)));
        let Some(copied) = memory::copy_name(&report.record, length, name) else {
            return ControlFlow::Break(());
        };
        report.length.store((length + copied) as u64);
        report.entry.store(parent);
        if parent == entry {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
