//! The programs that are profiled.
//!
//! In: C sources. Out: running programs, which are gone when their value is.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use super::patience;
use crate::workspace::run;

/// Works a fixed amount under a stack of a given depth.
const STACK: &str = "bench_stack";

/// Makes a fixed number of processes.
const STORM: &str = "bench_storm";

/// Two that hand each other the turn.
const SWITCH: &str = "bench_switch";

/// Keeps one CPU busy.
const LOAD: &str = "bench_load";

/// Looks once at each symbol of a file.
pub(super) const TABLE: &str = "bench_table";

/// Where the programs are.
pub(super) struct Programs {
    folder: PathBuf,
}

/// Compiles the programs from `sources` into `folder`.
pub(super) fn build(sources: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for name in [STACK, STORM, SWITCH, LOAD, TABLE] {
        // What is compared with our code is compiled as well.
        let optimization = if name == TABLE { "-O2" } else { "-O1" };
        run(Command::new("gcc")
            .args(["-std=gnu11", optimization, "-fno-omit-frame-pointer"])
            // Sibling calls are jumps, which leave no frame behind; shrink-wrapping makes frames late.
            .args(["-fno-shrink-wrap", "-fno-optimize-sibling-calls"])
            .arg("-o")
            .arg(folder.join(name))
            .arg(sources.join(name).with_extension("c")))?;
    }
    Ok(())
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

    /// Starts the program of fixed work on one CPU.
    pub(super) fn stack(&self, cpu: usize) -> Result<Stack> {
        Ok(Stack {
            program: Running::start(&self.folder.join(STACK), cpu)?,
        })
    }

    /// Starts the program that makes processes on one CPU, of a kind and a number instead of a depth and turns.
    pub(super) fn storm(&self, cpu: usize) -> Result<Stack> {
        Ok(Stack {
            program: Running::start(&self.folder.join(STORM), cpu)?,
        })
    }

    /// Starts the two that hand each other the turn on one CPU, in a way and so often instead of a depth and turns.
    pub(super) fn switches(&self, cpu: usize) -> Result<Stack> {
        Ok(Stack {
            program: Running::start(&self.folder.join(SWITCH), cpu)?,
        })
    }

    /// Keeps the CPUs busy for as long as the value lives.
    pub(super) fn loads(&self, cpus: impl Iterator<Item = usize>) -> Result<Vec<Running>> {
        cpus.map(|cpu| Running::start(&self.folder.join(LOAD), cpu))
            .collect()
    }
}

/// The program of fixed work, waiting for some.
pub(super) struct Stack {
    program: Running,
}

impl Stack {
    /// Its process ID.
    pub(super) fn pid(&self) -> u32 {
        self.program.child.id()
    }

    /// How long, in seconds of its CPU, `turns` turns take under `depth` frames.
    pub(super) fn work(&mut self, depth: u32, turns: u64) -> Result<f64> {
        let said = self.program.ask(&format!("{depth} {turns}\n"))?;
        let times = said
            .split_once(' ')
            .and_then(|(wall, waited)| Some((wall.parse().ok()?, waited.parse().ok()?)));
        let (wall, waited): (f64, f64) =
            times.with_context(|| format!("the program said {said:?} instead of two times"))?;
        Ok((wall - waited) / 1e9)
    }

    /// How many turns take about so many seconds.
    pub(super) fn turns_for(&mut self, seconds: f64) -> Result<u64> {
        const TRIAL: u32 = 100_000_000;
        // The first is slower: it brings the program into the caches and the CPU up to speed.
        self.work(2, TRIAL.into())?;
        let trial = self.work(2, TRIAL.into())?;
        Ok((f64::from(TRIAL) * seconds / trial) as u64)
    }
}

/// A program that said that it is ready.
pub(super) struct Running {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Running {
    fn start(path: &Path, cpu: usize) -> Result<Self> {
        let mut child = Command::new(path)
            .arg(cpu.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C on the terminal is ours alone, so that things end in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", path.display()))?;
        let input = child.stdin.take().context("its input was asked for")?;
        let output = child.stdout.take().context("its output was asked for")?;
        let (tell, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let running = Self {
            child,
            input,
            lines,
        };
        match running.hear()?.as_str() {
            "ready" => Ok(running),
            said => bail!("{} said {said:?} instead of \"ready\"", path.display()),
        }
    }

    fn ask(&mut self, line: &str) -> Result<String> {
        self.input
            .write_all(line.as_bytes())
            .context("a workload has ended early")?;
        self.hear()
    }

    fn hear(&self) -> Result<String> {
        loop {
            patience::check()?;
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("a workload has ended early"),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill_process_group(Pid::from_child(&self.child), Signal::KILL).ok();
        self.child.wait().ok();
    }
}
