//! What the running task's file descriptors stand for.
//!
//! All of it is read from the kernel's own structs, a fixed number of words, and none of it is taken for true
//! beyond that: a table that is exchanged meanwhile gives a file that was there, or none.

use crate::{
    platform::{config::config, maps::SCRATCH, memory},
    task::{self, CallRegisters},
};
use core::hint::black_box;
use profiler_common::abi::{
    CallWeight, Descriptors, FileKinds, FrameTag, FrameWord, NAME_WORDS, descriptors,
};

/// The file that a system call is about, if it reads, writes or syncs one of a wanted kind: the address of its
/// `struct file`. Zero if it is of another kind, or there is none under that descriptor.
#[inline(always)]
pub(crate) fn of_call(number: u64, registers: CallRegisters) -> u64 {
    let Some(places) = wanted(number) else {
        return 0;
    };
    let first = of_descriptor(registers.argument(0));
    if is_wanted(first) {
        return first;
    }
    let second = match places {
        Descriptors::First => return 0,
        Descriptors::FirstAndSecond => registers.argument(1),
        Descriptors::FirstAndThird => registers.argument(2),
    };
    let second = of_descriptor(second);
    if is_wanted(second) { second } else { 0 }
}

/// Which descriptors a system call is about, if it is one of those wanted.
#[inline(always)]
pub(crate) fn wanted(number: u64) -> Option<Descriptors> {
    descriptors(number, config!(calls.weight) == CallWeight::Bytes as u32)
}

#[inline(always)]
fn of_descriptor(number: u64) -> u64 {
    let task = task::current_address();
    let files: u64 = memory::kernel(task + u64::from(config!(files.task_files)));
    let table: u64 = memory::kernel(files + u64::from(config!(files.files_table)));
    let room: u32 = memory::kernel(table + u64::from(config!(files.table_room)));
    // The kernel looks at the lower half alone.
    let number = number & 0xffff_ffff;
    if number >= u64::from(room) {
        return 0;
    }
    let places: u64 = memory::kernel(table + u64::from(config!(files.table_files)));
    memory::kernel(places + number * 8)
}

/// Whether a file is of a wanted kind.
#[inline(always)]
pub(crate) fn is_wanted(file: u64) -> bool {
    if file == 0 {
        return false;
    }
    if config!(calls.kinds) == FileKinds::ALL.0 {
        return true;
    }
    let inode: u64 = memory::kernel(file + u64::from(config!(files.file_inode)));
    let mode: u16 = memory::kernel(inode + u64::from(config!(files.inode_mode)));
    FileKinds(config!(calls.kinds)).has(FileKinds::of(u32::from(mode)))
}

/// Puts the name that the file's directory has for it into the scratch memory, with room for a word before it; the number of
/// its words.
#[inline(always)]
pub(crate) fn put_name(cpu_slot: u32, file: u64) -> u64 {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
        return 0;
    };
    let Some(place) = scratch
        .kernel
        .get(2..2 + NAME_WORDS)
        .and_then(|place| <&[_; NAME_WORDS]>::try_from(place).ok())
    else {
        return 0;
    };
    for word in place {
        word.store(0);
    }
    let dentry: u64 = memory::kernel(file + u64::from(config!(files.file_dentry)));
    let name: u64 = memory::kernel(dentry + u64::from(config!(files.dentry_name)));
    memory::copy_text(place, name).div_ceil(8)
}

/// Makes `leaf` the kernel's record in the scratch memory, and before it the file's name, of which so many words were put
/// there.
#[inline(always)]
pub(crate) fn put_leaf(cpu_slot: u32, leaf: FrameWord, name_words: u64) {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
        return;
    };
    if name_words == 0 {
        scratch.kernel[1].store(leaf.0);
        scratch.kernel[0].store(1);
        return;
    }
    scratch.kernel[1].store(FrameWord::new(FrameTag::FileName, name_words as u32).0);
    // Hidden from the compiler, which knows the number and would leave out the check that the verifier asks for.
    let behind = 2 + black_box(name_words as usize);
    if let Some(place) = scratch.kernel.get(behind) {
        place.store(leaf.0);
    }
    scratch.kernel[0].store(1 + name_words + 1);
}
