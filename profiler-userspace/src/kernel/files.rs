//! File keys, made by the kernel half.
//!
//! On btrfs and in a container's overlay, `stat` and `/proc/PID/maps` report other numbers than the kernel's
//! own structures hold. So a file is mapped here, and the kernel half inspects that mapping as it does those
//! of sampled programs.

use super::Result;
use super::programs::Programs;
use super::shared::{Shared, map};
use aya::maps::MapData;
use memmap2::MmapOptions;
use profiler_common::abi::{CodeKey, ProgramId};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::Ordering::Relaxed;

/// At most so many keys are kept.
const MAX_KEPT: usize = 4096;

/// Status by which a key is known again: device, inode, and the times of the last changes.
type Status = (u64, u64, [i64; 4]);

/// Where the kernel half puts the keys that it is asked for.
pub(super) struct FileKeys {
    answer: Shared,
    /// The map that this is of: programs that are loaded later name it.
    _answers: MapData,
    /// Keys that were asked for: walks come to the same files again and again.
    kept: HashMap<Status, CodeKey>,
}

impl FileKeys {
    /// Keys are put into this map.
    pub(super) fn new(answers: MapData) -> Result<Self> {
        Ok(Self {
            answer: map("ASKED_CODE", &answers, 0, size_of::<CodeKey>() / 8)?,
            _answers: answers,
            kept: HashMap::new(),
        })
    }

    /// The key of a file; none if it cannot be mapped.
    pub(super) fn of_file(&mut self, programs: &mut Programs, file: &File) -> Option<CodeKey> {
        // Some file systems tell it their own user alone, and map the file all the same.
        let status = status(file);
        if let Some(key) = status.and_then(|status| self.kept.get(&status)) {
            return Some(*key);
        }
        // Never accessed, so truncation by others does no harm.
        let mapped = MmapOptions::new().len(1).map_raw_read_only(file).ok()?;
        let key = self.at(programs, mapped.as_ptr() as u64)?;
        if self.kept.len() == MAX_KEPT {
            self.kept.clear();
        }
        if let Some(status) = status {
            self.kept.insert(status, key);
        }
        Some(key)
    }

    /// The key of what is mapped at an address of ours.
    pub(super) fn at(&self, programs: &mut Programs, address: u64) -> Option<CodeKey> {
        // A firing on the same CPU may spoil the answer, but cannot turn it into a wrong one.
        const TRIES: usize = 4;
        (0..TRIES)
            .filter_map(|_| self.ask(programs, address).ok())
            .find(|key| !key.is_anonymous())
    }

    fn ask(&self, programs: &mut Programs, address: u64) -> Result<CodeKey> {
        programs.run(ProgramId::CodeKey, address)?;
        let word = |place: usize| self.answer.words()[place].load(Relaxed);
        Ok(CodeKey {
            device: word(0),
            inode: word(1),
            modified: word(2),
        })
    }
}

fn status(file: &File) -> Option<Status> {
    let status = file.metadata().ok()?;
    let times = [
        status.mtime(),
        status.mtime_nsec(),
        status.ctime(),
        status.ctime_nsec(),
    ];
    Some((status.dev(), status.ino(), times))
}
