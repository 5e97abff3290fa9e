//! An interpreter that runs a program, and is stopped.
//!
//! In: a command. Out: its registers, its mappings, its native frames, its memory. It is killed when it is let go.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Lines};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use flame_bpf::runtime;
use flame_bpf_tests::native_walk::{Mapped, Registers, walk_natively};
use flame_bpf_tests::recorded::{Bytes, Noting, Recording};
use flame_bpf_tests::source;
use profiler_common::abi::StackEnd;
use profiler_common::runtime::{NativeFrame, memory::Recorded};
use profiler_common::walk::Memory;
use profiler_common::walk::native::Frame;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long the program gets on between two stops.
const BETWEEN: Duration = Duration::from_millis(20);
/// How long a stop may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The registers in the order of DWARF's numbers, the instruction pointer, and the thread pointer, as gdb calls them.
const REGISTERS: [&str; 18] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "fs_base",
];

/// An interpreter that runs.
pub(crate) struct Interpreter {
    child: Child,
    /// Where its program is.
    _folder: TempDir,
    /// The chain of calls that it says it is in, from root to leaf.
    pub(crate) chain: Vec<String>,
}

impl Interpreter {
    /// Starts a program of the workloads, and waits until it is in its chain of calls. With a `root`, inside that folder.
    pub(crate) fn start(program: &str, root: Option<&str>, command: &[String]) -> Result<Self> {
        let [interpreter, arguments @ ..] = command else {
            bail!("which interpreter is to be run?");
        };
        let temporary = match root {
            Some(root) => Path::new(root).join("tmp"),
            None => std::env::temp_dir(),
        };
        // Without random letters, since some interpreters make whole paths of the program's name.
        let folder = tempfile::Builder::new()
            .prefix("recorded")
            .rand_bytes(0)
            .tempdir_in(&temporary)
            .with_context(|| {
                let folder = temporary.join("recorded");
                format!("cannot make {}; remove it if it is there", folder.display())
            })?;
        let path = source(program);
        let name = path.file_name().context("a program is a file")?;
        // The program's name is all that a recording has of where it was.
        fs::copy(&path, folder.path().join(name))
            .with_context(|| format!("cannot copy {}", path.display()))?;
        let mut command = match root {
            Some(root) => {
                let within = folder.path().strip_prefix(root)?;
                let mut command = Command::new("chroot");
                command.args([root, "env", "-C"]);
                command.arg(Path::new("/").join(within)).arg(interpreter);
                command
            }
            None => {
                let mut command = Command::new(interpreter);
                command.current_dir(folder.path());
                command
            }
        };
        let mut child = command
            .args(arguments)
            .arg(name)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let stdout = child.stdout.take().context("it was asked for")?;
        let chain = said(BufReader::new(stdout).lines())
            .with_context(|| format!("{command:?} said nothing of a chain"));
        let mut interpreter = Self {
            child,
            _folder: folder,
            chain: Vec::new(),
        };
        interpreter.chain = chain?;
        Ok(interpreter)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("the interpreter has ended")
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The chain in what a program says.
fn said(mut lines: Lines<BufReader<ChildStdout>>) -> Option<Vec<String>> {
    lines.find_map(|line| {
        let chain = line.ok()?;
        let names = chain.strip_prefix("chain ")?.split(';');
        Some(names.map(str::to_owned).collect())
    })
}

/// An interpreter that is stopped, until this is let go.
pub(crate) struct Stopped<'i> {
    interpreter: &'i Interpreter,
    registers: [u64; 18],
}

impl<'i> Stopped<'i> {
    /// Stops it where it is after a while.
    pub(crate) fn new(interpreter: &'i Interpreter) -> Result<Self> {
        thread::sleep(BETWEEN);
        interpreter.signal(Signal::STOP)?;
        let pid = interpreter.child.id();
        let mut stopped = Self {
            interpreter,
            registers: [0; 18],
        };
        wait_until_stopped(pid)?;
        stopped.registers = registers(pid)?;
        wait_until_stopped(pid)?;
        Ok(stopped)
    }

