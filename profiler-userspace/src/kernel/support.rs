//! Features of this kernel, determined once at the start.

use super::btf::Btf;
use super::layout::{fault_layout, layout, structs};
use super::shared::TypeInformation;
use crate::cgroups::HierarchyKind;
use crate::probe::{Io, PageFaults};
use profiler_common::abi::{
    CgroupLayout, FaultLayout, FileKinds, FileLayout, MappingLayout, TaskLayout,
};
use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// The inode number of the initial PID namespace (`include/linux/proc_ns.h`, `PROC_PID_INIT_INO`).
const INITIAL_PID_NAMESPACE: u32 = 0xefff_fffc;

/// The result.
#[derive(Clone, Debug)]
pub struct Support {
    /// Where fields are in the kernel's structs; none without type information.
    pub layout: Option<TaskLayout>,
    /// Where the kernel keeps mappings; none if they are not in a maple tree (before Linux 6.1), or without
    /// type information.
    pub mapping: Option<MappingLayout>,
    /// Where the kernel keeps open files; none without type information.
    pub files: Option<FileLayout>,
    /// Where the kernel keeps whether a page fault has to wait; otherwise what is missing to watch page
    /// faults.
    pub faults: Result<FaultLayout, String>,
    /// Where the kernel keeps a task's cgroups; none without type information.
    pub cgroups: Option<CgroupLayout>,
    /// The numbers of the controllers of cgroups.
    pub controllers: Vec<(String, u32)>,
    /// Whether the helper `bpf_loop` exists (Linux 5.17); unknown without type information.
    pub bpf_loop: Option<bool>,
    /// Whether the tracepoint `sched_switch` reports the state in which a thread leaves (Linux 5.18); unknown
    /// without type information.
    pub switch_tells_state: Option<bool>,
    /// The inode number of our PID namespace, if it is not the initial one.
    pub pid_namespace: Option<u32>,
    /// All task IDs are below this.
    pub task_ids: u32,
    /// Whether programs with subprograms may go on in others. Where programs are not compiled, they may not
    /// (`check_helper_call` in `kernel/bpf/verifier.c`).
    pub tail_calls: bool,
}

impl Support {
    /// Whether the kernel half can find mappings, which unwind tables and names of ended processes need.
    pub fn can_find_mappings(&self) -> bool {
        self.mapping.is_some() && self.bpf_loop != Some(false)
    }

    /// Whether the kernel half can find a thread's own memory, by which interpreters' frames are found.
    pub(super) fn thread_pointer(&self) -> bool {
        let layout = self.layout.as_ref();
        layout.is_some_and(|layout| layout.task_thread_pointer != 0)
    }

    /// Where a task's set of cgroups names that of this hierarchy; none if cgroups cannot be told apart.
    pub(super) fn cgroup_in_set(&self, kind: &HierarchyKind) -> Option<u32> {
        let layout = self.cgroups?;
        match kind {
            HierarchyKind::Unified => Some(layout.set_unified),
            HierarchyKind::Controller(name) => {
                // As they are called where they are mounted.
                let name = if name == "blkio" { "io" } else { name };
                let constant = format!("{name}_cgrp_id");
                let mut controllers = self.controllers.iter();
                let (_, number) = controllers.find(|(known, _)| *known == constant)?;
                Some(layout.set_controllers + 8 * number)
            }
        }
    }

    /// Which page faults are watched, of those that are wanted.
    pub(super) fn page_faults(&self, io: Option<&Io>) -> PageFaults {
        let wanted = io.is_some_and(|io| io.kinds.has(FileKinds::FILES)) && self.mapping.is_some();
        match &self.faults {
            Ok(layout) if wanted && layout.task_switches != 0 => PageFaults::Waiting,
            Ok(_) if wanted => PageFaults::Major,
            _ => PageFaults::None,
        }
    }

    /// Asks the running kernel. Nothing here fails: what cannot be determined is absent.
    pub fn detect() -> Self {
        let bytes = TypeInformation::read();
        let btf = bytes.as_deref().ok().and_then(Btf::parse);
        let structs = btf.as_ref().map(structs);
        let mapping = structs.as_ref().and_then(layout);
        let faults = match (btf.as_ref().zip(structs.as_ref()), mapping) {
            (Some((btf, structs)), Some(_)) => fault_layout(btf, structs),
            (Some(_), None) => Err(
                "a maple tree of mappings (Linux 6.1), by which their files are found".to_owned(),
            ),
            (None, _) => Err("type information (CONFIG_DEBUG_INFO_BTF)".to_owned()),
        };
        let namespace = fs::metadata("/proc/self/ns/pid").ok();
        Self {
            layout: structs.as_ref().and_then(layout),
            mapping,
            faults,
            files: structs.as_ref().and_then(layout),
            cgroups: structs.as_ref().and_then(layout),
            controllers: btf.as_ref().map_or_else(Vec::new, |btf| {
                let all = btf.constants("cgroup_subsys_id").into_iter();
                all.map(|(name, number)| (name.to_owned(), number))
                    .collect()
            }),
            bpf_loop: btf.as_ref().map(|btf| btf.has_name("BPF_FUNC_loop")),
            switch_tells_state: btf.as_ref().and_then(switch_tells_state),
            pid_namespace: namespace
                .and_then(|metadata| u32::try_from(metadata.ino()).ok())
                .filter(|&inode| inode != INITIAL_PID_NAMESPACE),
            task_ids: fs::read_to_string("/proc/sys/kernel/pid_max")
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(MAX_TASK_IDS)
                .min(MAX_TASK_IDS),
            tail_calls: fs::read_to_string("/proc/sys/net/core/bpf_jit_enable")
                .map_or(true, |text| text.trim() != "0"),
        }
    }
}

/// See [`Support::switch_tells_state`].
fn switch_tells_state(btf: &Btf<'_>) -> Option<bool> {
    /// A helper of Linux 6.1, whose name is found faster than the tracepoint's type.
    const LATER: &str = "BPF_FUNC_ktime_get_tai_ns";
    if btf.has_name(LATER) {
        return Some(true);
    }
    Some(btf.tracepoint_arguments("sched_switch")? > 3)
}

/// The largest `kernel.pid_max` there can be (`include/linux/threads.h`, `PID_MAX_LIMIT`).
const MAX_TASK_IDS: u32 = 4 << 20;
