//! Batches of windows that are not wanted. They are unpacked only if a window that is wanted may refer to them.
//!
//! A file of a day has thousands of windows, of which a few minutes are wanted. What stands before the place where
//! numbers began anew, and what stands behind the last window that is wanted, need not be unpacked for that.

use super::section::Section;

/// A batch that is not unpacked.
pub(super) struct Packed {
    /// The section's number in the file.
    pub(super) number: u64,
    pub(super) section: Section,
    /// Whether its samples are wanted, or only what it gives numbers to.
    pub(super) wanted: bool,
    /// How many windows that are wanted begin before its own.
    pub(super) windows: u32,
}

/// Batches that may turn out to be needed, in their order.
pub(super) struct PendingBatches {
    batches: Vec<Packed>,
    bytes: u64,
    most: u64,
    /// Whether any was not needed.
    pub(super) passed_over: bool,
}

impl PendingBatches {
    /// None yet, and no more than so many bytes of the file.
    pub(super) fn new(most: u64) -> Self {
        Self {
            batches: Vec::new(),
            bytes: 0,
            most,
            passed_over: false,
        }
    }

    /// Keeps one more. False if they exceed the limit: then they have to be unpacked.
    pub(super) fn keep(&mut self, batch: Packed) -> bool {
        self.bytes += batch.section.bytes() as u64;
        self.batches.push(batch);
        self.bytes <= self.most
    }

    /// All of them, which are needed.
    pub(super) fn take(&mut self) -> Vec<Packed> {
        self.bytes = 0;
        std::mem::take(&mut self.batches)
    }

    /// None of them is needed.
    pub(super) fn pass_over(&mut self) {
        self.passed_over |= !self.take().is_empty();
    }
}
