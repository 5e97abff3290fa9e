//! The flags of a recording.
//!
//! In: nothing. Out: the flags, as clap reads them, and their help. What a single value may look like is in [`value`] and
//! [`event_spec`]; every rule that connects two flags, and every default, is in [`plan`](super::plan).

use super::chart::ChartArgs;
use super::flags::{CgroupArgs, LookArgs, NameArgs, OutputArgs, SelectArgs, cgroup_part};
use super::off_cpu::{OffCpuArgs, WaitSelection};
use super::{calls, event_spec, perf_event, value};
use crate::plan::CallGraph;
use crate::profile::cgroup::CgroupPart;
use crate::profile::select::Pattern;
use anyhow::Result;
use profiler_common::abi::MAX_EVENTS;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

// Not a doc comment, which would become the help of the whole command.
#[derive(Debug, clap::Args)]
pub(super) struct RecordArgs {
    // The duration. A list, so that stray words are ours to explain, and hidden, so that it does not
    // look like one.
    #[arg(value_name = "DURATION", hide = true, allow_negative_numbers = true)]
    pub(super) words: Vec<OsString>,
    /// Run COMMAND and sample it with its children; with -a, -p, -n or -t, sample those until it ends
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
    #[command(flatten)]
    pub(super) scope: ScopeArgs,
    #[command(flatten)]
    pub(super) sampling: SamplingArgs,
    #[command(flatten)]
    pub(super) off_cpu: OffCpuArgs,
    #[command(flatten)]
    pub(super) calls: calls::CallArgs,
    #[command(flatten)]
    pub(super) stacks: StackArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) chart: ChartArgs,
    /// Write a window of the raw recording every 10s, 1m ...; `render --from --to` picks some
    #[arg(
        long, value_name = "DURATION", value_parser = value::window, allow_negative_numbers = true,
        help_heading = "Output"
    )]
    pub(super) window: Option<Duration>,
    #[command(flatten)]
    pub(super) select: SelectArgs,
    #[command(flatten)]
    pub(super) names: NameArgs,
    /// Show file and line of kernel frames (needs this kernel's debug information, or --debuginfod)
    #[arg(long, help_heading = "Names")]
    pub(super) kernel_lines: bool,
    #[command(flatten)]
    pub(super) look: LookArgs,
    /// Show it on the terminal while it goes on, as `flame-bpf top` does; `s` saves what is seen
    #[arg(long, help_heading = "Output")]
    pub(super) live: bool,
    #[command(flatten)]
    pub(super) running: RunningArgs,
}

impl RecordArgs {
    /// Whether samples are taken at a rate, alone or beside something else; an error where flags do not go together.
    pub(super) fn takes_samples(&self) -> Result<bool> {
        let is_sampled = !matches!(self.off_cpu.asked()?, WaitSelection::Alone(_));
        Ok(is_sampled && self.calls.probe()?.is_none())
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Target")]
pub(super) struct ScopeArgs {
    /// Sample these processes, with all their threads
    #[arg(short, long, value_name = "PID[,PID]", value_parser = value::pids, allow_negative_numbers = true)]
    pub(super) pid: Vec<value::Ids>,
    /// Sample these threads
    #[arg(
        short, long, visible_short_alias = 'L', value_name = "TID[,TID]",
        value_parser = value::tids, allow_negative_numbers = true
    )]
    pub(super) tid: Vec<value::Ids>,
    /// Sample processes with this name, all of which the pattern must match, and their children to come. Repeatable
    #[arg(short, long, value_name = "NAME|REGEX", value_parser = Pattern::whole)]
    pub(super) name: Vec<Pattern>,
    /// Sample processes that run this file, and their children to come. Repeatable
    #[arg(long, value_name = "PATH")]
    pub(super) exe: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) cgroups: CgroupArgs,
    /// With -p, -n or --exe, sample children, too: those that run and those to come
    #[arg(long)]
    pub(super) children: bool,
    /// Sample the whole machine [default without a target]
    #[arg(short, long)]
    pub(super) all: bool,
    /// Sample on these CPUs only, such as 0-3,8
    #[arg(short = 'C', long, value_name = "LIST", value_parser = value::cpus, allow_negative_numbers = true)]
    pub(super) cpu: Option<value::Cpus>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub(super) struct SamplingArgs {
    /// Stop after 10, 0.5, 500ms, 2m ...; `-d` is optional [default: Ctrl-C or the target's end]
    #[arg(short, long, value_name = "DURATION", value_parser = value::duration, allow_negative_numbers = true)]
    pub(super) duration: Option<Duration>,
    /// Sample this many times a second on each CPU [default: 99]
    #[arg(short = 'F', long, value_name = "HZ", value_parser = value::frequency, allow_negative_numbers = true)]
    pub(super) freq: Option<u64>,
    /// Sample once every PERIOD occurrences of the event (nanoseconds for clocks)
    #[arg(short, long, value_name = "PERIOD", value_parser = value::period, allow_negative_numbers = true)]
    pub(super) count: Option<u64>,
    /// Sample on this event [default: cycles, or cpu-clock without hardware counters]. Repeatable, one output each
    #[arg(short, long, value_name = "NAME", value_parser = event_spec::parse, long_help = event_help())]
    pub(super) event: Vec<event_spec::EventSpec>,
    /// Sample every page fault: -e page-faults
    #[arg(long, conflicts_with_all = ["event", "context_switches"])]
    pub(super) page_faults: bool,
    /// Sample every context switch: -e context-switches
    #[arg(long, conflicts_with = "event")]
    pub(super) context_switches: bool,
}

