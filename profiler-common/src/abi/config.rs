//! What is fixed when the programs are loaded. The verifier knows these values and drops the code that
//! they switch off.

/// Which tasks are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum TargetKind {
    /// Every task.
    All = 0,
    /// Threads of the processes whose IDs are marked.
    Processes = 1,
    /// The threads whose IDs are marked.
    Threads = 2,
}

/// What is wanted of each sample, as bits of one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Switches(pub u32);

/// Gives each switch a bit of its own, in their order.
macro_rules! switches {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        #[expect(
            non_camel_case_types,
            reason = "the names are those of the constants, which they count"
        )]
        #[allow(clippy::upper_case_acronyms, reason = "the same")]
        enum Place {
            $($name,)+
        }

        impl Switches {
            $($(#[$doc])+ pub const $name: Self = Self(1 << Place::$name as u32);)+
        }
    };
}

switches! {
    /// Walk user stacks.
    USER_STACKS,
    /// Walk kernel stacks.
    KERNEL_STACKS,
    /// Record the idle task too.
    INCLUDE_IDLE,
    /// Tell threads apart.
    PER_THREAD,
    /// Tell CPUs apart.
    PER_CPU,
    /// The kernel's type information was found, so [`TaskLayout`] holds true offsets.
    TASK_LAYOUT,
    /// We are not in the initial PID namespace, so IDs must be translated.
    PID_NAMESPACE,
    /// Children of targets become targets.
    FOLLOW_CHILDREN,
    /// Walk user stacks by unwind rows where there are some. [`MappingLayout`] holds true offsets then.
    UNWIND_ROWS,
    /// Where there are no rows, follow frame pointers.
    FRAME_POINTERS,
    /// Record no kernel threads.
    USER_THREADS_ONLY,
    /// Record nothing but kernel threads.
    KERNEL_THREADS_ONLY,
    /// Tell what lies at the addresses of user stacks. [`MappingLayout`] holds true offsets then.
    TELL_MAPPINGS,
    /// Some firings find programs at the first instruction of a function.
    AT_ENTRY,
    /// Account for all of a thread's time: on a CPU, waiting for one, and blocked.
    WALL,
    /// Behind a [`LeafWord`](super::LeafWord) stands the name of the file.
    FILE_NAMES,
    /// The kernel has no `bpf_loop`.
    PLAIN_LOOPS,
    /// `sched_switch` does not tell in which state a thread leaves.
    STATE_OF_TASK,
    /// Count waits together with who ended them.
    WAKERS,
    /// Of waits, do not keep where the thread waited.
    NO_WAIT_STACKS,
}

impl Switches {
    /// Both sets of switches together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These switches, together with `other` if `on`.
    #[must_use]
    pub const fn with_if(self, other: Self, on: bool) -> Self {
        if on { self.with(other) } else { self }
    }

    /// These switches, but for those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of `other` are on.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Byte offsets of the fields that the kernel half reads, from the running kernel's type information.
/// Named `<struct>_<field>`; the structs are those of `include/linux/sched.h`, `pid.h` and
/// `pid_namespace.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TaskLayout {
    /// `task_struct.pid`: the thread ID in the initial namespace.
    pub task_pid: u32,
    /// `task_struct.tgid`: the process ID in the initial namespace.
    pub task_tgid: u32,
    /// `task_struct.group_leader`.
    pub task_group_leader: u32,
    /// `task_struct.thread_pid`.
    pub task_thread_pid: u32,
    /// `task_struct.start_boottime`, nanoseconds; `real_start_time` before Linux 5.5.
    pub task_start_boottime: u32,
    /// `task_struct.self_exec_id`.
    pub task_self_exec_id: u32,
    /// `task_struct.__state`.
    pub task_state: u32,
    /// `task_struct.on_cpu`.
    pub task_on_cpu: u32,
    /// `task_struct.flags`.
    pub task_flags: u32,
    /// `task_struct.comm`.
    pub task_comm: u32,
    /// `task_struct.se.sum_exec_runtime`.
    pub task_ran: u32,
    /// `task_struct.se.prev_sum_exec_runtime`.
    pub task_ran_before: u32,
    /// `pid.level`.
    pub pid_level: u32,
    /// `pid.numbers`.
    pub pid_numbers: u32,
    /// The size of one `upid`.
    pub upid_bytes: u32,
    /// `upid.nr`.
    pub upid_nr: u32,
    /// `upid.ns`.
    pub upid_ns: u32,
    /// `pid_namespace.ns.inum`.
    pub namespace_inum: u32,
}

