//! Where the running kernel keeps what the kernel half reads.
//!
//! In: the kernel's type information. Out: offsets of fields. Pure.

use super::btf::Btf;
use profiler_common::abi::{FaultLayout, FileLayout, MappingLayout, TaskLayout};
use profiler_common::walk::maple::{GAP_PIVOTS, PIVOTS};

/// Where fields of tasks, PIDs and namespaces lie; none if one is not found.
pub(super) fn task_layout(btf: &Btf<'_>) -> Option<TaskLayout> {
    let mut wanted = [
        ("task_struct", "pid", None),
        ("task_struct", "tgid", None),
        ("task_struct", "group_leader", None),
        ("task_struct", "thread_pid", None),
        ("task_struct", "start_boottime", None),
        ("task_struct", "self_exec_id", None),
        ("task_struct", "__state", None),
        ("task_struct", "on_cpu", None),
        ("task_struct", "flags", None),
        ("task_struct", "comm", None),
        ("task_struct", "se", None),
        ("sched_entity", "sum_exec_runtime", None),
        ("sched_entity", "prev_sum_exec_runtime", None),
        ("pid", "level", None),
        ("pid", "numbers", None),
        ("upid", "", None),
        ("upid", "nr", None),
        ("upid", "ns", None),
        ("pid_namespace", "ns", None),
        ("ns_common", "inum", None),
        ("task_struct", "real_start_time", None),
    ];
    btf.find(&mut wanted);
    let [
        task_pid,
        task_tgid,
        task_group_leader,
        task_thread_pid,
        task_start_boottime,
        task_self_exec_id,
        task_state,
        task_on_cpu,
        task_flags,
        task_comm,
        task_se,
        se_ran,
        se_ran_before,
        pid_level,
        pid_numbers,
        upid_bytes,
        upid_nr,
        upid_ns,
        namespace_ns,
        ns_inum,
        task_real_start_time,
    ] = wanted.map(|(.., offset)| offset);
    Some(TaskLayout {
        task_pid: task_pid?,
        task_tgid: task_tgid?,
        task_group_leader: task_group_leader?,
        task_thread_pid: task_thread_pid?,
        task_start_boottime: task_start_boottime.or(task_real_start_time)?,
        task_self_exec_id: task_self_exec_id?,
        task_state: task_state?,
        task_on_cpu: task_on_cpu?,
        task_flags: task_flags?,
        task_comm: task_comm?,
        task_ran: task_se? + se_ran?,
        task_ran_before: task_se? + se_ran_before?,
        pid_level: pid_level?,
        pid_numbers: pid_numbers?,
        upid_bytes: upid_bytes?,
        upid_nr: upid_nr?,
        upid_ns: upid_ns?,
        namespace_inum: namespace_ns? + ns_inum?,
    })
}

/// Where the fields lie that lead from an address to the file mapped there; none if one is not found, or
/// what the kernel half takes for granted is not so.
pub(super) fn mapping_layout(btf: &Btf<'_>) -> Option<MappingLayout> {
    let mut wanted = [
        ("task_struct", "mm", None),
        ("mm_struct", "mm_mt", None),
        ("maple_tree", "ma_root", None),
        ("maple_range_64", "pivot", None),
        ("maple_range_64", "slot", None),
        ("maple_arange_64", "pivot", None),
        ("maple_arange_64", "slot", None),
        ("vm_area_struct", "vm_start", None),
        ("vm_area_struct", "vm_end", None),
        ("vm_area_struct", "vm_flags", None),
        ("vm_area_struct", "vm_pgoff", None),
        ("vm_area_struct", "vm_file", None),
        ("vm_area_struct", "vm_private_data", None),
        ("file", "f_inode", None),
        ("inode", "i_sb", None),
        ("inode", "i_ino", None),
        ("super_block", "s_dev", None),
        ("file", "f_path", None),
        ("path", "mnt", None),
        ("path", "dentry", None),
        ("dentry", "d_parent", None),
        ("dentry", "d_name", None),
        ("qstr", "name", None),
        ("mount", "mnt", None),
        ("mount", "mnt_parent", None),
        ("mount", "mnt_mountpoint", None),
        ("vfsmount", "mnt_root", None),
        // Two numbers since Linux 6.11; before, a `struct timespec64`, whose name changed in 6.7.
        ("inode", "i_mtime_sec", None),
        ("inode", "i_mtime_nsec", None),
        ("inode", "__i_mtime", None),
        ("inode", "i_mtime", None),
        ("mm_struct", "mm_lock_seq", None),
    ];
    btf.find(&mut wanted);
    let [
        task_mm,
        mm_tree,
        tree_root,
        node_pivots,
        node_slots,
        gap_node_pivots,
        gap_node_slots,
        vma_start,
        vma_end,
        vma_flags,
        vma_offset,
        vma_file,
        vma_private,
        file_inode,
        inode_super,
        inode_number,
        super_device,
        file_path,
        path_mount,
        path_entry,
        entry_parent,
        entry_name,
        name_text,
        mount_part,
        mount_parent,
        mount_point,
        mount_root,
        seconds,
        nanoseconds,
        renamed_time,
        time,
        mm_changes,
    ] = wanted.map(|(.., offset)| offset);
    let (inode_seconds, inode_nanoseconds) = match (seconds, nanoseconds) {
        (Some(seconds), Some(nanoseconds)) => (seconds, nanoseconds),
        _ => {
            let time = renamed_time.or(time)?;
            (time, time + 8)
        }
    };
    let layout = MappingLayout {
        task_mm: task_mm?,
        mm_root: mm_tree? + tree_root?,
        node_pivots: node_pivots?,
        node_slots: node_slots?,
        gap_node_slots: gap_node_slots?,
        vma_start: vma_start?,
        vma_flags: vma_flags?,
        vma_offset: vma_offset?,
        vma_private: vma_private?,
        file_inode: file_inode?,
        inode_super: inode_super?,
        inode_number: inode_number?,
        inode_seconds,
        inode_nanoseconds,
        super_device: super_device?,
        mm_changes: mm_changes.unwrap_or(0),
        file_path: file_path? + path_mount?,
        entry_parent: entry_parent?,
        entry_name: entry_name? + name_text?,
        mount_part: mount_part?,
        mount_parent: mount_parent?,
        mount_point: mount_point?,
        mount_root: mount_root?,
    };
    let pivots = |slots: u32| (slots.checked_sub(layout.node_pivots)? / 8).try_into().ok();
    let as_expected = gap_node_pivots? == layout.node_pivots
        && pivots(layout.node_slots) == Some(PIVOTS)
        && pivots(layout.gap_node_slots) == Some(GAP_PIVOTS)
        && vma_end? == layout.vma_start + 8
        && vma_file? == layout.vma_offset + 8
        && path_entry? == path_mount? + 8;
    as_expected.then_some(layout)
}

