//! Priority of what walks wait for.
//!
//! In: nothing. Out: this thread, and those that are started meanwhile, come before others on their CPU. Where CPUs are busy,
//! stacks end in code whose tables are not read yet, and the threads that read them wait behind those whose stacks these are.
//! They take the same time anyway. Never stays behind: what is started later has the priority that was there before.

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;

/// Ahead of what is not urgent by any measure, and behind what is set to be.
const NICE: i32 = -10;

/// A time in which this thread comes first; it ends when this is dropped.
pub(super) struct Urgency {
    /// None if the priority is what it was.
    before: Option<i32>,
}

impl Urgency {
    /// From now on. Who may not ask for it goes without.
    pub(super) fn begin() -> Self {
        let thread = Some(gettid());
        let before = getpriority_process(thread).ok();
        let before = before.filter(|before| *before > NICE);
        Self {
            before: before.filter(|_| setpriority_process(thread, NICE).is_ok()),
        }
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _less_is_always_allowed = setpriority_process(Some(gettid()), before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_started_meanwhile_come_first_and_others_do_not() {
        let own = || getpriority_process(Some(gettid())).unwrap();
        let in_thread = || std::thread::scope(|scope| scope.spawn(own).join().unwrap());
        let before = own();
        let urgency = Urgency::begin();
        let meanwhile = own();
        assert!(meanwhile == before || meanwhile == NICE);
        assert_eq!(in_thread(), meanwhile);
        drop(urgency);
        assert_eq!((own(), in_thread()), (before, before));
    }
}