/// Byte offsets of the fields by which the kernel half finds what is mapped where, named as those of
/// [`TaskLayout`]; the structs are those of `include/linux/mm_types.h`, `maple_tree.h` and `fs.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MappingLayout {
    /// `task_struct.mm`.
    pub task_mm: u32,
    /// `mm_struct.mm_mt.ma_root`: the tree of mappings.
    pub mm_root: u32,
    /// The first pivot of a node, of whichever kind.
    pub node_pivots: u32,
    /// The first slot of leaves and plain inner nodes.
    pub node_slots: u32,
    /// The first slot of inner nodes that note gaps.
    pub gap_node_slots: u32,
    /// `vm_area_struct.vm_start`, behind which `vm_end` stands.
    pub vma_start: u32,
    /// `vm_area_struct.vm_flags`.
    pub vma_flags: u32,
    /// `vm_area_struct.vm_pgoff`, behind which `vm_file` stands.
    pub vma_offset: u32,
    /// `vm_area_struct.vm_private_data`.
    pub vma_private: u32,
    /// `file.f_inode`.
    pub file_inode: u32,
    /// `inode.i_sb`.
    pub inode_super: u32,
    /// `inode.i_ino`.
    pub inode_number: u32,
    /// The seconds of `inode.i_mtime`.
    pub inode_seconds: u32,
    /// The nanoseconds of `inode.i_mtime`.
    pub inode_nanoseconds: u32,
    /// `super_block.s_dev`.
    pub super_device: u32,
    /// `mm_struct.mm_lock_seq`, which has another value after each change of the mappings (Linux 6.4); zero
    /// where the kernel has none.
    pub mm_changes: u32,
    /// `file.f_path`: the mount, and behind it the directory entry.
    pub file_path: u32,
    /// `dentry.d_parent`.
    pub entry_parent: u32,
    /// `dentry.d_name.name`.
    pub entry_name: u32,
    /// `mount.mnt`: where in a mount (`fs/mount.h`) that part of it lies that files point to.
    pub mount_part: u32,
    /// `mount.mnt_parent`.
    pub mount_parent: u32,
    /// `mount.mnt_mountpoint`.
    pub mount_point: u32,
    /// `vfsmount.mnt_root`.
    pub mount_root: u32,
}

/// Byte offsets of the fields by which the kernel half finds out about a file from its descriptor, named as
/// those of [`TaskLayout`]; the structs are those of `include/linux/fdtable.h`, `fs.h` and `dcache.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FileLayout {
    /// `task_struct.files`.
    pub task_files: u32,
    /// `files_struct.fdt`.
    pub files_table: u32,
    /// `fdtable.max_fds`: how many descriptors it has room for.
    pub table_room: u32,
    /// `fdtable.fd`: the files by descriptor.
    pub table_files: u32,
    /// `file.f_inode`.
    pub file_inode: u32,
    /// `file.f_path.dentry`.
    pub file_dentry: u32,
    /// `inode.i_mode`.
    pub inode_mode: u32,
    /// `dentry.d_name.name`.
    pub dentry_name: u32,
}

/// Byte offsets of the fields that tell of a page fault whether it has to wait, named as those of [`TaskLayout`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FaultLayout {
    /// `task_struct.nvcsw`: how often the thread left the CPU of its own accord. Zero where every fault that waits for a page is
    /// a major one.
    pub task_switches: u32,
    /// `task_struct.pagefault_disabled`: not zero while a fault in the kernel is no reason to get the memory.
    pub task_unhandled: u32,
}

/// Which calls are firings of a probe that waits for their ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CallChoice {
    /// Which calls; a [`WantedCalls`](super::WantedCalls).
    pub wanted: u32,
    /// What they weigh; a [`CallWeight`](super::CallWeight).
    pub weight: u32,
    /// Of which files; a [`FileKinds`](super::FileKinds).
    pub kinds: u32,
    /// Always zero; here so that there is no padding.
    pub reserved: u32,
}

/// Everything that is fixed at load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// Random: makes the hashes of this run unforeseeable for the programs that are sampled.
    pub seed: u64,
    /// What is wanted.
    pub switches: Switches,
    /// Which tasks; a [`TargetKind`].
    pub target: u32,
    /// Our PID namespace's inode number.
    pub namespace_inum: u32,
    /// Tallies on one side.
    pub tally_capacity: u32,
    /// Slots on one side of the tallies' index, less one; the slots are a power of two.
    pub tally_index_mask: u32,
    /// Blocks on one side of the stack store.
    pub stack_blocks: u32,
    /// Slots on one side of the stacks' index, less one; the slots are a power of two.
    pub stack_index_mask: u32,
    /// The states of switched-out threads that are wanted; a [`States`](super::States).
    pub states: u32,
    /// The number of possible CPUs: how many CPU slots each event has.
    pub cpus: u32,
    /// One bit for each event: whether its samples weigh the period of its event. Otherwise they weigh one. Up
    /// here, on the cache line that every firing reads.
    pub weighed: u32,
    /// The shortest time off the CPU that is wanted, in nanoseconds.
    pub shortest_ns: u64,
    /// The longest time off the CPU that is wanted, in nanoseconds.
    pub longest_ns: u64,
    /// Of waits, look at about one of each thread in so many nanoseconds; zero: at all. See
    /// [`thin`](crate::thin).
    pub look_period_ns: u64,
    /// Which calls are wanted, where the probe is of calls.
    pub calls: CallChoice,
    /// Where the kernel keeps what we read of tasks.
    pub layout: TaskLayout,
    /// Where it keeps what we read of mappings.
    pub mapping: MappingLayout,
    /// Where it keeps what we read of files.
    pub files: FileLayout,
    /// Where it keeps what we read of threads in page faults.
    pub faults: FaultLayout,
    /// The first CPU slot of the probe of switches: so many times the number of possible CPUs as there are events before
    /// its own.
    pub switch_cpu_slots: u32,
}
