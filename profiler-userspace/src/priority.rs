//! The scheduling priority of threads that must be in time on a busy machine.
//!
//! In: nothing. Out: a guard; while it lives, its thread runs before others.

use rustix::process::{getpriority_process, setpriority_process};

/// Gives this thread the highest ordinary priority while it lives. On a busy machine the few milliseconds that we need must
/// come in time: before the kernel half's tables are full, while new processes still live, and before the user loses
/// patience. Without the privilege, nothing changes.
pub(crate) struct RaisedPriority {
    usual: Option<i32>,
}

impl RaisedPriority {
    const NICE: i32 = -20;

    pub(crate) fn new() -> Self {
        let usual = getpriority_process(None).ok();
        Self {
            usual: usual.filter(|_| setpriority_process(None, Self::NICE).is_ok()),
        }
    }
}

impl Drop for RaisedPriority {
    fn drop(&mut self) {
        if let Some(usual) = self.usual {
            let _lowering_is_always_allowed = setpriority_process(None, usual);
        }
    }
}
