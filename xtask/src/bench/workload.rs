//! The programs that are profiled.
//!
//! In: sources in C, Python and JavaScript. Out: running programs, which are gone when their value is.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use super::interrupt;
use crate::files;
use crate::workspace::run;

/// Works a fixed amount under a stack of a given depth.
const STACK: &str = "bench_stack";

/// Makes a fixed number of processes.
const STORM: &str = "bench_storm";

/// Two that hand each other the turn.
const SWITCH: &str = "bench_switch";

/// Keeps one CPU busy.
const LOAD: &str = "bench_load";

/// Works a fixed amount under a stack of a given depth, in Python.
const PYTHON: &str = "bench.py";

/// Where the programs are.
pub(super) struct Programs {
    folder: PathBuf,
}

/// Compiles, or copies, the programs from `sources` into `folder`.
pub(super) fn build(sources: &Path, folder: &Path) -> Result<()> {
    files::make_folder(folder)?;
    for name in [STACK, STORM, SWITCH, LOAD] {
        run(Command::new("gcc")
            .args(["-std=gnu11", "-O1", "-fno-omit-frame-pointer"])
            // Sibling calls are jumps, which leave no frame behind; shrink-wrapping makes frames late.
            .args(["-fno-shrink-wrap", "-fno-optimize-sibling-calls"])
            .arg("-o")
            .arg(folder.join(name))
            .arg(sources.join("c").join(name).with_extension("c")))?;
    }
    files::copy(&sources.join("python").join(PYTHON), &folder.join(PYTHON))
}

impl Programs {
    /// The programs that [`build`] left in `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Where they are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a program that does what it is told on one CPU.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(&self, kind: Kind, cpu: usize) -> Result<Workload> {
        let (name, way) = match kind {
            Kind::Stack => (STACK, None),
            Kind::Clock => (STACK, Some("clock")),
            Kind::Storm => (STORM, None),
            Kind::Switch => (SWITCH, None),
        };
        let mut command = Command::new(self.folder.join(name));
        Workload::start(command.args(way), cpu)
    }

    /// The program that works under functions of Python's, for its interpreter.
    pub(super) fn python(&self) -> PathBuf {
        self.folder.join(PYTHON)
    }

    /// Keeps the CPUs busy for as long as the value lives.
    pub(super) fn loads(&self, cpus: impl Iterator<Item = usize>) -> Result<Vec<Workload>> {
        cpus.map(|cpu| Workload::start(&mut Command::new(self.folder.join(LOAD)), cpu))
            .collect()
    }
}

/// Kind of work that a program does when it is told two numbers.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Works under so many frames, so many turns.
    Stack,
    /// Reads the clock under so many frames, so many nanoseconds; what it takes is what interrupts took from that.
    Clock,
    /// Makes processes that end at once (1) or run a program (2), so many.
    Storm,
    /// Two hand each other the turn through pipes (1) or by a futex (2), so often.
    Switch,
}

/// A program that has printed that it is ready.
pub(super) struct Workload {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Workload {
    /// Starts a program that does what it is told, on one CPU.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(command: &mut Command, cpu: usize) -> Result<Self> {
        let name = format!("{command:?}");
        let mut child = command
            .arg(cpu.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C on the terminal is ours alone, so that things end in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let input = child.stdin.take().context("its input was asked for")?;
        let output = child.stdout.take().context("its output was asked for")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let running = Self {
            child,
            input,
            lines,
        };
        match running.answer()?.as_str() {
            "ready" => Ok(running),
            other => bail!("{name} printed {other:?} instead of \"ready\""),
        }
    }

    /// Its process ID.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How long it takes, in seconds of its CPU, without the time that something else had that.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn work(&mut self, what: u32, turns: u64) -> Result<f64> {
        let answer = self.ask(&format!("{what} {turns}\n"))?;
        let times = answer
            .split_once(' ')
            .and_then(|(wall, waited)| Some((wall.parse().ok()?, waited.parse().ok()?)));
        let (wall, waited): (f64, f64) = times
            .with_context(|| format!("the program printed {answer:?} instead of two times"))?;
        Ok((wall - waited) / 1e9)
    }

    /// How many turns take about so many seconds, by a trial of so many.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn turns_for(&mut self, what: u32, seconds: f64, trial: u32) -> Result<u64> {
        // The first is slower: it brings the program into the caches and the CPU up to speed.
        self.work(what, trial.into())?;
        let took = self.work(what, trial.into())?;
        Ok((f64::from(trial) * seconds / took).max(1.0) as u64)
    }

    fn ask(&mut self, line: &str) -> Result<String> {
        self.input
            .write_all(line.as_bytes())
            .context("a workload has ended early")?;
        self.answer()
    }

    fn answer(&self) -> Result<String> {
        loop {
            interrupt::check()?;
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("a workload has ended early"),
            }
        }
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        kill_process_group(Pid::from_child(&self.child), Signal::KILL).ok();
        self.child.wait().ok();
    }
}
