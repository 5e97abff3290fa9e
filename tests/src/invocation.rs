//! Running flame-bpf.
//!
//! In: an [`Invocation`]: flags, and perhaps a folder or a wrapping command. Out: a [`Run`], or, while
//! flame-bpf still runs, a [`Running`] that can be sent signals.

use std::fmt::Display;
use std::fs;
use std::io::{self, PipeReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::binary::binary;
use crate::feature::broken;
use crate::run::Run;
use crate::said::Said;
use crate::workload::{PATIENCE, Workload};

/// How often something that sends no event is looked at.
const GLANCE: Duration = Duration::from_millis(5);

/// How long after one probe the next is attached at the latest.
const SETTLING: Duration = Duration::from_millis(100);

/// One command line, before it is run.
#[derive(Clone, Debug)]
pub struct Invocation {
    binary: PathBuf,
    wrapper: Vec<String>,
    arguments: Vec<String>,
    folder: Option<PathBuf>,
}

impl Invocation {
    /// flame-bpf with `flags`, which are split at white space.
    pub fn new(flags: &str) -> Self {
        Self {
            binary: binary(),
            wrapper: Vec::new(),
            arguments: flags.split_whitespace().map(str::to_owned).collect(),
            folder: None,
        }
    }

    /// One more argument, taken as it is.
    pub fn arg(mut self, argument: impl Display) -> Self {
        self.arguments.push(argument.to_string());
        self
    }

    /// More arguments, which are split at white space.
    pub fn args(mut self, arguments: &str) -> Self {
        let words = arguments.split_whitespace().map(str::to_owned);
        self.arguments.extend(words);
        self
    }

    /// A flag and its value.
    pub fn flag(self, flag: &str, value: impl Display) -> Self {
        self.arg(flag).arg(value)
    }

    /// A flag and the path that is its value.
    pub fn path(self, flag: &str, value: &Path) -> Self {
        self.flag(flag, value.display())
    }

    /// A command to be started by flame-bpf, behind all other arguments.
    pub fn command(self, program: &Path, arguments: &[&str]) -> Self {
        arguments
            .iter()
            .fold(self.arg("--").arg(program.display()), |command, next| {
                command.arg(next)
            })
    }

    /// Runs flame-bpf through another command, which is split at white space and takes flame-bpf's
    /// command line as its last arguments.
    pub fn wrapped(mut self, wrapper: &str) -> Self {
        self.wrapper = wrapper.split_whitespace().map(str::to_owned).collect();
        self
    }

    /// Runs another copy of the binary.
    pub fn with_binary(mut self, binary: &Path) -> Self {
        self.binary = binary.to_owned();
        self
    }

    /// Runs in a folder.
    pub fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// The command line as one string for a shell. None of the parts may need quoting, which holds for
    /// what tests put together.
    pub fn shell(&self) -> String {
        let mut words = self.wrapper.clone();
        words.push(self.binary.display().to_string());
        words.extend(self.arguments.iter().cloned());
        words.join(" ")
    }

    /// Runs on a workload that keeps accounts from SIGUSR1 to SIGUSR2, which it is sent when the recording has begun and, so many
    /// seconds later, before it ends. Returns what the workload said, too.
    pub fn run_accounted(&self, workload: Workload, seconds: f64) -> (Run, Said) {
        let mut running = self.clone().flag("-p", workload.pid()).start();
        running.wait_until_attached();
        if self.arguments.iter().any(|arg| arg == "--off-cpu-output") {
            // Waits come last.
            running.wait_for(sees_switches);
        }
        workload.signal(Signal::USR1);
        thread::sleep(Duration::from_secs_f64(seconds));
        workload.signal(Signal::USR2);
        running.signal(Signal::INT);
        let run = running.finish().expect_code(0);
        (run, workload.stop())
    }

    /// Runs on a workload that waits for a word before it does what it is known for; from before that to its end. Returns what
    /// the workload said, too.
    pub fn run_while_working(&self, workload: Workload) -> (Run, Said) {
        let mut running = self.clone().flag("-p", workload.pid()).start();
        running.wait_until_all_attached();
        workload.proceed();
        let said = workload.stop_by_itself();
        (running.finish().expect_code(0), said)
    }

    /// Runs on a workload until that has used so much CPU time meanwhile: so a busy machine gives as many samples of what it does
    /// as an idle one.
    pub fn run_for_cpu_time(&self, workload: &Workload, seconds: f64) -> Run {
        let mut running = self.clone().flag("-p", workload.pid()).start();
        running.wait_until_attached();
        let begin = workload.cpu_ns();
        let enough = Duration::from_secs_f64(seconds).as_nanos() as u64;
        running.wait_for(|_| workload.cpu_ns().saturating_sub(begin) >= enough);
        running.signal(Signal::INT);
        running.finish().expect_code(0)
    }

    /// Runs to the end.
    pub fn run(&self) -> Run {
        self.start().finish()
    }

    /// Starts, and collects stdout and stderr meanwhile.
    pub fn start(&self) -> Running {
        let (read, write) = io::pipe().expect("a pipe can be made");
        let mut running = self.start_with(write.into());
        running.read_stdout = Some(collect(read));
        running
    }

    /// Starts without reading stdout, a pipe made so small that one long line fills it; see
    /// [`Running::read_stdout_byte`].
    pub fn start_unread(&self) -> Running {
        // Before anybody writes: a pipe that holds more than its new size cannot be made smaller.
        let (read, write) = io::pipe().expect("a pipe can be made");
        rustix::pipe::fcntl_setpipe_size(&write, 4096).expect("a pipe can be made smaller");
        let mut running = self.start_with(write.into());
        running.stdout = Some(read);
        running
    }

    fn start_with(&self, stdout: Stdio) -> Running {
        let mut words = self.wrapper.iter().map(String::as_str);
        let mut command = match words.next() {
            Some(program) => {
                let mut command = Command::new(program);
                command.args(words).arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} could not be started: {error}"));
        let stderr = child.stderr.take().expect("stderr was asked for");
        Running {
            stdout: None,
            read_stdout: None,
            read_stderr: Some(collect(stderr)),
            child,
            line: self.shell(),
        }
    }
}

/// flame-bpf while it runs. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Option<PipeReader>,
    read_stdout: Option<JoinHandle<Vec<u8>>>,
    read_stderr: Option<JoinHandle<Vec<u8>>>,
    line: String,
}

impl Running {
    /// The process's ID: flame-bpf's own, or the wrapper's where that does not `exec`.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until flame-bpf holds a probe, so that samples can be taken, or has ended.
    pub fn wait_until_attached(&mut self) {
        self.wait_for(|pid| probes(pid) > 0);
    }

    /// Waits until flame-bpf holds all its probes, which come one after the other, or has ended.
    pub fn wait_until_all_attached(&mut self) {
        self.wait_until_attached();
        loop {
            let before = probes(self.pid());
            thread::sleep(SETTLING);
            if probes(self.pid()) == before || self.ended().is_some() {
                return;
            }
        }
    }

    /// Waits until `state` holds of flame-bpf's PID, or it has ended.
    ///
    /// # Panics
    ///
    /// When neither comes about.
    pub fn wait_for(&mut self, state: impl Fn(u32) -> bool) {
        let start = Instant::now();
        while !state(self.pid()) && self.ended().is_none() {
            self.assert_alive(start);
            thread::sleep(GLANCE);
        }
    }

    /// Sends a signal. One that has ended already is left in peace.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).ok();
    }

    /// Waits for one byte of a stdout that nobody reads; `None` at its end.
    pub fn read_stdout_byte(&mut self) -> Option<u8> {
        let stdout = self.stdout.as_mut().expect("stdout is not being read");
        let mut byte = [0];
        match stdout.read(&mut byte) {
            Ok(1) => Some(byte[0]),
            _ => None,
        }
    }

    /// Waits for the end.
    ///
    /// # Panics
    ///
    /// When it does not come.
    pub fn finish(mut self) -> Run {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.ended() {
                break status;
            }
            self.assert_alive(start);
            thread::sleep(GLANCE);
        };
        let taken = |reader: Option<JoinHandle<Vec<u8>>>| {
            reader.map_or_else(Vec::new, |reader| {
                reader.join().expect("reading a pipe does not panic")
            })
        };
        drop(self.stdout.take());
        Run {
            status,
            stdout: taken(self.read_stdout.take()),
            stderr: String::from_utf8_lossy(&taken(self.read_stderr.take())).into_owned(),
            line: std::mem::take(&mut self.line),
        }
    }

    #[track_caller]
    fn assert_alive(&self, start: Instant) {
        if start.elapsed() > PATIENCE {
            broken(&format!("`{}` hangs", self.line));
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail after `finish`, when there is nothing left to do.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

/// How many probes flame-bpf holds. Either is enough for a firing: the event, or the program's link to it.
fn probes(pid: u32) -> usize {
    let probe = |file: &&String| file.contains("perf_event") || file.contains("bpf_link");
    open_files(pid).iter().filter(probe).count()
}

/// Whether flame-bpf holds a probe that is of no perf event.
fn sees_switches(pid: u32) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter();
    let of_file = |file: fs::DirEntry| fs::read_to_string(file.path()).ok();
    let mut texts = files.flatten().flatten().filter_map(of_file);
    texts.any(|text| text.contains("link_type:\traw_tracepoint"))
}

/// Targets of the file descriptors of `pid`.
fn open_files(pid: u32) -> Vec<String> {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Invocation {
        // Stands in for flame-bpf, so that the harness is tested without it.
        Invocation {
            binary: PathBuf::from("/bin/sh"),
            wrapper: Vec::new(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            folder: None,
        }
    }

    #[test]
    fn exit_code_stdout_and_stderr_are_collected() {
        let run =
            sh("echo 'a;b 3'; echo 'counter: fired 3' >&2; echo 'counter: recorded 3' >&2; exit 4")
                .run();
        assert_eq!(run.code(), 4);
        assert_eq!(run.folded().total(), 3);
        assert_eq!(run.balance().recorded, 3);
        run.expect_code(4)
            .expect_stderr("RECORDED")
            .expect_no_panic();
    }

    #[test]
    fn a_fatal_signal_shows_in_the_exit_code() {
        let running = sh("exec sleep 100").start();
        running.signal(Signal::TERM);
        assert_eq!(running.finish().code(), 128 + 15);
    }

    #[test]
    fn a_stdout_that_nobody_reads_blocks_its_writer() {
        let mut running = sh("exec yes").start_unread();
        assert_eq!(running.read_stdout_byte(), Some(b'y'));
        running.signal(Signal::TERM);
        assert_eq!(running.finish().code(), 128 + 15);
    }

    #[test]
    #[should_panic(expected = "exit code of")]
    fn a_wrong_exit_code_is_noticed() {
        sh("exit 1").run().expect_code(0);
    }

    #[test]
    fn a_wrapper_command_comes_before_the_binary() {
        let run = sh("echo \"$MARK;x 1\"").wrapped("env MARK=here").run();
        assert_eq!(run.folded().heaviest().root(), "here");
    }
}
