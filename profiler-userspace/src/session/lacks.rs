//! Parts of a plan that this machine cannot do, or only partly.
//!
//! In: the plan, what the kernel supports, its settings. Out: [`Lack`]s, for the summary of a recording and for `doctor`. What is
//! refused altogether is an error, and not here.

use crate::kernel::Support;
use crate::machine::{self, Trouble};
use crate::plan::{CallGraph, Children, Event, Plan};
use crate::probe::Probe;
use profiler_common::abi::{FileKinds, MAX_KERNEL_FRAMES};
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::fs;

/// With fewer files, those of a machine's programs do not fit.
const FEW_FILES: u64 = 1024;

/// A part that is missing, and why.
#[derive(Clone, Debug)]
pub(super) struct Lack {
    /// Consequence for what is recorded.
    pub(super) lost: String,
    pub(super) trouble: Trouble,
}

impl fmt::Display for Lack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.lost, self.trouble)
    }
}

/// Parts of a plan that this kernel cannot do. `has_tables`: whether stacks are walked by unwind tables.
pub(super) fn lacks(plan: &Plan, support: &Support, has_tables: bool) -> Vec<Lack> {
    let mut lacks = Vec::new();
    let mut lack = |lost: String, trouble: Trouble| lacks.push(Lack { lost, trouble });
    if plan.children != Children::None && support.layout.is_none() {
        lack(
            "children that begin meanwhile are not followed".to_owned(),
            machine::type_information(),
        );
    }
    if !has_tables && plan.capture.user_stacks && plan.capture.call_graph == CallGraph::Auto {
        let most = match support.bpf_loop {
            Some(false) => ", 127 frames at most",
            _ => "",
        };
        lack(
            format!("user stacks are walked by frame pointers only{most}"),
            no_rows(support),
        );
    }
    if !support.tail_calls && plan.capture.user_stacks && plan.capture.runtimes {
        lack(
            "firings take several times as long".to_owned(),
            Trouble::setting("BPF programs are interpreted", "net.core.bpf_jit_enable", 1),
        );
    }
    let most = MAX_KERNEL_FRAMES as u64;
    if let Some(frames) = kernel_frames().filter(|&frames| frames < most)
        && plan.capture.kernel_stacks
    {
        lack(
            format!("kernel stacks end after {frames} frames"),
            Trouble::setting(
                format!("kernel.perf_event_max_stack is {frames}"),
                "kernel.perf_event_max_stack",
                most,
            ),
        );
    }
    if let Some(files) = getrlimit(Resource::Nofile)
        .current
        .filter(|&it| it < FEW_FILES)
    {
        lack(
            "files of programs that end meanwhile are not all kept open for their names".to_owned(),
            Trouble::descriptors(format!("this process may open no more than {files} files")),
        );
    }
    let reads_files =
        |event: &Event| matches!(&event.probe, Probe::Io(io) if io.kinds.has(FileKinds::FILES));
    if plan.events.iter().any(reads_files)
        && let Err(lacking) = &support.faults
    {
        let trouble = match support.layout {
            Some(_) => Trouble::advice(format!("this kernel lacks {lacking}"), "use a newer one"),
            None => machine::type_information(),
        };
        lack(
            "waits for pages of mapped files are not recorded".to_owned(),
            trouble,
        );
    }
    lacks
}

/// Why unwind tables cannot be used.
pub(super) fn no_rows(support: &Support) -> Trouble {
    if support.layout.is_none() {
        return machine::type_information();
    }
    let needs = match support.bpf_loop {
        Some(false) => "bpf_loop (Linux 5.17)",
        _ => "Linux 6.1",
    };
    Trouble::advice(format!("unwind tables need {needs}"), "use a newer kernel")
}

/// How many frames of a kernel stack the kernel gives.
fn kernel_frames() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_max_stack").ok()?;
    text.trim().parse().ok()
}
