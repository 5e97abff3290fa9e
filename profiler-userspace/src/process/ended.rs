//! Letting go of processes that have ended.
//!
//! In: the processes that are known. Out: those of them that will not be sampled again. What is let go is
//! as if it had never been seen, so that the storm of short-lived processes that a build is, or a day of
//! shell scripts, takes no more memory than those that run at one time.

use super::{Identity, Processes};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

impl Processes {
    /// The processes that run no more, or run another program by now. What was counted for them before
    /// this call is all that there will be.
    pub fn ended(&self) -> Vec<Identity> {
        let known = self.known.keys().copied();
        known.filter(|identity| self.has_gone(*identity)).collect()
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Forgets a process, of which nothing will be asked any more.
    pub fn let_go(&mut self, identity: Identity) {
        self.known.remove(&identity);
        self.code_maps.let_go(identity);
        if self.is_current(identity) {
            self.latest.remove(&identity.tgid);
        }
    }
}

/// Whether anything has that PID. Nobody is sent anything.
pub(super) fn runs(tgid: u32) -> bool {
    if tgid == 0 {
        // The idle task has no PID, and no end.
        return true;
    }
    let Some(pid) = i32::try_from(tgid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    // Others than our own may be refused us, and are there.
    test_kill_process(pid) != Err(Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ourselves(incarnation: u64) -> Identity {
        Identity {
            tgid: std::process::id(),
            incarnation,
        }
    }

    #[test]
    fn ended_processes_are_reported_and_forgotten() {
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("60").spawn().unwrap();
        let sleeper = Identity {
            tgid: child.id(),
            incarnation: 1,
        };
        let mut processes = Processes::new();
        processes.see(sleeper);
        processes.see(ourselves(1));
        assert_eq!(processes.ended(), []);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(processes.ended(), [sleeper]);
        processes.let_go(sleeper);
        assert_eq!((processes.len(), processes.ended().len()), (1, 0));
        assert!(processes.get(sleeper).is_none());
        assert!(processes.see(sleeper), "as if never seen");
    }

    #[test]
    fn a_program_that_became_another_has_ended() {
        let mut processes = Processes::new();
        processes.see(ourselves(1));
        processes.see(ourselves(2));
        assert_eq!(processes.ended(), [ourselves(1)]);
        processes.let_go(ourselves(1));
        assert!(processes.get(ourselves(2)).is_some());
        assert!(!processes.see(ourselves(2)));
        // A late word of the first is not answered with what the second maps.
        assert!(processes.see(ourselves(1)));
        assert_eq!(processes.ended(), [ourselves(1)]);
    }

    #[test]
    fn the_idle_task_never_ends() {
        assert!(runs(0));
        assert!(!runs(u32::MAX));
        assert!(runs(std::process::id()));
    }
}
