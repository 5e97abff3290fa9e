//! The constants fixed at load.
#![expect(
    unsafe_code,
    reason = "a static that user space overwrites before the load"
)]

use profiler_common::abi::{
    CallChoice, Config, FaultLayout, FileLayout, MappingLayout, Switches, TargetKind, TaskLayout,
};

/// Overwritten by user space in the object's read-only section before the programs are loaded; the
/// values here are never seen by a running program.
#[unsafe(no_mangle)]
static CONFIG: Config = Config {
    seed: 0,
    switches: Switches(0),
    target: TargetKind::All as u32,
    namespace_inum: 0,
    tally_capacity: 0,
    tally_index_mask: 0,
    stack_blocks: 0,
    stack_index_mask: 0,
    states: 0,
    switch_cpu_slots: 0,
    cpus: 0,
    weighed: 0,
    shortest_ns: 0,
    longest_ns: 0,
    look_period_ns: 0,
    calls: CallChoice {
        wanted: 0,
        weight: 0,
        kinds: 0,
        reserved: 0,
    },
    layout: TaskLayout {
        task_pid: 0,
        task_tgid: 0,
        task_group_leader: 0,
        task_thread_pid: 0,
        task_start_boottime: 0,
        task_self_exec_id: 0,
        task_state: 0,
        task_on_cpu: 0,
        task_flags: 0,
        task_comm: 0,
        task_ran: 0,
        task_ran_before: 0,
        pid_level: 0,
        pid_numbers: 0,
        upid_bytes: 0,
        upid_nr: 0,
        upid_ns: 0,
        namespace_inum: 0,
    },
    mapping: MappingLayout {
        task_mm: 0,
        mm_root: 0,
        node_pivots: 0,
        node_slots: 0,
        gap_node_slots: 0,
        vma_start: 0,
        vma_flags: 0,
        vma_offset: 0,
        vma_private: 0,
        file_inode: 0,
        inode_super: 0,
        inode_number: 0,
        inode_seconds: 0,
        inode_nanoseconds: 0,
        super_device: 0,
        mm_changes: 0,
        file_path: 0,
        entry_parent: 0,
        entry_name: 0,
        mount_part: 0,
        mount_parent: 0,
        mount_point: 0,
        mount_root: 0,
    },
    files: FileLayout {
        task_files: 0,
        files_table: 0,
        table_room: 0,
        table_files: 0,
        file_inode: 0,
        file_dentry: 0,
        inode_mode: 0,
        dentry_name: 0,
    },
    faults: FaultLayout {
        task_switches: 0,
        task_unhandled: 0,
    },
};

/// Reads one field of the configuration. A macro, because each read must name its field as a place:
/// the verifier then sees a constant behind each.
macro_rules! config {
    ($($field:ident).+) => { $crate::platform::config::load(|config| &raw const (*config).$($field).+) };
}
pub(crate) use config;

/// Reads what `field` points at, without letting the compiler know the value that stands above.
#[inline(always)]
pub(crate) fn load<T: Copy>(field: impl FnOnce(&'static Config) -> *const T) -> T {
    // SAFETY: `field` points into CONFIG, which lives for ever and which nobody writes after load.
    unsafe { field(&CONFIG).read_volatile() }
}

/// Whether a switch is on.
#[inline(always)]
pub(crate) fn has(switch: Switches) -> bool {
    config!(switches).has(switch)
}
