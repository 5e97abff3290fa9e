//! Offsets of kernel structs: each field that the kernel half reads is declared here and nowhere else.
//!
//! A declaration is our name and the kernel's paths; the first path that the kernel has counts. From it
//! follow the struct that programs are loaded with, its zero, the queries to the kernel's type information,
//! and the golden's lines. Pure.

use super::layout::boundary;
use crate::walk::maple::{GAP_PIVOTS, PIVOTS};

/// A path to a number of bytes: a struct and the nested fields in it, which is the offset of the last one; or
/// a struct alone, which is its size. Fields of anonymous structs and unions belong to the struct around
/// them.
pub type Path = &'static [&'static str];

/// One field of a [`KernelLayout`].
#[derive(Clone, Copy, Debug)]
pub struct KernelField {
    /// Its name in the layout.
    pub name: &'static str,
    /// Where it may be: the first path that the kernel has counts.
    pub paths: &'static [Path],
    /// Its value if the kernel has none of them; none if the layout is then useless.
    pub absent: Option<u32>,
}

/// An assumption of the kernel half: `path` ends `distance` bytes behind the layout's field.
#[derive(Clone, Copy, Debug)]
pub struct Assumed {
    /// The path.
    pub path: Path,
    /// The field of the layout.
    pub field: &'static str,
    /// The distance in bytes.
    pub distance: u32,
}

/// A struct of byte offsets, one for each path.
pub trait KernelLayout: Copy {
    /// Its fields, in the order of the struct.
    const FIELDS: &'static [KernelField];
    /// The assumptions.
    const ASSUMED: &'static [Assumed];

    /// The layout of a kernel in which `find` gives the offset of a path.
    ///
    /// # Errors
    /// The first path of the first field the kernel does not have, or the path that breaks an assumption.
    fn ask(find: impl FnMut(Path) -> Option<u32>) -> Result<Self, Path>;
}

/// Declares a [`KernelLayout`]. `ours: path | older.path,`; `else N` is the value if the kernel has none of
/// the paths. `assumes { path = ours + N; }` is an assumption of the kernel half.
macro_rules! kernel_layout {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* $field:ident: $($($part:ident).+)|+ $(else $absent:literal)?,)+
        }
        $(assumes { $($($assumed:ident).+ = $base:ident + $distance:expr;)+ })?
    ) => {
        boundary! {
            $(#[$meta])*
            #[derive(Default)]
            #[repr(C)]
            pub struct $name {
                $($(#[$field_meta])*
                #[doc = concat!("`", stringify!($($($part).+)|+), "`")]
                pub $field: u32,)+
            }
        }

        impl KernelLayout for $name {
            const FIELDS: &'static [KernelField] = &[$(KernelField {
                name: stringify!($field),
                paths: &[$(&[$(stringify!($part)),+]),+],
                absent: kernel_layout!(@absent $($absent)?),
            },)+];
            const ASSUMED: &'static [Assumed] = &[$($(Assumed {
                path: &[$(stringify!($assumed)),+],
                field: stringify!($base),
                distance: $distance,
            },)+)?];

            fn ask(mut find: impl FnMut(Path) -> Option<u32>) -> Result<Self, Path> {
                $(let $field = {
                    let paths: &'static [Path] = &[$(&[$(stringify!($part)),+]),+];
                    let found = paths.iter().find_map(|path| find(path));
                    found.or(kernel_layout!(@absent $($absent)?)).ok_or(paths[0])?
                };)+
                $($(if find(&[$(stringify!($assumed)),+]) != Some($base + $distance) {
                    return Err(&[$(stringify!($assumed)),+]);
                })+)?
                Ok(Self { $($field),+ })
            }
        }
    };
    (@absent) => { None };
    (@absent $absent:literal) => { Some($absent) };
}

