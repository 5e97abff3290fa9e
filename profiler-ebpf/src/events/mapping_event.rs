//! Telling user space what lies at the addresses of a stack: each mapping of each process once, as the
//! kernel has it at the time of the sample.
//!
//! In: the user stack and the key in the scratch memory. Out: notices ([`profiler_common::abi::Mapped`]). So
//! nobody need look at a process while it lives, and whatever it did before and does later, each sample
//! is named by what lay at its addresses then. A file's path is told with the first mapping of it that is met.

use crate::{
    apart, events,
    platform::{
        config::{self, config},
        loops::{Turn, repeat},
        maps::{FOUND, NOTICES, SCRATCH, Scratch, TELLING_WORDS, TOLD, TOLD_SLOTS},
        memory,
        word::Word,
    },
    sample::counters,
    walk::{code_index, mappings},
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{
        Counter, Header, MAPPED_WORDS, MAX_USER_FRAMES, NoticeKind, PATH_BYTES, PATH_STEPS,
        Switches,
    },
    intern::Hash,
};

/// Something of the process has been told: user space knows of it.
const KNOWN: u32 = 1;

/// Something could not be told.
const UNTOLD: u32 = 2;

/// Tells what lies at the frames of the user stack in the scratch memory, unless that was done lately. Whether
/// user space has heard of the process so.
#[inline(always)]
pub(crate) fn stack(cpu_slot: u32, tgid: u32, incarnation: u64) -> bool {
    if !config::has(Switches::TELL_MAPPINGS) || !config::has(Switches::USER_STACKS) {
        return false;
    }
    let (Some(scratch), Some(counters)) = (SCRATCH.get(cpu_slot), counters::counters(cpu_slot))
    else {
        return false;
    };
    if scratch.user[0].load() == 0 {
        return false;
    }
    // With the position of the stack and the epoch that this is of.
    let hash = Hash::new(config!(seed))
        .with(incarnation)
        .with(u64::from(tgid))
        .with(scratch.key[2].load() >> 32)
        .with(scratch.key[3].load() >> 32);
    let Some(slot) = TOLD.get(hash.slot(0, TOLD_SLOTS - 1)) else {
        return false;
    };
    if slot.load() == hash.0 {
        return true;
    }
    for range in &scratch.telling.ranges {
        range.end.store(0);
    }
    let mut frames = Frames {
        scratch,
        space: mappings::space(),
        incarnation,
        tgid,
        cpu_slot,
        said: 0,
    };
    repeat(MAX_USER_FRAMES as u32, &mut frames);
    if frames.said & UNTOLD != 0 {
        counters::bump(counters, Counter::MappingsUntold);
    } else {
        slot.store(hash.0);
    }
    frames.said & KNOWN != 0
}

/// One frame of a stack after the other.
struct Frames {
    scratch: &'static Scratch,
    space: u64,
    incarnation: u64,
    tgid: u32,
    cpu_slot: u32,
    /// [`KNOWN`] and [`UNTOLD`].
    said: u32,
}

impl Turn for Frames {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let scratch = self.scratch;
        let place = scratch.user.get(1 + black_box(index as usize));
        let Some(place) =
            place.filter(|_| (index as usize) < Header(scratch.user[0].load()).frames())
        else {
            return ControlFlow::Break(());
        };
        // A caller is looked up within its call, as user space does.
        let address = place.load().wrapping_sub(u64::from(index > 0));
        for range in &scratch.telling.ranges {
            if range.start.load() <= address && address < range.end.load() {
                return ControlFlow::Continue(());
            }
        }
        self.said |= apart::tell(
            self.cpu_slot,
            self.space,
            address,
            self.tgid,
            self.incarnation,
        );
        ControlFlow::Continue(())
    }
}

