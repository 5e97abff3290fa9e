//! The files behind the running task's descriptors.
//!
//! Read from the kernel's own structs, a fixed number of words. The result is not trusted further: a table that is replaced
//! meanwhile gives an old file, or none.

use crate::{
    platform::{config::config, maps::Scratch, memory, subprog::Scalar},
    task::{self, CallRegisters},
};
use profiler_common::abi::{CallWeight, Descriptors, FileKinds, NAME_WORDS, descriptors};

/// The result of looking for a wanted file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundFile {
    /// No file that a firing is about.
    None,
    /// A file of another kind than wanted.
    OtherKind,
    /// The address of its `struct file`; zero if no file was asked for.
    At(u64),
}

impl FoundFile {
    const NONE: u64 = 1;
    const OTHER_KIND: u64 = 2;

    /// The file at an address; none if that is zero.
    #[inline(always)]
    pub(crate) fn of(file: u64) -> Self {
        match file {
            0 => Self::None,
            file if is_wanted(file) => Self::At(file),
            _ => Self::OtherKind,
        }
    }
}

/// No `struct file` has an address below this.
impl Scalar for FoundFile {
    #[inline(always)]
    fn into_word(self) -> u64 {
        match self {
            Self::None => Self::NONE,
            Self::OtherKind => Self::OTHER_KIND,
            Self::At(file) => file,
        }
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        match word {
            Self::NONE => Self::None,
            Self::OTHER_KIND => Self::OtherKind,
            file => Self::At(file),
        }
    }
}

/// The file of a system call that reads, writes or syncs.
#[inline(always)]
pub(crate) fn of_call(number: u64, registers: CallRegisters) -> FoundFile {
    let Some(places) = wanted(number) else {
        return FoundFile::None;
    };
    let first = of_descriptor(registers.argument(0));
    if is_wanted(first) {
        return FoundFile::At(first);
    }
    let second = match places {
        Descriptors::First => return FoundFile::OtherKind,
        Descriptors::FirstAndSecond => registers.argument(1),
        Descriptors::FirstAndThird => registers.argument(2),
    };
    let second = of_descriptor(second);
    if is_wanted(second) {
        FoundFile::At(second)
    } else {
        FoundFile::OtherKind
    }
}

/// The descriptors of a system call, if it is a wanted one.
#[inline(always)]
fn wanted(number: u64) -> Option<Descriptors> {
    descriptors(number, config!(calls.weight) == CallWeight::Bytes as u32)
}

#[inline(always)]
fn of_descriptor(number: u64) -> u64 {
    let task = task::current_address();
    let files: u64 = memory::kernel(task + u64::from(config!(files.task_files)));
    let table: u64 = memory::kernel(files + u64::from(config!(files.files_table)));
    let room: u32 = memory::kernel(table + u64::from(config!(files.table_room)));
    // The kernel uses the lower half only.
    let number = number & 0xffff_ffff;
    if number >= u64::from(room) {
        return 0;
    }
    let places: u64 = memory::kernel(table + u64::from(config!(files.table_files)));
    memory::kernel(places + number * 8)
}

/// Whether a file is of a wanted kind.
#[inline(always)]
fn is_wanted(file: u64) -> bool {
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

/// Copies the file's name in its directory into the kernel record in the scratch memory, behind room for one word. Returns
/// the number of words.
#[inline(always)]
pub(crate) fn put_name(scratch: &'static Scratch, file: u64) -> u64 {
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
