//! Starting the command: suspended before its first instruction, released when the probe is attached.
//!
//! The child stops between `fork` and `exec`, reading from a pipe; one byte lets it go on. `spawn`
//! returns only after the `exec`, so it runs on a thread of its own.
#![expect(
    unsafe_code,
    reason = "code between fork and exec must be async-signal-safe"
)]

use super::user::RunAs;
use anyhow::{Context as _, Result, bail};
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

/// A command between `fork` and `exec`.
pub(crate) struct SuspendedCommand {
    /// Its process ID.
    pub(crate) pid: u32,
    name: String,
    gate: OwnedFd,
    spawning: JoinHandle<io::Result<Child>>,
}

/// Where a command may say something, and be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// Where we may.
    All,
    /// On stderr, so that stdout holds our output and nothing else.
    AllOnStderr,
    /// Not on the terminal, which shows something else.
    NothingOnTerminals,
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    name: String,
    status: Option<ExitStatus>,
}

impl SuspendedCommand {
    /// Forks.
    pub(crate) fn start(command: &[OsString], says: Says, run_as: Option<RunAs>) -> Result<Self> {
        let (program, arguments) = command.split_first().context("there is no command")?;
        let name = program.to_string_lossy().into_owned();
        let (gate_read, gate) = pipe_with(PipeFlags::CLOEXEC)?;
        let (pid_read, pid_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut command = Command::new(program);
        command.args(arguments);
        match says {
            Says::All => {}
            Says::AllOnStderr => {
                command.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
            }
            Says::NothingOnTerminals => {
                if io::stdin().is_terminal() {
                    command.stdin(Stdio::null());
                }
                if io::stdout().is_terminal() {
                    command.stdout(Stdio::null());
                }
                if io::stderr().is_terminal() {
                    command.stderr(Stdio::null());
                }
            }
        }
        if let Some(user) = &run_as {
            user.prepare(&mut command);
        }
        let run_as = run_as.map(|user| (user.groups(), user));
        let parents_end = gate.as_raw_fd();
        // SAFETY: between fork and exec this makes system calls (close, getpid, write, read, and three that change the user)
        // and touches neither locks nor the heap. What it closes is the child's copy, which nobody uses.
        unsafe {
            command.pre_exec(move || {
                // With this copy open, the gate would never be seen to close.
                rustix::io::close(parents_end);
                let pid = rustix::process::getpid().as_raw_nonzero().get();
                if let Some((groups, user)) = &run_as {
                    user.become_it(groups)?;
                }
                rustix::io::write(&pid_write, &pid.to_ne_bytes())?;
                let mut byte = [0];
                match rustix::io::retry_on_intr(|| rustix::io::read(&gate_read, &mut byte))? {
                    1 => Ok(()),
                    // The gate was closed unopened: recording came to nothing, so must the command.
                    _ => Err(io::ErrorKind::Interrupted.into()),
                }
            });
        }
        // The pipe's other ends live in the closure, in the thread, and go with it.
        let spawning = std::thread::spawn(move || command.spawn());
        let mut bytes = [0; 4];
        match rustix::io::retry_on_intr(|| rustix::io::read(&pid_read, &mut bytes))? {
            4 => Ok(Self {
                pid: u32::from_ne_bytes(bytes),
                name,
                gate,
                spawning,
            }),
            _ => match spawning.join() {
                Ok(Err(error)) => Err(error).with_context(|| format!("cannot start {name}")),
                _ => bail!("cannot start {name}: it ended before it began"),
            },
        }
    }

    /// Lets the command run.
    pub(crate) fn release(self) -> Result<Running> {
        rustix::io::write(&self.gate, &[1]).context("cannot release the command")?;
        let child = match self.spawning.join() {
            Ok(result) => result.with_context(|| {
                format!(
                    "cannot run {}; is it installed, in PATH, and executable?",
                    self.name
                )
            })?,
            Err(_) => bail!("cannot run {}: the thread that starts it failed", self.name),
        };
        Ok(Running {
            child,
            name: self.name,
            status: None,
        })
    }
}

impl Running {
    /// Name of the command.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its process ID.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the command has ended; reaps it if so.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            // An error here means that somebody else reaped it: then it has ended as well.
            self.status = match self.child.try_wait() {
                Ok(status) => status,
                Err(_) => Some(ExitStatus::from_raw(0)),
            };
        }
        self.status.is_some()
    }

    /// Passes a signal on. Not Ctrl-C typed on our terminal: the kernel gives that to the whole
    /// foreground, so the command has it already.
    pub(crate) fn pass_on(&mut self, signal: Signal) {
        if self.has_ended() || (signal == Signal::INT && in_foreground()) {
            return;
        }
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            let _already_gone = kill_process(pid, signal);
        }
    }

    /// The command's exit code, as a shell has it: 128 and the signal's number for one that was
    /// killed. None while it runs.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        let status = self.status?;
        let code = status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal))?;
        u8::try_from(code & 0xff).ok()
    }
}

/// Whether we belong to the foreground of our terminal, if we have one.
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return false;
    };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// One child at a time, as in a recording: a child that another test forks holds copies of all
    /// that is open until it runs its program.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(running: &mut Running) -> u8 {
        while !running.has_ended() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        running.exit_code().unwrap()
    }

    fn shell(script: &str) -> Vec<OsString> {
        ["sh", "-c", script].map(OsString::from).to_vec()
    }

    #[test]
    fn a_suspended_command_runs_when_released_and_returns_its_exit_code() {
        let _alone = alone();
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        let suspended = SuspendedCommand::start(
            &shell(&format!("echo ran > {}; exit 7", trace.display())),
            Says::All,
            None,
        )
        .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!trace.exists(), "the command ran before it was released");
        let mut running = suspended.release().unwrap();
        assert_eq!(wait(&mut running), 7);
        assert!(trace.exists());
    }

    #[test]
    fn a_command_that_is_never_released_never_runs() {
        let _alone = alone();
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        let suspended = SuspendedCommand::start(
            &shell(&format!("echo ran > {}", trace.display())),
            Says::All,
            None,
        )
        .unwrap();
        let SuspendedCommand { gate, spawning, .. } = suspended;
        drop(gate);
        assert!(spawning.join().unwrap().is_err());
        assert!(!trace.exists());
    }

    #[test]
    fn fatal_signals_are_reported_as_by_a_shell() {
        let _alone = alone();
        let suspended =
            SuspendedCommand::start(&shell("kill -TERM $$; sleep 5"), Says::All, None).unwrap();
        assert_eq!(wait(&mut suspended.release().unwrap()), 128 + 15);
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let _alone = alone();
        let suspended =
            SuspendedCommand::start(&["/no/such/program".into()], Says::All, None).unwrap();
        let error = format!("{:#}", suspended.release().err().unwrap());
        assert!(error.contains("/no/such/program"), "{error}");
    }
}
