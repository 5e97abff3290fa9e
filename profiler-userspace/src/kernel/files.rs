//! File keys, made by the kernel half.
//!
//! On btrfs and in a container's overlay, `stat` and `/proc/PID/maps` report other numbers than the kernel's
//! own structures hold. So a file is mapped here, and the kernel half inspects that mapping as it does those
//! of sampled programs.

use super::Result;
use super::programs::Programs;
use super::shared::map;
use aya::maps::MapData;
use memmap2::MmapOptions;
use profiler_common::abi::{CodeKey, ProgramId};
use std::fs::File;
use std::sync::atomic::Ordering::Relaxed;

/// Where the kernel half puts the keys that it is asked for.
pub(super) struct FileKeys {
    answers: MapData,
}

impl FileKeys {
    /// Keys are put into this map.
    pub(super) fn new(answers: MapData) -> Self {
        Self { answers }
    }

    /// The key of a file; none if it cannot be mapped.
    pub(super) fn of_file(&self, programs: &mut Programs, file: &File) -> Option<CodeKey> {
        // Never accessed, so truncation by others does no harm.
        let mapped = MmapOptions::new().len(1).map_raw_read_only(file).ok()?;
        self.at(programs, mapped.as_ptr() as u64)
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
        let answer = map("ASKED_CODE", &self.answers, 0, size_of::<CodeKey>() / 8)?;
        let word = |place: usize| answer.words()[place].load(Relaxed);
        Ok(CodeKey {
            device: word(0),
            inode: word(1),
            modified: word(2),
        })
    }
}
