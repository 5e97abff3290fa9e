//! Running a tool.
//!
//! In: a command line and a folder to run it in. Out: a process that is stopped as a user would stop it, or killed with all its
//! children when its value is dropped.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use super::tool::{Order, PRINTED, Tool, said};
use super::{bpf, patience};

/// What a tool complains of goes to this file in its folder.
pub(super) const SAID: &str = "said";

/// bpftrace takes tens of seconds to print the stacks of a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// What perf events need from being opened to sampling at their rate, with room to spare.
const SETTLING: Duration = Duration::from_millis(300);

/// A command line.
pub(super) struct Step {
    /// The program's name or path.
    pub(super) program: OsString,
    /// What follows it.
    pub(super) arguments: Vec<OsString>,
}

/// A command that runs.
pub(super) struct Process {
    child: Child,
    name: String,
}

/// A tool that records.
pub(super) struct Recording<'tool> {
    tool: &'tool Tool,
    process: Process,
    folder: TempDir,
    /// When it was started.
    pub(super) started: Instant,
}

impl Process {
    /// Starts a command in `folder`, which also gets what it prints and says.
    pub(super) fn start(step: &Step, folder: &Path) -> Result<Self> {
        let file = |name: &str| {
            let path = folder.join(name);
            File::create(&path).with_context(|| format!("cannot make {}", path.display()))
        };
        let name = step.program.to_string_lossy().into_owned();
        // A step that prints nothing must not lose what the step before it printed.
        let printed = match folder.join(PRINTED).exists() {
            true => Stdio::null(),
            false => file(PRINTED)?.into(),
        };
        let child = Command::new(&step.program)
            .args(&step.arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(printed)
            .stderr(file(SAID)?)
            // Ctrl-C on the terminal is ours alone, so that things end in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, name })
    }

    /// Its process ID.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        let status = self.child.try_wait().context("cannot wait for a child")?;
        Ok(status.is_some())
    }

    /// Does as Ctrl-C does, and waits for its end. perf says by its exit code that it was interrupted.
    pub(super) fn interrupt(&mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::INT)
            .with_context(|| format!("cannot interrupt {}", self.name))?;
        self.wait()?;
        Ok(())
    }

    /// Waits for its end.
    pub(super) fn wait(&mut self) -> Result<bool> {
        let Self { child, name } = self;
        let status = patience::until(Duration::from_micros(500), PATIENCE, || {
            child.try_wait().context("cannot wait for a child")
        });
        Ok(status
            .with_context(|| format!("{name} does not end"))?
            .success())
    }

    /// Waits for its end, which must be a good one.
    pub(super) fn finish(mut self) -> Result<()> {
        let success = self.wait()?;
        ensure!(success, "{} failed", self.name);
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its pipes' other ends and its children are in the group.
        kill_process_group(Pid::from_child(&self.child), Signal::KILL).ok();
        self.child.wait().ok();
    }
}

impl<'tool> Recording<'tool> {
    /// Starts to record.
    pub(super) fn start(tool: &'tool Tool, order: Order) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let step = tool.record(order);
        let started = Instant::now();
        Ok(Self {
            tool,
            process: Process::start(&step, folder.path())?,
            folder,
            started,
        })
    }

    /// The recorder's process ID.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Where it leaves its files.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until it samples.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.await_that(
            "takes samples",
            bpf::has_perf_event,
            Duration::from_millis(5),
        )?;
        patience::pause(SETTLING)
    }

    /// Waits until something is true of the process ID.
    pub(super) fn await_that(
        &mut self,
        what: &str,
        mut is_true: impl FnMut(u32) -> bool,
        step: Duration,
    ) -> Result<()> {
        let Self {
            tool,
            process,
            folder,
            ..
        } = self;
        patience::until(step, PATIENCE, || {
            let ended = process
                .child
                .try_wait()
                .context("cannot wait for a child")?;
            ensure!(
                ended.is_none(),
                "{} has ended early{}",
                tool.name,
                said(folder.path())
            );
            Ok(is_true(process.pid()).then_some(()))
        })
        .with_context(|| format!("waited until {} {what}", tool.name))
    }

    /// Does as Ctrl-C does, and waits for its end.
    pub(super) fn interrupt(&mut self) -> Result<()> {
        // Whether it did its work, its files say.
        self.process.interrupt()
    }

    /// Draws what was recorded, and looks whether it is there.
    pub(super) fn draw(&self) -> Result<()> {
        if let Some(step) = self.tool.draw() {
            Process::start(&step, self.folder())?.finish()?;
        }
        self.tool.check(self.folder())
    }
}
