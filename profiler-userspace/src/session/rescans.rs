//! The rescan queue: processes whose mappings are to be read again, and when.

use super::programs::Comm;
use crate::process::ProcessKey;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// When the mappings of a young process are read after its first sample: that may have been taken inside `exec`,
/// before there were any mappings, or in the loader, before there were all.
const DELAYS: [Duration; 4] = [
    Duration::from_millis(2),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
];

/// A process to be read again.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rescan {
    due: Instant,
    /// Which.
    pub(super) process_key: ProcessKey,
    /// Comm of its program; none where the kernel half did not tell it.
    pub(super) program: Option<Comm>,
    /// Which of [`DELAYS`] this is.
    step: usize,
}

impl Rescan {
    /// The step behind this one.
    pub(super) fn next_step(&self) -> usize {
        self.step + 1
    }
}

/// The last step.
pub(super) const LAST_STEP: usize = DELAYS.len() - 1;

/// Rescans that are still to be done, soonest first.
#[derive(Debug, Default)]
pub(super) struct RescanQueue {
    heap: BinaryHeap<Reverse<Rescan>>,
}

impl RescanQueue {
    /// Whether nothing is to be done.
    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// When the next one is due; now, if there is none.
    pub(super) fn next_due(&self) -> Instant {
        let soonest = self.heap.peek().map(|Reverse(rescan)| rescan.due);
        soonest.unwrap_or_else(Instant::now)
    }

    /// Adds the rescan of this step; nothing behind the last step.
    pub(super) fn push(
        &mut self,
        now: Instant,
        process_key: ProcessKey,
        program: Option<Comm>,
        step: usize,
    ) {
        if let Some(&delay) = DELAYS.get(step) {
            self.heap.push(Reverse(Rescan {
                due: now + delay,
                process_key,
                program,
                step,
            }));
        }
    }

    /// The next one that is due by now.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Rescan> {
        if self.heap.peek()?.0.due > now {
            return None;
        }
        self.heap.pop().map(|Reverse(rescan)| rescan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rescans_are_done_in_order_when_due() {
        let mut queue = RescanQueue::default();
        let now = Instant::now();
        let process = |tgid| ProcessKey::new(tgid, 1);
        queue.push(now, process(1), None, 2);
        queue.push(now, process(2), None, 0);
        queue.push(now, process(3), None, DELAYS.len());
        assert_eq!(queue.next_due(), now + DELAYS[0]);
        assert!(queue.pop_due(now).is_none());
        let mut order = Vec::new();
        while let Some(rescan) = queue.pop_due(now + DELAYS[2]) {
            order.push(rescan.process_key.tgid);
        }
        assert_eq!(order, [2, 1]);
        assert!(queue.is_empty());
    }
}
