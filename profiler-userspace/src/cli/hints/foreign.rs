//! Verbs, tool names and flags of other profilers, as tables.
//!
//! In: nothing. Out: rows for [`super`] to look things up in. Never: our own flags; those are read
//! from their declaration.

/// Words that other profilers begin with, and what to know about them. After those without an
/// example of their own, a command line may follow that can be translated.
pub(super) const VERBS: &[(&str, &str, Option<&str>)] = &[
    ("record", "flame-bpf records without a verb", None),
    ("profile", "flame-bpf records without a verb", None),
    ("flamegraph", "flame-bpf records without a verb", None),
    (
        "report",
        "flame-bpf draws the graph when it has recorded",
        Some("flame-bpf -p PID -d 10"),
    ),
    (
        "script",
        "flame-bpf writes folded stacks itself",
        Some("flame-bpf -a -d 10 -o stacks.folded"),
    ),
    (
        "dump",
        "a look at what threads do is a short recording of all their time",
        Some("flame-bpf --wall -p PID -d 1 --report"),
    ),
    (
        "load",
        "recordings, and profiles of other tools, are drawn by render",
        Some("flame-bpf render FILE"),
    ),
    (
        "import",
        "recordings, and profiles of other tools, are drawn by render",
        Some("flame-bpf render FILE"),
    ),
    (
        "trace",
        "flame-bpf counts and times system calls by stack",
        Some("flame-bpf --syscalls=latency -p PID -d 10"),
    ),
];

/// Beginnings of bpftrace's probes, what to know about them, and the command that does it here, in which `NAME` is the last part.
pub(super) const PROBES: &[(&str, &str, &str)] = &[
    ("kprobe:", KERNEL_FUNCTIONS, "flame-bpf -d 10 --focus NAME"),
    (
        "kretprobe:",
        KERNEL_FUNCTIONS,
        "flame-bpf -d 10 --focus NAME",
    ),
    ("kfunc:", KERNEL_FUNCTIONS, "flame-bpf -d 10 --focus NAME"),
    ("fentry:", KERNEL_FUNCTIONS, "flame-bpf -d 10 --focus NAME"),
    ("profile:hz:", "the rate is -F", "flame-bpf -F NAME"),
    (
        "interval:",
        "the whole recording is one; windows of it are written by --window",
        "flame-bpf --window 10s -o x.fbpf",
    ),
];

const KERNEL_FUNCTIONS: &str =
    "functions of the kernel are not counted; the time spent in one is shown";

/// Tools of bcc's that show waits, the flag that does, and an example: what follows them is a command line much like ours.
pub(super) const TOOLS: &[(&str, &str, &str)] = &[
    (
        "offcputime",
        "--off-cpu",
        "flame-bpf --off-cpu -p PID -d 10",
    ),
    (
        "offwaketime",
        "--off-wake",
        "flame-bpf --off-wake -p PID -d 10",
    ),
    ("wakeuptime", "--wakeup", "flame-bpf --wakeup -p PID -d 10"),
];

/// Suffix that Debian adds to the names of bcc's tools.
pub(super) const SUFFIX: &str = "-bpfcc";

/// Shown for a verb whose command line cannot be translated.
pub(super) const EXAMPLE: &str = "flame-bpf -p PID -d 10";

/// Replacement of a flag.
#[derive(Clone, Copy)]
pub(super) enum Instead<'a> {
    /// Nothing.
    Nothing,
    /// A flag of ours, with the same value if there was one.
    Flag(&'a str),
    /// A command line of ours instead of the whole.
    Line(&'static str),
}

/// Names of a flag of others, whether it takes a value, what to write instead, and why.
pub(super) type Flag = (
    &'static [&'static str],
    bool,
    Instead<'static>,
    &'static str,
);

const STACKS: &str = "stacks are always recorded, without a flag";

/// Flags of other profilers. Other unknown flags get clap's answer.
pub(super) const FLAGS: &[Flag] = &[
    (&["-g"], false, Instead::Nothing, STACKS),
    (
        &["--all-cpus"],
        false,
        Instead::Flag("-a"),
        "the whole machine is -a",
    ),
    (
        &["--all-user", "-u"],
        false,
        Instead::Flag("-U"),
        "user stacks only is -U",
    ),
    (
        &["--all-kernel", "-k"],
        false,
        Instead::Flag("-K"),
        "kernel stacks only is -K",
    ),
    (
        &["-r", "--rate", "--profiling-cpu-sampling-frequency"],
        true,
        Instead::Flag("-F"),
        "the rate is -F",
    ),
    (
        &["--interval", "-i"],
        true,
        Instead::Nothing,
        "the rate is -F, in samples a second",
    ),
    (
        &["--threads", "--per-tid"],
        false,
        Instead::Flag("--per-thread"),
        "threads are told apart by --per-thread",
    ),
    (
        &["--nonblocking", "--no-open", "--save-only"],
        false,
        Instead::Nothing,
        "programs are never stopped, and graphs are opened by --open alone",
    ),
    (
        &["--lock"],
        false,
        Instead::Flag("--locks"),
        "who waits for locks is shown by --locks",
    ),
    (
        &["--remote-store-address", "--node", "--config-path"],
        true,
        Instead::Line("flame-bpf service --parca http://localhost:7070"),
        "profiles are sent to servers by service",
    ),
    (
        &["--stack-storage-size"],
        true,
        Instead::Nothing,
        "stacks have no table of fixed size here",
    ),
    (
        &["--cgroupmap", "-G"],
        true,
        Instead::Line("flame-bpf -d 10 --cgroup PATH"),
        "cgroups are named by their paths",
    ),
    (
        &["--native", "--idle", "--gil"],
        false,
        Instead::Nothing,
        "native frames are always shown, and threads that wait with --off-cpu or --wall",
    ),
    (
        &["--subprocesses"],
        false,
        Instead::Flag("--children"),
        "children are sampled with --children",
    ),
    (
        &["--format", "--output-format", "--fmt"],
        true,
        Instead::Line("flame-bpf -p PID -d 10 -o profile.speedscope.json"),
        "the name of the output tells its format",
    ),
    (
        &["--memory"],
        false,
        Instead::Flag("--alloc"),
        "who allocates memory is shown by --alloc",
    ),
];

/// Letters that may follow `d` in one word of bcc's `profile` and its kin: its flags.
pub(super) const BCC_LETTERS: &str = "adfIKUpLFcC";
