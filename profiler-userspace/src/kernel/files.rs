//! What the kernel knows files by, asked of the kernel itself.
//!
//! What `stat` and `/proc/PID/maps` say of a file on btrfs or in a container's overlay is not what the
//! kernel's own structures say. So a file is mapped here, and the kernel half looks at that mapping as it
//! does at the mappings of those that are sampled.

use super::shared::map;
use super::{Kernel, Result};
use crate::unwind::loader::CodeKeys;
use aya::programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _};
use memmap2::MmapOptions;
use profiler_common::abi::CodeKey;
use std::fs::File;
use std::sync::atomic::Ordering::Relaxed;

impl CodeKeys for Kernel {
    fn code_key(&mut self, file: &File) -> Option<CodeKey> {
        // Never touched, so it does no harm that others may cut the file short.
        let mapped = MmapOptions::new().len(1).map_raw_read_only(file).ok()?;
        self.code_key_at(mapped.as_ptr() as u64)
    }

    fn code_key_at(&mut self, address: u64) -> Option<CodeKey> {
        // A firing on the same CPU may spoil an answer; it cannot make a wrong one of it.
        const TRIES: usize = 4;
        (0..TRIES)
            .filter_map(|_| self.ask_key(address).ok())
            .find(|key| !key.is_anonymous())
    }
}

impl Kernel {
    fn ask_key(&mut self, address: u64) -> Result<CodeKey> {
        let program: &mut RawTracePoint = self.program("code_key")?;
        let mut options = RawTracePointRunOptions::new();
        options.args[0] = address;
        program
            .test_run(options)
            .map_err(|error| super::load::rejected("code_key", error))?;
        let answer = map(
            "ASKED_CODE",
            &self.maps.asked_code,
            0,
            size_of::<CodeKey>() / 8,
        )?;
        let word = |place: usize| answer.words()[place].load(Relaxed);
        Ok(CodeKey {
            device: word(0),
            inode: word(1),
            modified: word(2),
        })
    }
}
