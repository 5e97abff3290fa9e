//! The command line: its flags, and the help that documents them.
//!
//! In: the arguments of the process. Out: a [`Plan`], or the text and exit code with which to end.
//! Never: prints, ends the process, or looks at the machine.
//!
//! Here are the flags alone. What a single value may look like is in [`value`] and [`event`]; every
//! rule that connects two flags, and every default, is in [`plan`]; answers to flags that people
//! know from other profilers are in [`habits`].

mod calls;
mod habits;
mod off_cpu;
mod perf_event;
mod plan;
mod render;
mod show_names;
mod show_unwind;
mod trigger;
mod value;

pub use render::parse_render;
pub use show_names::ShowNames;
pub use show_unwind::ShowUnwind;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser as _;
use clap::error::{ContextKind, ErrorKind};

use crate::output::{MinWidth, Palette};
use crate::plan::{CallGraph, Plan};
use crate::symbolize::SymbolMemory;
use profiler_common::abi::MAX_EVENTS;

/// Reads the command line, the program's own name first.
///
/// # Errors
/// What to print, and the exit code to end with, where there is nothing to record: help that was
/// asked for, or a command line that cannot be obeyed.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    stdout_is_terminal: bool,
) -> Result<Plan, Exit> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    read(&arguments, stdout_is_terminal).map_err(|exit| {
        if exit.code == 0 {
            return exit;
        }
        let typed = arguments.get(1..).unwrap_or_default();
        let accepted = |spelling: &[OsString]| {
            let program = arguments.iter().take(1);
            let whole: Vec<OsString> = program.chain(spelling).cloned().collect();
            read(&whole, stdout_is_terminal).is_ok()
        };
        habits::advice(typed, accepted).map_or(exit, |advice| Exit::usage(&advice))
    })
}

/// [`parse`], without advice.
fn read(arguments: &[OsString], stdout_is_terminal: bool) -> Result<Plan, Exit> {
    let args = Args::try_parse_from(arguments).map_err(Exit::from_clap)?;
    if args.command.is_empty() && arguments.iter().any(|argument| argument == "--") {
        return Err(Exit::usage("there is no command behind `--`"));
    }
    plan::build(args, stdout_is_terminal).map_err(|error| Exit::usage(&format!("{error:#}")))
}

/// How to end instead of recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// What to print: on stdout where `code` is 0, on stderr otherwise. Ends with a newline.
    pub text: String,
    /// The exit code: 0 for help and the version, 2 for a command line that cannot be obeyed.
    pub code: u8,
}

impl Exit {
    fn usage(sentence: &str) -> Self {
        Self {
            text: format!("error: {sentence}\n\nFor more information, try '--help'.\n"),
            code: 2,
        }
    }

    fn from_clap(mut error: clap::Error) -> Self {
        // A tip to put the flag behind `--`, where it would be run as a command.
        error.remove(ContextKind::Suggested);
        let code = match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
            _ => 2,
        };
        Self {
            text: error.render().to_string(),
            code,
        }
    }
}

/// Shows where time goes on a running Linux machine: samples stacks, counts them in the kernel, and
/// draws a flame graph.
#[derive(Debug, clap::Parser)]
#[command(
    name = "flame-bpf",
    version,
    override_usage = "flame-bpf [OPTIONS] [DURATION] [-- COMMAND [ARGS]...]",
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{READING}"),
    max_term_width = 120
)]
struct Args {
    // The duration. A list, so that stray words are ours to explain, and hidden, so that it does not
    // look like one.
    #[arg(value_name = "DURATION", hide = true, allow_negative_numbers = true)]
    words: Vec<OsString>,
    /// Run COMMAND and sample it with its children; with -a, -p or -t, sample those until it ends
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    off_cpu: off_cpu::OffCpuArgs,
    #[command(flatten)]
    calls: calls::CallArgs,
    #[command(flatten)]
    stacks: StackArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    windows: WindowArgs,
    #[command(flatten)]
    names: NameArgs,
    #[command(flatten)]
    of_kernel: KernelNameArgs,
    #[command(flatten)]
    look: LookArgs,
    #[command(flatten)]
    running: RunningArgs,
}

