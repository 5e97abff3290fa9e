//! From the kernel's store to a normalized profile, drain by drain.
//!
//! In: what the kernel half has counted; the processes that it was counted of. Out: a [`NormalizedProfile`] of all that
//! was collected. Processes that have ended are let go here, when nothing of them can come any more.

use super::events::EventHandler;
use crate::kernel::Kernel;
use crate::profile::normalized::NormalizedProfile;
use crate::profile::raw::RawProfile;
use crate::symbolize::{Normalizer, Objects};
use anyhow::Result;

/// Processes that may be known before those that have ended are looked for and let go: their mappings take
/// a kilobyte each.
const FEWEST_CROWDED: usize = 1024;

/// Files that may be open before those that nothing maps any more are looked for and closed.
const FEWEST_MANY_FILES: usize = 512;

/// Samples drained so far.
pub(super) struct Collector {
    /// Samples that cannot be normalized yet.
    raw: RawProfile,
    normalizer: Normalizer,
    /// So many known processes are a crowd, in which most may have ended.
    crowd: usize,
    /// And so many open files are many, most of which nothing may need.
    many_files: usize,
}

impl Collector {
    /// Nothing was drained yet. Stacks of this very process are kept if it `includes_self`, and one mark otherwise.
    pub(super) fn new(includes_self: bool) -> Self {
        Self {
            raw: RawProfile::default(),
            normalizer: match includes_self {
                true => Normalizer::new(),
                false => Normalizer::marking(std::process::id()),
            },
            crowd: FEWEST_CROWDED,
            many_files: FEWEST_MANY_FILES,
        }
    }

    /// Drains when a side is half full, or when there are so many processes, or files of theirs, that those of them that have ended
    /// should be let go.
    pub(super) fn drain_if_full(
        &mut self,
        kernel: &mut Kernel,
        handler: &mut EventHandler,
    ) -> Result<()> {
        let is_crowded = handler.processes.len() >= self.crowd
            || handler.processes.open_files() >= self.many_files;
        if !kernel.is_half_full() && !is_crowded {
            return Ok(());
        }
        self.drain(kernel, handler)
    }

    /// Drains now, while sampling goes on.
    pub(super) fn drain(&mut self, kernel: &mut Kernel, handler: &mut EventHandler) -> Result<()> {
        // Looked for first: nothing of these will come after this drain.
        let mut ended = handler.processes.ended();
        let waking = kernel.waking();
        ended.retain(|process| !waking.contains(&(process.tgid, process.incarnation)));
        kernel.drain(&mut self.raw)?;
        // All firings that were drained have ended, and their mapping events are in the queue.
        handler.handle(kernel);
        handler.settle_cgroups(kernel, &mut self.raw);
        handler.name_threads(&self.raw);
        self.normalizer
            .take(&mut self.raw, &mut handler.processes, &ended);
        handler.processes.close_unused();
        self.many_files = (2 * handler.processes.open_files()).max(FEWEST_MANY_FILES);
        self.crowd = (2 * handler.processes.len()).max(FEWEST_CROWDED);
        Ok(())
    }

    /// Drains the rest, after everything was detached.
    pub(super) fn drain_rest(
        &mut self,
        kernel: &mut Kernel,
        handler: &mut EventHandler,
    ) -> Result<()> {
        kernel.drain_rest(&mut self.raw)?;
        handler.handle(kernel);
        handler.settle_cgroups(kernel, &mut self.raw);
        handler.name_threads(&self.raw);
        Ok(())
    }

    /// How many different samples are kept.
    pub(super) fn samples(&self) -> usize {
        self.raw.samples.len() + self.normalizer.samples()
    }

    /// Begins the next window: samples drained from now on are of that one.
    pub(super) fn next_window(&mut self) {
        self.raw.window.0 += 1;
    }

    /// Joins each two neighbouring windows to one.
    pub(super) fn halve_windows(&mut self) {
        self.normalizer.halve_windows();
        self.raw.halve_windows();
    }

    /// All that was drained since this was asked last.
    pub(super) fn take(&mut self, handler: &mut EventHandler) -> (NormalizedProfile, Objects) {
        let normalizer = std::mem::take(&mut self.normalizer);
        normalizer.finish(&mut self.raw, &mut handler.processes)
    }
}