impl ScopeArgs {
    /// Whether anything is said of what to sample.
    pub(super) fn is_said(&self) -> bool {
        let Self {
            pid,
            tid,
            name,
            exe,
            cgroups,
            children,
            all,
            cpu,
        } = self;
        let named = !(pid.is_empty() && tid.is_empty() && name.is_empty() && exe.is_empty());
        named || !cgroups.patterns().is_empty() || *children || *all || cpu.is_some()
    }
}

impl SamplingArgs {
    /// Whether anything is said of how.
    pub(super) fn is_said(&self) -> bool {
        let Self {
            duration,
            freq,
            count,
            event,
            page_faults,
            context_switches,
        } = self;
        let numbers = duration.is_some() || freq.is_some() || count.is_some();
        numbers || !event.is_empty() || *page_faults || *context_switches
    }

    /// Takes samples at this rate where nothing else was said, if there is a rate.
    pub(super) fn settle_rate(&mut self, hz: u64) {
        let is_said = self.freq.is_some() || self.count.is_some() || !self.event.is_empty();
        if !(is_said || self.page_faults || self.context_switches) {
            self.freq = Some(hz);
        }
    }
}

fn event_help() -> String {
    format!(
        "Sample on this event [default: cycles, or cpu-clock without hardware counters]\n\n\
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
pub(super) struct StackArgs {
    /// Record user stacks only
    #[arg(short = 'U', long)]
    pub(super) user_stacks_only: bool,
    /// Record kernel stacks only
    #[arg(short = 'K', long)]
    pub(super) kernel_stacks_only: bool,
    /// Walk user stacks by unwind tables (dwarf), frame pointers (fp), or either (auto) [default: auto]
    #[arg(long, value_name = "HOW", value_parser = value::call_graph)]
    pub(super) call_graph: Option<CallGraph>,
    /// Keep samples of idle CPUs (whole machine only)
    #[arg(short = 'I', long)]
    pub(super) include_idle: bool,
    /// Show the stacks of flame-bpf itself, which otherwise is one frame
    #[arg(long)]
    pub(super) include_self: bool,
    /// Show native frames alone, not the functions that runtimes run (Java, Node, Python, perl, PHP, Ruby, Lua)
    #[arg(long)]
    pub(super) no_runtimes: bool,
    /// In code of no file, where frame pointers end, do not look for callers in the stack's words
    #[arg(long)]
    pub(super) no_guess: bool,
    /// Separate threads
    #[arg(long)]
    pub(super) per_thread: bool,
    /// Separate CPUs
    #[arg(long)]
    pub(super) per_cpu: bool,
    /// Begin stacks with the container, unit, pod or cgroup
    #[arg(long, value_name = "container|unit|pod|cgroup", value_parser = root_per)]
    pub(super) root_per: Option<CgroupPart>,
}

fn root_per(text: &str) -> Result<CgroupPart, String> {
    cgroup_part(text).ok_or_else(|| "say container, unit, pod or cgroup".to_owned())
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Running")]
pub(super) struct RunningArgs {
    /// Run COMMAND as this user [without a name: whoever called sudo]
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true)]
    #[expect(
        clippy::option_option,
        reason = "clap's way to say that the value may be left out"
    )]
    pub(super) as_user: Option<Option<String>>,
    /// Print only warnings and errors
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Print BPF programs, counters, unwind tables and cut stacks (-vv: their addresses; -vvv: why, as logged by
    /// the kernel half)
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// Lower the rate, and look at fewer waits, to keep to this share of one CPU, such as 1%; samples weigh their period
    #[arg(long, value_name = "PERCENT", value_parser = value::share_of_cpu)]
    pub(super) max_overhead: Option<f64>,
    /// Limit the memory of this process and its BPF maps, 96 or more: caches are given up, then unwind tables
    #[arg(long, value_name = "MIB", value_parser = value::all_memory)]
    pub(super) max_memory: Option<u32>,
    /// Limit the BPF maps' memory; raise it if samples are lost [default: 32]
    #[arg(long, value_name = "MIB", value_parser = value::mebibytes)]
    pub(super) map_memory: Option<u32>,
    /// Limit the memory of unwind tables in the kernel [default: 256]
    #[arg(long, value_name = "MIB", value_parser = value::mebibytes)]
    pub(super) max_unwind_memory: Option<u32>,
}
