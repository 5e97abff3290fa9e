//! Commands that are measured.
//!
//! In: a command line for a shell and a folder to run it in. Out: a process that is stopped as a user would stop it, or
//! killed with all its children when its value is dropped; and what it used. Never measures time by itself.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use wait4::Wait4 as _;

use super::interrupt;

/// File in a command's folder for its stdout.
pub(super) const PRINTED: &str = "printed";

/// File in a command's folder for its stderr.
pub(super) const MESSAGES: &str = "messages";

/// bpftrace takes tens of seconds to print the stacks of a busy machine.
const LONGEST: Duration = Duration::from_secs(300);

/// How soon the end of a command is noticed.
const STEP: Duration = Duration::from_micros(200);

/// Resources that a command used, with all that it waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// CPU time in user and kernel mode, in seconds.
    pub(super) cpu_s: f64,
    /// Memory resident in the largest process at its largest, in MiB.
    pub(super) peak_mib: f64,
    /// Whether it ended well.
    pub(super) success: bool,
}

/// A command that runs.
pub(super) struct Running {
    /// None once it was waited for.
    child: Option<Child>,
    pid: Pid,
    line: String,
}

impl Running {
    /// Starts a command line in `folder`.
    ///
    /// # Errors
    /// When a shell cannot be started, or the folder cannot be written to.
    pub(super) fn start(line: &str, folder: &Path) -> Result<Self> {
        let file = |name: &str| {
            File::options()
                .create(true)
                .append(true)
                .open(folder.join(name))
        };
        let child = Command::new("sh")
            .args(["-c", line])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file(PRINTED).context("cannot make a file")?)
            .stderr(file(MESSAGES).context("cannot make a file")?)
            // Ctrl-C on the terminal is ours alone, so that things end in order.
            .process_group(0)
            .spawn()
            .context("cannot start a shell")?;
        Ok(Self {
            pid: Pid::from_child(&child),
            child: Some(child),
            line: line.to_owned(),
        })
    }

    /// Its process ID; of `exec PROGRAM` that of the program.
    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether it has ended. It remains to be waited for.
    ///
    /// # Errors
    /// When it was waited for already.
    pub(super) fn has_ended(&self) -> Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid), options);
        Ok(status.context("cannot wait for a child")?.is_some())
    }

    /// Does as Ctrl-C does, and waits for its end. perf says by its exit code that it was interrupted.
    ///
    /// # Errors
    /// When it does not end.
    pub(super) fn interrupt(&mut self) -> Result<Usage> {
        kill_process(self.pid, Signal::INT)
            .with_context(|| format!("cannot interrupt {}", self.line))?;
        self.wait()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it does not end, or somebody asked this program to.
    pub(super) fn wait(&mut self) -> Result<Usage> {
        interrupt::until(STEP, LONGEST, || Ok(self.has_ended()?.then_some(())))
            .with_context(|| format!("{} does not end", self.line))?;
        let child = self.child.take().context("it was waited for already")?;
        let used = child.wait4().context("cannot wait for a child")?;
        Ok(Usage {
            cpu_s: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
            peak_mib: used.rusage.maxrss as f64 / f64::from(1 << 20),
            success: used.status.success(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Its pipes' other ends and its children are in the group.
            kill_process_group(self.pid, Signal::KILL).ok();
            child.wait().ok();
        }
    }
}

/// Runs a command line in `folder` to its end, which must be a good one.
///
/// # Errors
/// When it fails.
pub(super) fn run(line: &str, folder: &Path) -> Result<Usage> {
    let used = Running::start(line, folder)?.wait()?;
    ensure!(used.success, "`{line}` failed{}", last_message(folder));
    Ok(used)
}

/// The last line that what ran in the folder complained with, in brackets; nothing where there is none.
pub(super) fn last_message(folder: &Path) -> String {
    let text = fs::read(folder.join(MESSAGES)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    last.map_or_else(String::new, |line| format!(" ({})", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_and_memory_of_children_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let busy = "head -c 30000000 /dev/urandom | sha1sum; echo";
        let busy = run(busy, folder.path()).expect("it runs");
        let idle = run("sleep 0", folder.path()).expect("it runs");
        assert!(busy.cpu_s > idle.cpu_s && idle.peak_mib > 0.1);
        assert!(run("echo no >&2; false", folder.path()).is_err());
        assert_eq!(last_message(folder.path()), " (no)");
    }
}
