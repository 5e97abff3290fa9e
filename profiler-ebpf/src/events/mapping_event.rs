//! Mapping events: reports to user space what is mapped at the addresses of a stack, once for each mapping of each process,
//! as the kernel has it at the time of the sample.
//!
//! In: the user stack in the scratch memory. Out: the check of its mappings, in its header, and records in the queue
//! ([`profiler_common::abi::MappingEventRecord`]). So a process need not be inspected while it lives, and each sample is
//! named by what was mapped then, whatever the process does later. A file's path is reported with its first mapping.

use super::send_record;
use crate::{
    platform::{
        config::config,
        loops::{Turn, repeat},
        maps::{CHECKED, CHECKED_SLOTS, REPORTED, REPORTED_SLOTS, Scratch},
        memory,
        subprog::subprog,
    },
    sample::{context::SampleContext, counters},
    task,
    walk::{code_cache, code_index, mappings},
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{
        COMM_BYTES, Counter, FrameWord, Header, KernelEventKind, MAPPING_EVENT_WORDS,
        MAX_USER_WORDS, MappingCheck, MappingKey, PATH_BYTES, PATH_STEPS,
    },
    intern::Hash,
};

subprog! {
    /// Puts the check of its mappings into the header of the user stack in the scratch memory, which is complete. Those
    /// that user space does not know are reported.
    ///
    /// As long as the process changes no mapping, the check of a stack stays the same, and is kept.
    pub(crate) fn check_stack(cpu_slot: u32) {
        if let (Some(scratch), Some(context)) = (Scratch::of(cpu_slot), SampleContext::of(cpu_slot)) {
            check(cpu_slot, scratch, context);
        }
    }
}

#[inline(always)]
fn check(cpu_slot: u32, scratch: &'static Scratch, context: SampleContext) {
    let header = Header(scratch.user[0].load());
    // Outside of our PID namespace, nobody looks for the names.
    if header.0 == 0 || context.ids.tgid == 0 {
        return;
    }
    let Some(known) = code_cache::known(scratch) else {
        return;
    };
    let stamp = Hash(scratch.user_hash.load())
        .with(context.incarnation)
        .with(u64::from(context.ids.tgid))
        .with(known.changes());
    let may_keep = known.has_changes();
    if may_keep && known.checked.load() == stamp.0 {
        let check = known.check.load() as u32;
        return scratch.user[0].store(header.with_check(check).0);
    }
    let Some(slot) = CHECKED.get(stamp.slot(0, CHECKED_SLOTS - 1)) else {
        return;
    };
    let kept = slot.load();
    if may_keep && kept != 0 && (kept >> 32) as u32 == stamp.tag() {
        known.keep_check(stamp, kept as u32);
        return scratch.user[0].store(header.with_check(kept as u32).0);
    }
    let mut frames = Frames {
        scratch,
        cpu_slot,
        check: MappingCheck::EMPTY,
        has_dropped: false,
    };
    repeat(MAX_USER_WORDS as u32, &mut frames);
    let check = frames.check.finish();
    scratch.user[0].store(header.with_check(check).0);
    if frames.has_dropped {
        if let Some(counters) = counters::counters(cpu_slot) {
            counters::bump(counters, Counter::MappingEventsDropped);
        }
    } else if may_keep {
        known.keep_check(stamp, check);
        slot.store(u64::from(stamp.tag()) << 32 | u64::from(check));
    }
}

/// Words of the name that ends a record.
const LEADER_WORDS: usize = COMM_BYTES / 8;

/// One frame of a stack after the other.
struct Frames {
    scratch: &'static Scratch,
    cpu_slot: u32,
    check: MappingCheck,
    /// Whether a mapping could not be reported.
    has_dropped: bool,
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
        if !word.is_native() {
            return ControlFlow::Continue(());
        }
        // A caller is looked up inside its call, as in user space.
        let address = word.address().wrapping_sub(u64::from(index > 0));
        let Some(found) = code_cache::look_up(self.cpu_slot, scratch, address) else {
            return ControlFlow::Break(());
        };
        let unreported = found.unreported.load();
        if unreported != 0 {
            if is_reported(unreported) || report_mapping(self.cpu_slot, address) {
                found.unreported.store(0);
            } else {
                self.has_dropped = true;
            }
        }
        self.check = self.check.with(MappingKey(found.mapping_key.load()));
        ControlFlow::Continue(())
    }
}

/// Whether the mapping with this hash was reported lately.
#[inline(always)]
fn is_reported(mapping: u64) -> bool {
    let slot = REPORTED.get(Hash(mapping).slot(0, REPORTED_SLOTS - 1));
    slot.is_none_or(|slot| slot.load() == mapping)
}

subprog! {
    /// Reports the mapping at an address of the running process; false if that failed.
    fn report_mapping(cpu_slot: u32, address: u64) -> bool {
        match (Scratch::of(cpu_slot), SampleContext::of(cpu_slot)) {
            (Some(scratch), Some(context)) => report(scratch, context, address),
            _ => true,
        }
    }
}

#[inline(always)]
fn report(scratch: &'static Scratch, context: SampleContext, address: u64) -> bool {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        ..
    } = context;
    let report = &scratch.report;
    let Some(mapping) = mappings::find(mappings::space(), scratch, address) else {
        return true;
    };
    let (key, offset) = mapping.code();
    let file = code_index::hash(key);
    let hash = code_cache::hash_of_mapping(scratch, file, mapping, offset);
    let (Some(known), Some(file_known)) = (
        REPORTED.get(hash.slot(0, REPORTED_SLOTS - 1)),
        REPORTED.get(file.slot(0, REPORTED_SLOTS - 1)),
    ) else {
        return true;
    };
    let mapping_key = if key.is_anonymous() {
        MappingKey::MEMORY
    } else {
        MappingKey::of_file(file, offset.wrapping_sub(mapping.start))
    };
    // The fields of `MappingEventRecord`, in order.
    let words: [u64; MAPPING_EVENT_WORDS - LEADER_WORDS] = [
        u64::from(KernelEventKind::Mapping as u32) | u64::from(ids.tgid) << 32,
        incarnation,
        mapping.start,
        mapping.end,
        offset,
        key.device,
        key.inode,
        key.modified,
        mapping_key.0,
    ];
    for (place, word) in report.record.iter().zip(words) {
        place.store(word);
    }
    let leader = task::leader_comm();
    report.record[MAPPING_EVENT_WORDS - 2].store(leader[0]);
    report.record[MAPPING_EVENT_WORDS - 1].store(leader[1]);
    report.length.store(0);
    let is_file = key.device != 0;
    if is_file && file_known.load() != file.0 {
        put_path(cpu_slot, mapping.vma);
    }
    // A process that makes code, or runs an unknown file, is inspected while it lives.
    let is_priority = key.is_anonymous() || report.length.load() != 0;
    if !send_record::<MAPPING_EVENT_WORDS>(&report.record, &report.length, is_priority) {
        return false;
    }
    known.store(hash.0);
    if is_file {
        file_known.store(file.0);
    }
    true
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