/// Tells what lies at an address of the process `space`, unless that was done lately. [`KNOWN`] if it is told,
/// [`UNTOLD`] if that was not possible, zero if nothing lies there that user space should know.
#[inline(always)]
pub(crate) fn address(cpu_slot: u32, space: u64, address: u64, tgid: u32, incarnation: u64) -> u32 {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
        return 0;
    };
    let telling = &scratch.telling;
    let turn = telling.turn.load();
    telling.turn.store(turn.wrapping_add(1));
    let Some(range) = telling.ranges.get(turn as usize & (FOUND - 1)) else {
        return 0;
    };
    range.start.store(address);
    range.end.store(address.wrapping_add(1));
    let Some(mapping) = mappings::find(space, scratch, address) else {
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
    let (Some(told), Some(file_told)) = (
        TOLD.get(whole.slot(0, TOLD_SLOTS - 1)),
        TOLD.get(file.slot(0, TOLD_SLOTS - 1)),
    ) else {
        return 0;
    };
    if told.load() == whole.0 {
        return KNOWN;
    }
    // The fields of `Mapped`, in their order.
    let words: [u64; MAPPED_WORDS] = [
        u64::from(NoticeKind::Mapped as u32) | u64::from(tgid) << 32,
        incarnation,
        mapping.start,
        mapping.end,
        offset,
        key.device,
        key.inode,
        key.modified,
    ];
    for (place, word) in scratch.telling.record.iter().zip(words) {
        place.store(word);
    }
    scratch.telling.length.store(0);
    let is_file = key.device != 0;
    if is_file && file_told.load() != file.0 {
        apart::put_path(cpu_slot, mapping.vma);
    }
    // Whoever makes code, or runs a file that nobody knows, is looked at while it lives.
    let urgent = key.is_anonymous() || scratch.telling.length.load() != 0;
    if !send(&scratch.telling.record, &scratch.telling.length, urgent) {
        return UNTOLD;
    }
    told.store(whole.0);
    if is_file {
        file_told.store(file.0);
    }
    KNOWN
}

/// Puts the record, with a path of so many bytes, into the queue; false if that is full.
#[inline(always)]
fn send(record: &'static [Word; TELLING_WORDS], length: &Word, urgent: bool) -> bool {
    // From memory, and hidden from the compiler: the verifier must see the comparison.
    let bytes = black_box(MAPPED_WORDS * 8 + length.load() as usize);
    if bytes > TELLING_WORDS * 8 {
        return false;
    }
    NOTICES
        .output::<[u8]>(memory::first_bytes(record, bytes), events::wake_up(urgent))
        .is_ok()
}

/// Puts the path of a mapped file together, behind the record: its names from the last to the first.
#[inline(always)]
pub(crate) fn path(cpu_slot: u32, vma: u64) {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
        return;
    };
    let telling = &scratch.telling;
    let [mount, entry] = mappings::path(vma).unwrap_or_default();
    telling.mount.store(mount);
    telling.entry.store(entry);
    repeat(PATH_STEPS, &mut Names { scratch });
}

/// One name, or mount, after the other.
struct Names {
    scratch: &'static Scratch,
}

impl Turn for Names {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        let telling = &self.scratch.telling;
        let (mount, entry) = (telling.mount.load(), telling.entry.load());
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
            telling.entry.store(memory::kernel(
                whole + u64::from(config!(mapping.mount_point)),
            ));
            telling
                .mount
                .store(parent.wrapping_add(u64::from(config!(mapping.mount_part))));
            return ControlFlow::Continue(());
        }
        let parent: u64 = memory::kernel(entry + u64::from(config!(mapping.entry_parent)));
        let length = telling.length.load() as usize;
        // What has no parent is a name by itself if it is the first, as of files in memory.
        if parent == entry && length > 0 {
            return ControlFlow::Break(());
        }
        if length >= PATH_BYTES {
            return ControlFlow::Break(());
        }
        let name: u64 = memory::kernel(entry + u64::from(config!(mapping.entry_name)));
        let Some(copied) = memory::copy_name(&telling.record, length, name) else {
            return ControlFlow::Break(());
        };
        telling.length.store((length + copied) as u64);
        telling.entry.store(parent);
        if parent == entry {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
