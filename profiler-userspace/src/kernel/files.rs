//! File keys, made by the kernel half.
//!
//! On btrfs and in a container's overlay, `stat` and `/proc/PID/maps` report other numbers than the kernel's
//! own structures hold. So a file is mapped here, and the kernel half inspects that mapping as it does those
//! of sampled programs.

use super::shared::map;
use super::{Kernel, Result};
use crate::unwind::loader::CodeKeys;
use aya::programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _};
use memmap2::MmapOptions;
use profiler_common::abi::{CodeKey, ProgramId};
use std::fs::File;
use std::sync::atomic::Ordering::Relaxed;

impl CodeKeys for Kernel {
    fn code_key(&mut self, file: &File) -> Option<CodeKey> {
        // Never accessed, so truncation by others does no harm.
        let mapped = MmapOptions::new().len(1).map_raw_read_only(file).ok()?;
        self.code_key_at(mapped.as_ptr() as u64)
    }

    fn code_key_at(&mut self, address: u64) -> Option<CodeKey> {
        // A firing on the same CPU may spoil the answer, but cannot turn it into a wrong one.
        const TRIES: usize = 4;
        (0..TRIES)
            .filter_map(|_| self.ask_key(address).ok())
            .find(|key| !key.is_anonymous())
    }
}

impl Kernel {
    fn ask_key(&mut self, address: u64) -> Result<CodeKey> {
        let program: &mut RawTracePoint = self.program(ProgramId::CodeKey)?;
        let mut options = RawTracePointRunOptions::new();
        options.args[0] = address;
        program
            .test_run(options)
            .map_err(|error| super::errors::rejected(ProgramId::CodeKey, error))?;
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
