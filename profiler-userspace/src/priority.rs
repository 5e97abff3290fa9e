//! Being in time on a machine that has more to do than it can.
//!
//! In: nothing. Out: nothing; while it lives, the thread goes first.

use rustix::process::{getpriority_process, setpriority_process};

/// The highest ordinary priority for this thread, for as long as this lives. On a machine with more to do than it can,
/// the few milliseconds that we need must come in time: before the kernel half's tables are full, while new processes still
/// live, and before whoever pressed Ctrl-C loses patience. Where this is not allowed, it goes without.
pub(crate) struct Urgent {
    usual: Option<i32>,
}

impl Urgent {
    const NICE: i32 = -20;

    pub(crate) fn now() -> Self {
        let usual = getpriority_process(None).ok();
        Self {
            usual: usual.filter(|_| setpriority_process(None, Self::NICE).is_ok()),
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(usual) = self.usual {
            let _lowering_is_always_allowed = setpriority_process(None, usual);
        }
    }
}