/// Where the fields lie that lead from a file descriptor to the file's kind and name; none if one is not found.
pub(super) fn file_layout(btf: &Btf<'_>) -> Option<FileLayout> {
    let mut wanted = [
        ("task_struct", "files", None),
        ("files_struct", "fdt", None),
        ("fdtable", "max_fds", None),
        ("fdtable", "fd", None),
        ("file", "f_inode", None),
        ("file", "f_path", None),
        // In a union with the writable one since Linux 6.16.
        ("file", "__f_path", None),
        ("path", "dentry", None),
        ("inode", "i_mode", None),
        ("dentry", "d_name", None),
        ("qstr", "name", None),
    ];
    btf.find(&mut wanted);
    let [
        task_files,
        files_table,
        table_room,
        table_files,
        file_inode,
        file_path,
        writable_path,
        path_dentry,
        inode_mode,
        dentry_name,
        name_text,
    ] = wanted.map(|(.., offset)| offset);
    Some(FileLayout {
        task_files: task_files?,
        files_table: files_table?,
        table_room: table_room?,
        table_files: table_files?,
        file_inode: file_inode?,
        file_dentry: file_path.or(writable_path)? + path_dentry?,
        inode_mode: inode_mode?,
        dentry_name: dentry_name? + name_text?,
    })
}

/// Where the fields lie that tell of a page fault whether it waits; otherwise what the kernel lacks to have page faults
/// looked at.
pub(super) fn fault_layout(btf: &Btf<'_>) -> Result<FaultLayout, String> {
    let all = |tracepoints: &[&str]| {
        let absent = |name: &&&str| !btf.has_name(&format!("btf_trace_{name}"));
        match tracepoints.iter().find(absent) {
            Some(name) => Err(format!("the tracepoint {name}")),
            None => Ok(()),
        }
    };
    all(&["page_fault_user", "page_fault_kernel"])?;
    let mut wanted = [
        ("task_struct", "nvcsw", None),
        ("task_struct", "pagefault_disabled", None),
        ("mm_struct", "mm_lock_seq", None),
    ];
    btf.find(&mut wanted);
    let [switches, unhandled, mm_changes] = wanted.map(|(.., offset)| offset);
    // Where mappings have locks of their own (Linux 6.4), a fault that has waited for a page that another was reading is begun
    // anew under another lock, and is a minor one (`do_user_addr_fault` in `arch/x86/mm/fault.c`).
    let task_switches = match mm_changes {
        Some(_) => {
            all(&["mmap_lock_acquire_returned", "mmap_lock_released"])?;
            switches.ok_or_else(|| "task_struct.nvcsw".to_owned())?
        }
        None => 0,
    };
    Ok(FaultLayout {
        task_switches,
        task_unhandled: unhandled.ok_or_else(|| "task_struct.pagefault_disabled".to_owned())?,
    })
}
