//! Configuration of the programs, fixed when they are loaded. The verifier knows these values and
//! drops the code that they switch off.

use super::layout::{Zero, boundary};
use super::{CgroupLayout, FaultLayout, FileLayout, MappingLayout, RuntimeKinds, TaskLayout};

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
    /// Threads of the command that we launch, from its `exec` on, and of its children.
    Launched = 3,
    /// Threads in all cgroups but those that user space says no to.
    Cgroups = 4,
}

/// Switches of a recording, as bits of one word: its options, and properties of the kernel.
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
        enum ConfigIndex {
            $($name,)+
        }

        impl Switches {
            $($(#[$doc])+ pub const $name: Self = Self(1 << ConfigIndex::$name as u32);)+
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
    /// In code without unwind instructions, where no frame pointer leads on, look for return addresses in the words of the stack.
    GUESS,
    /// Record no kernel threads.
    USER_THREADS_ONLY,
    /// Record nothing but kernel threads.
    KERNEL_THREADS_ONLY,
    /// Tell what lies at the addresses of user stacks. [`MappingLayout`] holds true offsets then.
    MAPPING_EVENTS,
    /// Some firings find programs at the first instruction of a function.
    AT_ENTRY,
    /// Account for all of a thread's time: on a CPU, waiting for one, and blocked.
    WALL,
    /// Put the names of files before calls at the leaf of a stack.
    FILE_NAMES,
    /// The kernel has no `bpf_loop`.
    PLAIN_LOOPS,
    /// `sched_switch` does not tell in which state a thread leaves.
    STATE_OF_TASK,
    /// Count waits together with who ended them.
    WAKERS,
    /// Of waits, do not keep where the thread waited.
    NO_WAIT_STACKS,
    /// There are several events, so perf events are attached with the number of theirs.
    SEVERAL_EVENTS,
    /// Show the frames of interpreters. [`TaskLayout`] and [`MappingLayout`] hold true offsets then, that of the thread pointer
    /// among them, and user stacks are walked by unwind rows.
    RUNTIMES,
    /// A native frame that runs one function of a runtime's is shown beside it.
    LOOP_FRAMES,
    /// A replacement of the program runs in its place as soon as there is one.
    REPLACEMENTS,
    /// Tell cgroups apart. [`CgroupLayout`] holds true offsets then.
    CGROUPS,
    /// Cgroups are those of one controller (v1), not of the unified hierarchy (v2).
    CGROUP_CONTROLLER,
    /// Write log lines: why walks ended, and what was not found.
    LOG,
    /// How often a wait is looked at may change: [`Control`](super::Control) says it, not the [`Config`].
    VARYING_WAITS,
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

impl Zero for Switches {
    const ZERO: Self = Self(0);
}

boundary! {
    /// Which calls are firings of a probe that waits for their ends.
    #[repr(C)]
    pub struct CallChoice {
        /// Which calls; a [`WantedCalls`](super::WantedCalls).
        pub wanted: u32,
        /// Their weight; a [`CallWeight`](super::CallWeight).
        pub weight: u32,
        /// Of which files; a [`FileKinds`](super::FileKinds).
        pub kinds: u32,
        /// Always zero; here so that there is no padding.
        pub reserved: u32,
    }

    /// Everything that is fixed at load.
    #[repr(C)]
    pub struct Config {
        /// Random: makes the hashes of this run unforeseeable for the programs that are sampled.
        pub seed: u64,
        /// The switches that are on.
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
        /// Of waits, look at about one of each thread in so many nanoseconds; zero: at all, or
        /// [varying](Switches::VARYING_WAITS). See [`wait_sampling`](crate::wait_sampling).
        pub wait_sample_period_ns: u64,
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
        /// The runtimes whose frames are shown.
        pub runtimes: RuntimeKinds,
        /// The command's process ID; zero if none is launched.
        pub launched: u32,
        /// Where a task's set of cgroups names the one that is meant: the cgroup itself, or with
        /// [`Switches::CGROUP_CONTROLLER`] the state of the controller in it.
        pub cgroup_in_set: u32,
        /// Where the kernel keeps what we read of cgroups.
        pub cgroups: CgroupLayout,
    }
}