    /// Walks, and gives the runtime's version and what was read.
    pub(crate) fn record(&self) -> Result<(String, Recording)> {
        let pid = self.interpreter.child.id();
        let memory = LiveMemory::of(pid)?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).context("it has ended")?;
        let mut mapped = Vec::new();
        let mut found = None;
        for line in maps.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [range, "r-xp", offset, _, _, path] = words[..] else {
                continue;
            };
            let number = |text| u64::from_str_radix(text, 16);
            let (start, end) = range.split_once('-').context("two addresses")?;
            let code = number(start)?..number(end)?;
            let Some((object, _)) = Mapped::new(code, number(offset)?, path) else {
                continue;
            };
            if let Ok(file) = File::open(path)
                && let Some(detected) = runtime::detect(&file)
            {
                let words = detected.words.map_err(|reason| {
                    anyhow!("{} in {path} is not understood: {reason}", detected.name)
                })?;
                found = Some((detected.name, *words, mapped.len()));
            }
            mapped.push(object);
        }
        let (version, descriptor, place) = found.context("no runtime is found in its files")?;
        let registers: Registers = self.registers[..17].try_into()?;
        let (frames, end) = walk_natively(&registers, &memory, &mapped);
        let natives = natives(&frames, &mapped[place]);
        let [.., thread_pointer] = self.registers;
        let known = Recorded {
            descriptor,
            bias: mapped[place].bias,
            thread_pointer,
            registers: self.registers[..16].try_into()?,
            ..Recorded::default()
        };
        let recording = Noting::new(memory, known).record(natives, end != StackEnd::Root);
        Ok((version, recording))
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.interpreter.signal(Signal::CONT).ok();
    }
}

/// Frames in an object that have a caller, as the kernel half gives them to a runtime.
fn natives(frames: &[Frame], object: &Mapped) -> Vec<NativeFrame> {
    let pairs = frames.iter().zip(frames.iter().skip(1)).enumerate();
    let within = pairs.filter(|(_, (frame, _))| object.code.contains(&frame.lookup()));
    within
        .map(|(place, (frame, caller))| NativeFrame {
            address: frame.lookup().wrapping_sub(object.bias),
            sp: frame.sp,
            caller_sp: caller.sp,
            is_first: u64::from(place == 0),
            fp: frame.fp,
            saved: frame.saved,
        })
        .collect()
}

fn wait_until_stopped(pid: u32) -> Result<()> {
    let start = Instant::now();
    loop {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("it has ended")?;
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
        if state == Some(b'T') {
            return Ok(());
        }
        ensure!(
            start.elapsed() < PATIENCE,
            "process {pid} does not stop: {stat}"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

fn registers(pid: u32) -> Result<[u64; 18]> {
    let prints = REGISTERS.map(|name| format!("printf \"register %lx\\n\", ${name}"));
    let mut command = Command::new("gdb");
    command.args(["-nx", "-batch", "-iex", "set auto-load off"]);
    command.args([
        "-iex",
        "set debuginfod enabled off",
        "-iex",
        "set auto-solib-add off",
    ]);
    command.args(["-p", &pid.to_string()]);
    for print in &prints {
        command.args(["-ex", print]);
    }
    let output = command
        .output()
        .context("cannot start gdb; install it with `apt install gdb`")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines();
    let numbers = lines.filter_map(|line| line.strip_prefix("register "));
    let words: Option<Vec<u64>> = numbers
        .map(|number| u64::from_str_radix(number, 16).ok())
        .collect();
    let words = words.and_then(|words| words.try_into().ok());
    words.with_context(|| format!("gdb says {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// The memory of a process that is stopped.
struct LiveMemory(File);

impl LiveMemory {
    fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/mem");
        let file = File::open(&path).with_context(|| format!("cannot open {path}"))?;
        Ok(Self(file))
    }
}

impl Bytes for LiveMemory {
    fn bytes(&self, address: u64, into: &mut [u8]) -> Option<()> {
        self.0.read_exact_at(into, address).ok()
    }
}

impl Memory for LiveMemory {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut bytes = [[0; 8]; N];
        self.bytes(address, bytes.as_flattened_mut())?;
        Some(bytes.map(u64::from_le_bytes))
    }
}