kernel_layout! {
    /// Byte offsets in tasks, PIDs and namespaces (`include/linux/sched.h`, `pid.h` and `pid_namespace.h`).
    pub struct TaskLayout {
        /// The thread ID in the initial namespace.
        task_pid: task_struct.pid,
        /// The process ID in the initial namespace.
        task_tgid: task_struct.tgid,
        /// The process's first thread.
        task_group_leader: task_struct.group_leader,
        /// The thread's `struct pid`.
        task_thread_pid: task_struct.thread_pid,
        /// When the thread began, in nanoseconds; under its older name before Linux 5.5.
        task_start_boottime: task_struct.start_boottime | task_struct.real_start_time,
        /// How often it called `exec`.
        task_self_exec_id: task_struct.self_exec_id,
        /// Its state: whether it runs, and otherwise how it waits.
        task_state: task_struct.__state,
        /// Whether it is on a CPU.
        task_on_cpu: task_struct.on_cpu,
        /// Its flags: whether it is a kernel thread, among others.
        task_flags: task_struct.flags,
        /// Its name.
        task_comm: task_struct.comm,
        /// How long it has run, in nanoseconds.
        task_ran: task_struct.se.sum_exec_runtime,
        /// How long it had run when it last got the CPU.
        task_ran_before: task_struct.se.prev_sum_exec_runtime,
        /// Its thread pointer: what `arch_prctl` and `clone` set (`arch/x86/include/asm/processor.h`). Zero where there is none.
        task_thread_pointer: task_struct.thread.fsbase else 0,
        /// How deep the PID's namespace is nested.
        pid_level: pid.level,
        /// Its numbers, one for each level of namespaces.
        pid_numbers: pid.numbers,
        /// The size of one entry.
        upid_bytes: upid,
        /// The number.
        upid_nr: upid.nr,
        /// The namespace.
        upid_ns: upid.ns,
        /// The namespace's inode number.
        namespace_inum: pid_namespace.ns.inum,
    }
}

kernel_layout! {
    /// Byte offsets by which the kernel half finds mappings (`include/linux/mm_types.h`, `maple_tree.h` and
    /// `fs.h`, and `fs/mount.h`).
    pub struct MappingLayout {
        /// A task's memory.
        task_mm: task_struct.mm,
        /// The tree of its mappings.
        mm_root: mm_struct.mm_mt.ma_root,
        /// The first pivot of a node of any kind.
        node_pivots: maple_range_64.pivot,
        /// The first slot of leaves and plain inner nodes.
        node_slots: maple_range_64.slot,
        /// The first slot of inner nodes that store gaps.
        gap_node_slots: maple_arange_64.slot,
        /// A mapping's start; its end follows.
        vma_start: vm_area_struct.vm_start,
        /// Its flags.
        vma_flags: vm_area_struct.vm_flags,
        /// The first mapped page of the file; the file follows.
        vma_offset: vm_area_struct.vm_pgoff,
        /// Description of a mapping of the kernel's own, such as the vDSO.
        vma_private: vm_area_struct.vm_private_data,
        /// An open file's inode.
        file_inode: file.f_inode,
        /// The inode's file system.
        inode_super: inode.i_sb,
        /// The inode's number.
        inode_number: inode.i_ino,
        /// When the file was last written: the seconds. One of two numbers since Linux 6.11; before, part of a struct whose
        /// name changed in 6.7.
        inode_seconds: inode.i_mtime_sec | inode.__i_mtime.tv_sec | inode.i_mtime.tv_sec,
        /// The nanoseconds.
        inode_nanoseconds: inode.i_mtime_nsec | inode.__i_mtime.tv_nsec | inode.i_mtime.tv_nsec,
        /// The file system's device.
        super_device: super_block.s_dev,
        /// Changes whenever the mappings do (Linux 6.4).
        mm_changes: mm_struct.mm_lock_seq else 0,
        /// An open file's mount; the directory entry follows.
        file_path: file.f_path.mnt,
        /// The parent of a directory entry.
        entry_parent: dentry.d_parent,
        /// Its name.
        entry_name: dentry.d_name.name,
        /// The part of a mount that files point to.
        mount_part: mount.mnt,
        /// The mount it is mounted in.
        mount_parent: mount.mnt_parent,
        /// The directory entry that it is mounted at.
        mount_point: mount.mnt_mountpoint,
        /// The directory entry that is its root.
        mount_root: vfsmount.mnt_root,
    }
    assumes {
        maple_arange_64.pivot = node_pivots + 0;
        maple_range_64.slot = node_pivots + 8 * PIVOTS as u32;
        maple_arange_64.slot = node_pivots + 8 * GAP_PIVOTS as u32;
        vm_area_struct.vm_end = vma_start + 8;
        vm_area_struct.vm_file = vma_offset + 8;
        file.f_path.dentry = file_path + 8;
    }
}