const EXAMPLES: &str = "\
Examples:
  sudo flame-bpf -p 1234 -d 10             one process for 10 s: flamegraph.svg
  sudo flame-bpf -d 10 -o all.svg          the whole machine
  sudo flame-bpf -p $(pgrep -d, nginx) 30  every process of a name, for 30 s
  sudo flame-bpf -F 997 -- make -j8        a command with its children, in detail
  sudo flame-bpf -a -- sleep 10            the whole machine while a command runs
  sudo flame-bpf -fK 10 | grep ext4        kernel stacks as text, one to a line
  sudo flame-bpf -e page-faults -p 1234    every page fault, until Ctrl-C
  sudo flame-bpf -e uprobe:libc:malloc -p 1234 -d 10   who calls a function
  sudo flame-bpf -e cycles -e page-faults -p 1234 -d 10   two graphs of one run
  sudo flame-bpf --off-cpu -p 1234 -d 10   where its threads wait, and for how long
  sudo flame-bpf -p 1234 -o on.svg --off-cpu-output off.svg   where they run, and where they wait
  sudo flame-bpf --off-wake -p 1234 -d 10  where they wait, and who ends that
  sudo flame-bpf --wall -p 1234 -d 10      all of their time in one graph
  sudo flame-bpf -a -d 10 -o x.fbpf        record now, and name and draw it later:
  flame-bpf render x.fbpf -o x.svg         here, or where the debug files are
  sudo flame-bpf -a --window 10s -o day.fbpf   until Ctrl-C, to be looked at later:
  flame-bpf render day.fbpf --from 14:05 --to 14:10   what ran at that time
  sudo flame-bpf --alloc -p 1234 -d 10     who asks for memory
  sudo flame-bpf --io=bytes --io-files -p 1234   who reads and writes which files
  flame-bpf show-unwind FILE [ADDRESS]     the unwind table of a program's code
  flame-bpf show-names FILE                the names of addresses that come on stdin

Where stdout is a pipe or a file and no output is named, folded stacks go there and nothing else;
messages go to stderr. Needs Linux 5.15, and root or the capabilities CAP_BPF, CAP_PERFMON and
CAP_SYS_PTRACE.

Exit status: 0 done, 1 failed or nothing sampled, 2 wrong usage, 130 broken off by a second Ctrl-C;
with -- COMMAND, the command's own.";

const READING: &str = "\
Reading the graph: a frame is as wide as its share of what was sampled. It was called by the frame
below it, and called those above it; at the bottom is the process. Frames beside each other are
sorted by name, not by time. Look for wide frames with nothing above them. Click on one to enlarge
it, and search with Ctrl-F. Names in brackets stand for what is not known.

Folded stacks: `process;main;work 42`, from the root to the leaf, and how much was sampled there.";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Target")]
struct ScopeArgs {
    /// Sample these processes, all their threads included
    #[arg(short, long, value_name = "PID[,PID]", value_parser = value::pids, allow_negative_numbers = true)]
    pid: Vec<value::Ids>,
    /// Sample these threads
    #[arg(
        short, long, visible_short_alias = 'L', value_name = "TID[,TID]",
        value_parser = value::tids, allow_negative_numbers = true
    )]
    tid: Vec<value::Ids>,
    /// Sample the whole machine [default where no target is named]
    #[arg(short, long)]
    all: bool,
    /// Sample on these CPUs only, such as 0-3,8
    #[arg(short = 'C', long, value_name = "LIST", value_parser = value::cpus, allow_negative_numbers = true)]
    cpu: Option<value::Cpus>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
struct SamplingArgs {
    /// Stop after 10, 0.5, 500ms, 2m, ...; `-d` may be left out [default: at Ctrl-C or the target's end]
    #[arg(short, long, value_name = "DURATION", value_parser = value::duration, allow_negative_numbers = true)]
    duration: Option<Duration>,
    /// Sample this many times a second on each CPU [default: 99]
    #[arg(short = 'F', long, value_name = "HZ", value_parser = value::frequency, allow_negative_numbers = true)]
    freq: Option<u64>,
    /// Sample once every PERIOD occurrences of the event (nanoseconds for clocks)
    #[arg(short, long, value_name = "PERIOD", value_parser = value::period, allow_negative_numbers = true)]
    count: Option<u64>,
    /// Sample on this event [default: cycles where the processor counts them, else cpu-clock]. Repeatable: each gets an
    /// output of its own
    #[arg(short, long, value_name = "NAME", value_parser = trigger::parse, long_help = event_help())]
    event: Vec<trigger::Trigger>,
    /// Sample every page fault: -e page-faults
    #[arg(long, conflicts_with_all = ["event", "context_switches"])]
    page_faults: bool,
    /// Sample every context switch: -e context-switches
    #[arg(long, conflicts_with = "event")]
    context_switches: bool,
}

