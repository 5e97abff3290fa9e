//! Texts of the help other than those of the flags: examples, and how to read a graph.

use clap::{Arg, Command};
use std::ffi::OsString;

/// The usage in the short help, where the commands have lines of their own.
const BRIEF_USAGE: &str = "flame-bpf [OPTIONS] [DURATION] [-- COMMAND [ARGS]...]
       flame-bpf COMMAND [OPTIONS]";

/// The flags that the short help shows, and their words where ours are too many for a line.
const BRIEF: &str = "\
pid
name: Sample processes of this name, and their children to come
all
duration: Stop after 10, 0.5, 500ms, 2m ... [default: Ctrl-C]
freq
event: Sample on this event [default: cycles or cpu-clock]
off_cpu: Show where threads wait, and for how long
wall: Show all time of every thread: running, blocked, waiting for a CPU
io: Show who reads and writes files: latency [default], bytes, count
syscalls
locks: Show who waits for locks: kernel, user, or all [default]
alloc
user_stacks_only
kernel_stacks_only
per_thread
output: Write .svg, .html, .txt, .folded, .pb.gz, .json, .fbpf ... by the name
folded
report: Write a text report to stdout
focus: Show only samples with a frame that matches. Repeatable
quiet
verbose: Print more; -vv and -vvv still more
help: Print this; --help prints all options
version";

/// Examples of the short help.
const BRIEF_EXAMPLES: &str = "\
Examples:
  sudo flame-bpf -p 1234 -d 10             one process for 10 s: flamegraph.svg
  sudo flame-bpf -d 10 -o all.html         the whole machine
  sudo flame-bpf top                       the same on the terminal, live
  sudo flame-bpf -F 997 -- make -j8        a command and its children
  sudo flame-bpf -a -d 10 -o x.fbpf        record now ...
  flame-bpf render x.fbpf -o x.svg         ... draw later, on any machine

All options: flame-bpf --help. Of one command: flame-bpf help top.";

/// Flags of files, by their IDs: what records without writing any refuses them.
const OF_FILES: [&str; 12] = [
    "output",
    "folded",
    "open",
    "source",
    "report",
    "min",
    "peek",
    "columns",
    "flamechart",
    "resolution",
    "off_cpu_output",
    "kernel_lines",
];

/// Flags that the live view refuses beside those, or has no use for.
const NOT_LIVE: [&str; 3] = ["window", "root_per", "live"];

/// A flag as the help of a service shows it: not at all if it is refused.
pub(super) fn in_service(arg: Arg) -> Arg {
    let is_refused = OF_FILES.iter().any(|id| arg.get_id() == id);
    arg.hide(is_refused)
}

/// A flag as the help of the live view shows it: not at all if it is refused.
pub(super) fn in_top(arg: Arg) -> Arg {
    let is_refused = OF_FILES
        .iter()
        .chain(&NOT_LIVE)
        .any(|id| arg.get_id() == id);
    arg.hide(is_refused)
}

/// Whether a command line asks for the short help of recordings.
pub(super) fn is_short(arguments: &[OsString]) -> bool {
    arguments.len() == 2 && arguments[1] == "-h"
}

/// The command line as the short help shows it, on one screen.
pub(super) fn brief(command: Command) -> Command {
    let shown = |arg: Arg| {
        let mut rows = BRIEF
            .lines()
            .map(|row| row.split_once(": ").unwrap_or((row, "")));
        let words = rows.find_map(|(id, words)| (arg.get_id() == id).then_some(words));
        let arg = arg.help_heading(None::<&'static str>);
        match words {
            Some("") => arg,
            Some(words) => arg.help(words),
            None => arg.hide(true),
        }
    };
    let mut command = command;
    // Makes the flags that clap adds.
    command.build();
    command
        .mut_args(shown)
        .mut_subcommands(|command| match command.get_name() {
            "top" => command.about("Show where time goes on the terminal, live"),
            "render" => command.about("Draw recordings, and profiles of other tools"),
            "diff" => command.about("Compare recordings: what changed, and what is noise"),
            "service" => command.about("Record without end, send windows to servers"),
            "annotate" => command.about("Show a function's instructions, with samples"),
            "doctor" => command.about("Say what can be recorded here, and what mends the rest"),
            _ => command.hide(true),
        })
        .override_usage(BRIEF_USAGE)
        .after_help(BRIEF_EXAMPLES)
}

/// Commands that work as they stand, with a PID put in.
pub(super) const EXAMPLES: &str = "\
Examples:
  sudo flame-bpf -p 1234 -d 10             one process for 10 s: flamegraph.svg
  sudo flame-bpf -d 10 -o all.svg          the whole machine
  sudo flame-bpf top                       the same on the terminal, live; ? for help, q to end
  sudo flame-bpf -n nginx -d 30            all processes of a name, and their children to come
  sudo flame-bpf -F 997 -- make -j8        a command and its children
  sudo flame-bpf -fK 10 | grep ext4        kernel stacks as folded text
  sudo flame-bpf --off-cpu -p 1234 -d 10   where its threads wait, and for how long
  sudo flame-bpf --off-wake -p 1234 -d 10  where they wait, and who woke them
  sudo flame-bpf --wall -p 1234 -d 10      all of their time, running and waiting
  sudo flame-bpf -e page-faults -p 1234    every page fault, until Ctrl-C
  sudo flame-bpf -e uprobe:libc:malloc -p 1234 -d 10      who calls a function
  sudo flame-bpf -e cycles -e page-faults -p 1234 -d 10   two graphs of one run
  sudo flame-bpf --alloc -p 1234 -d 10     who allocates memory
  sudo flame-bpf --io=bytes --io-files -p 1234 -d 10      who reads and writes which files
  sudo flame-bpf -a -d 10 -o x.fbpf        record now ...
  flame-bpf render x.fbpf -o x.svg         ... draw later, on any machine
  sudo flame-bpf -a --window 10s -o day.fbpf              record until Ctrl-C ...
  flame-bpf render day.fbpf --from 14:05 --to 14:10       ... draw five minutes of it
  flame-bpf diff before.fbpf after.fbpf -o d.svg          what changed, and what is noise
  flame-bpf annotate x.fbpf work --source src             instructions, with samples and source
  sudo flame-bpf annotate vfs_read -a -d 5                the same of the kernel, recorded now

If stdout is a pipe or a file and no output is named, folded stacks go there; messages go to stderr.
Needs Linux 5.15, and root or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.

Exit status: 0 done, 1 failed or nothing sampled, 2 wrong usage, 130 stopped by a second Ctrl-C;
with -- COMMAND, the command's own; diff --fail-if: 3 met, 4 cannot tell.";

/// How to read what is written.
pub(super) const READING: &str = "\
Reading the graph: a frame is as wide as its share of the samples. The frame below called it; those
above were called by it; at the bottom is the process. Frames side by side are sorted by name, not
by time. Look for wide frames with nothing above them. Click a frame to zoom, press Ctrl-F to
search. Names in brackets stand for what is not known.

Folded stacks: `process;main;work 42`, from the root to the leaf, and how much was sampled there.";
