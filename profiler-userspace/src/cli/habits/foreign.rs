//! What other profilers call things, as tables.
//!
//! In: nothing. Out: rows for [`super`] to look things up in. Never: our own flags; those are read
//! from their declaration.

/// Words that other profilers begin with, and what to know about them. After those without an
/// example of their own, a command line may follow that can be translated.
pub(super) const VERBS: &[(&str, &str, Option<&str>)] = &[
    ("record", "flame-bpf records without a verb", None),
    ("profile", "flame-bpf records without a verb", None),
    (
        "flamegraph",
        "flame-bpf draws flame graphs without a verb",
        None,
    ),
    (
        "report",
        "there is nothing left to report on: flame-bpf draws the graph when it has recorded",
        Some("flame-bpf -p PID -d 10"),
    ),
    (
        "script",
        "there is nothing to convert: flame-bpf writes folded stacks itself",
        Some("flame-bpf -a -d 10 -o stacks.folded"),
    ),
    (
        "top",
        "flame-bpf has no live view; record for a while instead",
        Some("flame-bpf -a -d 10"),
    ),
    (
        "stat",
        "flame-bpf samples stacks, and does not count without them",
        Some("flame-bpf -p PID -d 10"),
    ),
    ("help", "flame-bpf has no verbs", Some("flame-bpf --help")),
    (
        "trace",
        "flame-bpf counts system calls where they are made, or their time",
        Some("flame-bpf --syscalls=latency -p PID -d 10"),
    ),
    (
        "syscount",
        "flame-bpf counts system calls where they are made, or their time",
        Some("flame-bpf --syscalls -p PID -d 10"),
    ),
    (
        "lock",
        "flame-bpf shows who waits for locks",
        Some("flame-bpf --locks -p PID -d 10"),
    ),
    (
        "klockstat",
        "flame-bpf shows who waits for locks of the kernel",
        Some("flame-bpf --locks=kernel -p PID -d 10"),
    ),
    (
        "sched",
        WAITS_FOR_CPU,
        Some("flame-bpf --wall -p PID -d 10"),
    ),
    (
        "runqlat",
        WAITS_FOR_CPU,
        Some("flame-bpf --wall -p PID -d 10"),
    ),
    (
        "fileslower",
        FILES,
        Some("flame-bpf --io --io-files -p PID -d 10"),
    ),
    (
        "filetop",
        FILES,
        Some("flame-bpf --io=bytes --io-files -p PID -d 10"),
    ),
    (
        "ext4slower",
        FILES,
        Some("flame-bpf --io --io-files -p PID -d 10"),
    ),
    (
        "xfsslower",
        FILES,
        Some("flame-bpf --io --io-files -p PID -d 10"),
    ),
    ("biolatency", DISKS, Some("flame-bpf --io -p PID -d 10")),
    (
        "biosnoop",
        DISKS,
        Some("flame-bpf -e block:block_rq_issue -a -d 10"),
    ),
    (
        "biotop",
        DISKS,
        Some("flame-bpf -e block:block_rq_issue -a -d 10"),
    ),
    (
        "memleak",
        "flame-bpf shows who asks for memory, and not who keeps it",
        Some("flame-bpf --alloc -p PID -d 10"),
    ),
];

const WAITS_FOR_CPU: &str =
    "flame-bpf shows who waits for a CPU beside what runs and what is blocked";

const FILES: &str = "flame-bpf shows who reads and writes files";

const DISKS: &str =
    "flame-bpf shows who reads and writes (--io), or who passes a tracepoint of the block devices";

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

/// What Debian has behind the names of bcc's tools.
pub(super) const SUFFIX: &str = "-bpfcc";

/// Shown for a verb whose command line cannot be translated.
pub(super) const EXAMPLE: &str = "flame-bpf -p PID -d 10";

/// What to write instead of a flag.
#[derive(Clone, Copy)]
pub(super) enum Instead<'a> {
    /// Nothing.
    Nothing,
    /// A flag of ours, with the same value if there was one.
    Flag(&'a str),
}

/// Names of a flag of others, whether it takes a value, what to write instead, and why.
pub(super) type Flag = (
    &'static [&'static str],
    bool,
    Instead<'static>,
    &'static str,
);

const STACKS: &str = "stacks are always recorded, without a flag";

/// Flags that people know from elsewhere, and only those: what is nobody's habit gets clap's answer.
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
        &["-r", "--rate"],
        true,
        Instead::Flag("-F"),
        "the rate is -F",
    ),
    (
        &["--no-inherit"],
        false,
        Instead::Nothing,
        "children are followed only where a command is launched",
    ),
    (
        &["-m", "--mmap-pages"],
        true,
        Instead::Nothing,
        "samples are counted in the kernel, so there is no buffer to size",
    ),
    (
        &["--stack-storage-size"],
        true,
        Instead::Nothing,
        "stacks have no table of fixed size here",
    ),
    (
        &["-s", "--save-only", "--no-open"],
        false,
        Instead::Nothing,
        "flame-bpf saves its files, and opens none",
    ),
    (
        &["--root"],
        false,
        Instead::Nothing,
        "flame-bpf does not raise its own privileges; put sudo before it",
    ),
];

/// Letters that may follow `d` in one word of bcc's `profile` and its kin: its flags.
pub(super) const BCC_LETTERS: &str = "adfIKUpLFcC";