fn event_help() -> String {
    format!(
        "Sample on this event [default: cycles where the processor counts them, else cpu-clock]\n\n\
         {}\n\n\
         Without -F or -c, clocks and events of the processor are sampled at 99 Hz; the other events of \
         the kernel, such as page-faults, are all kept, as with -c 1.\n\n\
         Tracepoints of the kernel, every one counted: CATEGORY:NAME, such as sched:sched_switch.\n\n\
         Functions of programs and libraries, every call counted: uprobe:FILE:FUNCTION, such as \
         uprobe:libc:malloc or uprobe:/usr/bin/bash:readline. FILE is a path, or the name of a file that \
         the target has mapped.\n\n\
         Up to {MAX_EVENTS} -e may be given, of any kind: all are recorded in one run, each into a graph of its own. \
         Give one -o for each, in the same order, or one alone: -o x.svg writes x.page-faults.svg, x.cycles.svg and \
         so on. -F and -c are about each event; tracepoints and functions know no rate.",
        perf_event::list()
    )
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Stacks")]
struct StackArgs {
    /// Record user stacks only
    #[arg(short = 'U', long)]
    user_stacks_only: bool,
    /// Record kernel stacks only
    #[arg(short = 'K', long)]
    kernel_stacks_only: bool,
    /// Walk user stacks by unwind rows (dwarf), frame pointers (fp), or as each program allows [default: auto]
    #[arg(long, value_name = "HOW", value_parser = value::call_graph)]
    call_graph: Option<CallGraph>,
    /// Keep samples of idle CPUs, which are only counted otherwise (whole machine only)
    #[arg(short = 'I', long)]
    include_idle: bool,
    /// Tell threads apart
    #[arg(long)]
    per_thread: bool,
    /// Tell CPUs apart
    #[arg(long)]
    per_cpu: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Write to FILE: a flame graph (.svg), folded stacks (.folded; `-` for stdout), or a raw recording (.fbpf)
    /// that `flame-bpf render` names and draws later. Repeatable
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Write folded stacks to stdout, as -o - does
    #[arg(short, long)]
    folded: bool,
    /// Put a frame `-` between user and kernel frames
    #[arg(long)]
    delimited: bool,
    /// Mark kernel frames with _[k] and code made at run time with _[j] in folded text
    #[arg(long)]
    annotate: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct WindowArgs {
    /// Write what was recorded each 10s, 1m, ... to the raw recording as it goes on; `render --from --to` chooses
    #[arg(long, value_name = "DURATION", value_parser = value::window, allow_negative_numbers = true)]
    window: Option<Duration>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Names")]
struct NameArgs {
    /// Look for debug files in DIR first, laid out as /usr/lib/debug is. Repeatable
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// Fetch debug files that are not here from the servers at URLS, or else from those in DEBUGINFOD_URLS or
    /// /etc/debuginfod [default: from those in DEBUGINFOD_URLS, if it is set]
    #[arg(
        long, value_name = "URLS", num_args = 0..=1, require_equals = true, default_missing_value = "",
        hide_default_value = true
    )]
    debuginfod: Option<String>,
    /// Show functions that were compiled into others as frames of their own, marked _[i] in folded text
    #[arg(long)]
    inline: bool,
    /// Show the file and line of each frame of programs
    #[arg(long)]
    lines: bool,
    /// Leave out template and generic arguments: std::vector::push_back
    #[arg(long, conflicts_with = "no_demangle")]
    simplify: bool,
    /// Leave names as the linker knows them: _ZN4core3fmt5write17h01234567E
    #[arg(long)]
    no_demangle: bool,
    /// Hold this much memory at once for naming at most, 64 or more; debug information that takes more is read in
    /// parts [default: 256]
    #[arg(long, value_name = "MIB", value_parser = value::symbol_memory)]
    max_symbol_memory: Option<SymbolMemory>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Names")]
struct KernelNameArgs {
    /// Show the file and line of each frame of the kernel, too, where the debug information of this very kernel is
    /// installed or --debuginfod fetches it
    #[arg(long)]
    kernel_lines: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Look of the flame graph")]
struct LookArgs {
    /// Title [default: what was sampled, event, rate, duration and host]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Second line under the title
    #[arg(long, value_name = "TEXT")]
    subtitle: Option<String>,
    /// Width of the image [default: as wide as the window]
    #[arg(long, alias = "image-width", value_name = "PIXELS", value_parser = value::pixels)]
    width: Option<u32>,
    /// Height of each frame [default: 16]
    #[arg(long, value_name = "PIXELS", value_parser = value::pixels)]
    height: Option<u32>,
    /// Leave out frames narrower than this many pixels, or than a share such as 0.5% [default: 0.1]
    #[arg(long, value_name = "PIXELS")]
    minwidth: Option<MinWidth>,
    // The help is made from the list of palettes.
    #[arg(long, aliases = ["color", "palette"], value_name = "NAME", help = colors_help())]
    colors: Option<Palette>,
    /// Grow downward, as icicles do
    #[arg(long)]
    inverted: bool,
    /// Merge stacks from the leaves, to see who calls the busiest functions
    #[arg(long)]
    reverse: bool,
}

impl LookArgs {
    /// One of the flags that were given, if any was.
    fn first_flag(&self) -> Option<&'static str> {
        let given = [
            ("--title", self.title.is_some()),
            ("--subtitle", self.subtitle.is_some()),
            ("--width", self.width.is_some()),
            ("--height", self.height.is_some()),
            ("--minwidth", self.minwidth.is_some()),
            ("--colors", self.colors.is_some()),
            ("--inverted", self.inverted),
            ("--reverse", self.reverse),
        ];
        given
            .into_iter()
            .find(|(_, given)| *given)
            .map(|(flag, _)| flag)
    }
}

fn colors_help() -> String {
    let names: Vec<_> = Palette::names().collect();
    format!(
        "Palette [default: {}; {} for waits, {} with --wall]: {}",
        Palette::default(),
        Palette::COLD,
        Palette::WALL,
        names.join(", ")
    )
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Running")]
struct RunningArgs {
    /// Say nothing but warnings and errors
    #[arg(short, long)]
    quiet: bool,
    /// Say more: the BPF programs, every counter, unwind tables, where stacks were cut short (with -vv, at which address)
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Let the BPF maps take this much memory at most; more where samples were LOST [default: 32]
    #[arg(long, value_name = "MIB", value_parser = value::mebibytes)]
    map_memory: Option<u32>,
    /// Let unwind tables take this much memory in the kernel at most; used as needed [default: 256]
    #[arg(long, value_name = "MIB", value_parser = value::mebibytes)]
    max_unwind_memory: Option<u32>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Args::command().debug_assert();
    }
    /// Words that bring the parser, and the answers to habits, to every corner.
    fn word() -> impl Strategy<Value = String> {
        let flags = "--?(-|p|pid|d|dfK|adf|F|e|o|t|g|r|call-graph|title|é)(=?[0-9a-z.,:-]{0,4})";
        prop_oneof![
            flags,
            "(record|top|sleep|10|0|max|a\\.svg|cycles:u|nginx|-|é)",
            any::<String>()
        ]
    }

    proptest! {
        #[test]
        fn whatever_is_typed_gets_a_plan_or_an_answer(words in prop::collection::vec(word(), 0..6)) {
            let program = std::iter::once("flame-bpf".to_owned());
            match parse(program.chain(words).map(OsString::from), true) {
                Ok(plan) => {
                    prop_assert!(plan.events.iter().all(|event| !event.outputs.is_empty()));
                    prop_assert!(!plan.events.is_empty());
                    prop_assert!(plan.target != crate::plan::Target::Launched || plan.launch.is_some());
                    prop_assert!(plan.launch.is_none_or(|command| !command.is_empty()));
                }
                Err(exit) => {
                    prop_assert!(exit.text.ends_with('\n'));
                    prop_assert!(exit.code == 2 || (exit.code == 0 && !exit.text.starts_with("error")));
                }
            }
        }
    }
}
