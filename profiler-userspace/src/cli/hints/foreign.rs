//! Verbs, tool names and flags of other profilers, as tables.
//!
//! In: nothing. Out: rows for [`super`] to look things up in. Never: our own flags; those are read
//! from their declaration.

/// The rows of one of these tables, cell by cell; those that a row does not have are empty.
pub(super) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.lines().map(|row| {
        let mut cells = row.split('|').map(str::trim);
        std::array::from_fn(|_| cells.next().unwrap_or_default())
    })
}

/// Words that other profilers begin with, and what to know about them. After those without an
/// example of their own, a command line may follow that can be translated.
pub(super) const VERBS: &str = "\
record | flame-bpf records without a verb
profile | flame-bpf records without a verb
flamegraph | flame-bpf records without a verb
report | flame-bpf draws the graph when it has recorded | flame-bpf -p PID -d 10
script | flame-bpf writes folded stacks itself | flame-bpf -a -d 10 -o stacks.folded
dump | a look at what threads do is a short recording of all their time | flame-bpf --wall -p PID -d 1 --report
load | recordings, and profiles of other tools, are drawn by render | flame-bpf render FILE
import | recordings, and profiles of other tools, are drawn by render | flame-bpf render FILE
trace | flame-bpf counts and times system calls by stack | flame-bpf --syscalls=latency -p PID -d 10";

/// Beginnings of bpftrace's probes, what to know about them, and the command that does it here, in which `NAME` is the last part.
pub(super) const PROBES: &str = "\
kprobe: kretprobe: kfunc: fentry: | functions of the kernel are not counted; the time spent in one is shown | flame-bpf -d 10 --focus NAME
profile:hz: | the rate is -F | flame-bpf -F NAME
interval: | the whole recording is one; windows of it are written by --window | flame-bpf --window 10s -o x.fbpf";

/// Tools of bcc's that show waits, the flag that does, and an example: what follows them is a command line much like ours.
pub(super) const TOOLS: &str = "\
offcputime | --off-cpu | flame-bpf --off-cpu -p PID -d 10
offwaketime | --off-wake | flame-bpf --off-wake -p PID -d 10
wakeuptime | --wakeup | flame-bpf --wakeup -p PID -d 10";

/// Suffix that Debian adds to the names of bcc's tools.
pub(super) const SUFFIX: &str = "-bpfcc";

/// Shown for a verb whose command line cannot be translated.
pub(super) const EXAMPLE: &str = "flame-bpf -p PID -d 10";

/// Flags of other profilers: their names, whether they take a value, the flag or the line of ours to write instead, if there is
/// one, and why. Other unknown flags get clap's answer.
pub(super) const FLAGS: &str = "\
-g | | | stacks are always recorded, without a flag
--all-cpus | | -a | the whole machine is -a
--all-user -u | | -U | user stacks only is -U
--all-kernel -k | | -K | kernel stacks only is -K
-r --rate --profiling-cpu-sampling-frequency | value | -F | the rate is -F
--interval -i | value | | the rate is -F, in samples a second
--threads --per-tid | | --per-thread | threads are told apart by --per-thread
--nonblocking --no-open --save-only | | | programs are never stopped, and graphs are opened by --open alone
--lock | | --locks | who waits for locks is shown by --locks
--remote-store-address --node --config-path | value | flame-bpf service --parca http://localhost:7070 | profiles are sent to servers by service
--stack-storage-size | value | | stacks have no table of fixed size here
--cgroupmap -G | value | flame-bpf -d 10 --cgroup PATH | cgroups are named by their paths
--native --idle --gil | | | native frames are always shown, and threads that wait with --off-cpu or --wall
--subprocesses | | --children | children are sampled with --children
--format --output-format --fmt | value | flame-bpf -p PID -d 10 -o profile.speedscope.json | the name of the output tells its format
--memory | | --alloc | who allocates memory is shown by --alloc";

/// Letters that may follow `d` in one word of bcc's `profile` and its kin: its flags.
pub(super) const BCC_LETTERS: &str = "adfIKUpLFcC";