kernel_layout! {
    /// Byte offsets by which the kernel half finds a descriptor's file (`include/linux/fdtable.h`, `fs.h` and
    /// `dcache.h`).
    pub struct FileLayout {
        /// A task's open files.
        task_files: task_struct.files,
        /// Their table.
        files_table: files_struct.fdt,
        /// Their number.
        table_room: fdtable.max_fds,
        /// The files by descriptor.
        table_files: fdtable.fd,
        /// An open file's inode.
        file_inode: file.f_inode,
        /// Its directory entry; in a union with a writable one since Linux 6.16.
        file_dentry: file.f_path.dentry | file.__f_path.dentry,
        /// The inode's kind.
        inode_mode: inode.i_mode,
        /// The directory entry's name.
        dentry_name: dentry.d_name.name,
    }
}

kernel_layout! {
    /// Byte offsets that tell whether a page fault has to wait.
    pub struct FaultLayout {
        /// How often the thread left the CPU voluntarily. User space sets it to zero if every fault that
        /// waits for a page is a major one.
        task_switches: task_struct.nvcsw,
        /// Not zero while a fault in the kernel does not bring in memory.
        task_unhandled: task_struct.pagefault_disabled,
    }
}

kernel_layout! {
    /// Byte offsets by which the kernel half finds a task's cgroup (`include/linux/cgroup-defs.h` and `kernfs.h`).
    pub struct CgroupLayout {
        /// A task's set of cgroups, one of each hierarchy.
        task_cgroups: task_struct.cgroups,
        /// That of the unified hierarchy (v2).
        set_unified: css_set.dfl_cgrp,
        /// The states of controllers, by the numbers of these.
        set_controllers: css_set.subsys,
        /// The cgroup that such a state is of.
        state_cgroup: cgroup_subsys_state.cgroup,
        /// A cgroup's directory.
        cgroup_node: cgroup.kn,
        /// Its inode number, which is the cgroup's ID.
        node_id: kernfs_node.id,
        /// Its name.
        node_name: kernfs_node.name,
        /// The directory that it is in; under another name since Linux 6.15.
        node_parent: kernfs_node.__parent | kernfs_node.parent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that has each path of two parts at a place of its own.
    fn found(path: Path) -> Option<u32> {
        let fields = FaultLayout::FIELDS.iter();
        let place = fields.clone().position(|field| field.paths[0] == path)?;
        u32::try_from(8 + place).ok()
    }

    #[test]
    fn a_layout_has_each_field_from_its_path() {
        let expected = FaultLayout {
            task_switches: 8,
            task_unhandled: 9,
        };
        assert_eq!(FaultLayout::ask(found), Ok(expected));
    }

    #[test]
    fn a_missing_field_is_named_by_its_first_path() {
        assert_eq!(
            FaultLayout::ask(|_| None),
            Err(["task_struct", "nvcsw"].as_slice())
        );
        assert_eq!(
            TaskLayout::ask(found),
            Err(["task_struct", "pid"].as_slice())
        );
    }

    #[test]
    fn an_older_path_and_an_absent_field_stand_in() {
        let find = |path: Path| match path {
            ["task_struct", "start_boottime"] => None,
            [.., "real_start_time"] => Some(7),
            _ => Some(1),
        };
        assert_eq!(
            TaskLayout::ask(find).map(|layout| layout.task_start_boottime),
            Ok(7)
        );
    }

    #[test]
    fn what_is_assumed_must_be_so() {
        let mappings = |end: u32| {
            move |path: Path| match path {
                [.., "mm_lock_seq"] => None,
                ["maple_range_64", "slot"] => Some(8 * PIVOTS as u32),
                ["maple_arange_64", "slot"] => Some(8 * GAP_PIVOTS as u32),
                [.., "vm_end"] => Some(end),
                [.., "vm_file" | "dentry"] => Some(8),
                _ => Some(0),
            }
        };
        assert_eq!(
            MappingLayout::ask(mappings(8)).map(|layout| layout.mm_changes),
            Ok(0)
        );
        assert_eq!(
            MappingLayout::ask(mappings(16)),
            Err(["vm_area_struct", "vm_end"].as_slice())
        );
    }
}
