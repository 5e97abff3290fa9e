//! Running workloads.
//!
//! A workload says `ready` on its stdout before anything is asked of it. It leads a process group of
//! its own, which is killed and reaped when the value is dropped, whatever became of the test.

use crate::{Folded, Invocation, Said};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Long past any honest wait: a test that meets this limit hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A running program with known call chains.
#[derive(Debug)]
pub struct Workload {
    child: Child,
    lines: Receiver<String>,
    words: Vec<String>,
}

impl Workload {
    /// Starts `command` and waits until it is ready.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or ends or is silent instead of getting ready.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} could not be started: {error}"));
        let stdout = child.stdout.take().expect("stdout was asked for");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The receiver is gone once the workload is dropped.
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut workload = Self {
            child,
            lines,
            words: Vec::new(),
        };
        let first = workload
            .lines
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("{command:?} did not get ready"));
        let mut words = first.split_whitespace().map(str::to_owned);
        assert_eq!(
            words.next().as_deref(),
            Some("ready"),
            "{command:?} said {first:?}"
        );
        workload.words = words.collect();
        workload
    }

    /// The process's ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Words of the workload behind `ready`: thread or process IDs, as its source says.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The CPU time, in nanoseconds, that all living threads of the process have used.
    pub fn cpu_ns(&self) -> u64 {
        cpu_ns(self.pid())
    }

    /// Profile of a second of this program alone, sampled 997 times a second.
    pub fn profiled(&self) -> Folded {
        Invocation::new("-f -F 997 -d 1")
            .flag("-p", self.pid())
            .run()
            .expect_no_panic()
            .expect_code(0)
            .folded()
    }

    /// Gives the workload the word that it waits for, if its source says that it does.
    pub fn proceed(&self) {
        kill_process(Pid::from_child(&self.child), Signal::USR1).ok();
    }

    /// Sends a signal, of which its source says what it means.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).ok();
    }

    /// Asks the workload to stop and returns what it said.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub fn stop(self) -> Said {
        // A workload that ended by itself has said its lines already.
        kill_process(Pid::from_child(&self.child), Signal::TERM).ok();
        self.stop_by_itself()
    }

    /// Waits for a workload that was given an amount of work, and returns what it said.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub fn stop_by_itself(mut self) -> Said {
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("a workload does not stop"),
            }
        }
        self.child.wait().expect("a child can be waited for");
        Said { lines }
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // Either may be gone already: the group with its last member, the child in `stop`.
        kill_process_group(Pid::from_child(&self.child), Signal::KILL).ok();
        self.child.wait().ok();
    }
}

/// The CPU time, in nanoseconds, that all living threads of process `pid` have used; 0 once it is gone.
pub fn cpu_ns(pid: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    threads
        .flatten()
        .filter_map(|thread| run_time_ns(&thread.path().join("schedstat")))
        .sum()
}

/// The CPU time, in nanoseconds, that thread `tid` has used; 0 once it is gone.
pub fn thread_cpu_ns(tid: &str) -> u64 {
    // A thread has a folder of its own in /proc, although listing /proc does not show it.
    run_time_ns(format!("/proc/{tid}/task/{tid}/schedstat").as_ref()).unwrap_or(0)
}

fn run_time_ns(schedstat: &std::path::Path) -> Option<u64> {
    let text = fs::read_to_string(schedstat).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
