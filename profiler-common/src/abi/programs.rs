//! The programs of the BPF object: one list, from which the kernel half makes its entry points and user space the
//! names by which it finds them.

/// Which program of the BPF object, and how to say so: calls `$each!` with all rows. A row is what the program is about, its
/// type, the tracepoint that its section names if it is of that type, its name in the object, and its [`ProgramId`].
#[macro_export]
macro_rules! programs {
    ($each:ident) => {
        $each! {
            /// A clock tick or a counter overflow: where is the CPU?
            perf_event on_cpu OnCpu walks;
            /// A CPU goes from one task to another: for how long was the one away, and when did the other leave?
            raw_tracepoint "sched_switch" off_cpu OffCpu walks;
            /// A thread is ready to run again.
            raw_tracepoint "sched_wakeup" woken Woken;
            /// A thread is being woken: by whom?
            raw_tracepoint "sched_waking" waking Waking walks;
            /// The kernel comes by a tracepoint, whichever user space attaches this to.
            raw_tracepoint "sched_switch" tracepoint Tracepoint walks;
            /// As `tracepoint`, for the second event.
            raw_tracepoint "sched_switch" tracepoint_1 Tracepoint1 walks;
            /// As `tracepoint`, for the third event.
            raw_tracepoint "sched_switch" tracepoint_2 Tracepoint2 walks;
            /// As `tracepoint`, for the fourth event.
            raw_tracepoint "sched_switch" tracepoint_3 Tracepoint3 walks;
            /// As `tracepoint`, for the fifth event.
            raw_tracepoint "sched_switch" tracepoint_4 Tracepoint4 walks;
            /// As `tracepoint`, for the sixth event.
            raw_tracepoint "sched_switch" tracepoint_5 Tracepoint5 walks;
            /// As `tracepoint`, for the seventh event.
            raw_tracepoint "sched_switch" tracepoint_6 Tracepoint6 walks;
            /// As `tracepoint`, for the eighth event.
            raw_tracepoint "sched_switch" tracepoint_7 Tracepoint7 walks;
            /// A program calls a function, whichever user space attaches this to.
            uprobe function Function walks;
            /// A program asks its C library for memory.
            uprobe allocation Allocation walks;
            /// A thread makes a system call.
            raw_tracepoint "sys_enter" call Call walks;
            /// A thread makes a system call, and its return is waited for.
            raw_tracepoint "sys_enter" call_begin CallBegin walks;
            /// A thread returns from a system call.
            raw_tracepoint "sys_exit" call_end CallEnd;
            /// A program touches memory that is not there, or not as it wants it.
            raw_tracepoint "page_fault_user" fault_begin FaultBegin;
            /// The kernel does, as a rule on behalf of a system call.
            raw_tracepoint "page_fault_kernel" fault_in_kernel FaultInKernel;
            /// The memory is there, and a page had to be read.
            perf_event fault_major FaultMajor walks;
            /// A thread has, or has not, the lock of its process's mappings: does it begin a page fault anew?
            raw_tracepoint "mmap_lock_acquire_returned" fault_locks FaultLocks;
            /// A thread gives that lock back: is a page there that it has waited for?
            raw_tracepoint "mmap_lock_released" fault_unlocks FaultUnlocks walks;
            /// A thread begins to wait for a lock of the kernel's.
            raw_tracepoint "contention_begin" lock_begin LockBegin walks;
            /// A thread does not wait for a lock of the kernel's any more.
            raw_tracepoint "contention_end" lock_end LockEnd;
            /// A thread ends, perhaps within a call.
            raw_tracepoint "sched_process_exit" thread_end ThreadEnd;
            /// Each task in turn: has it been off the CPU since before anybody looked?
            task_iterator asleep Asleep;
            /// A task was made: is it a target?
            raw_tracepoint "sched_process_fork" fork Fork;
            /// A process runs another program now: is it the command?
            raw_tracepoint "sched_process_exec" exec Exec;
            /// Not attached: user space runs it to have the kernel name an address.
            raw_tracepoint "sched_process_fork" name_symbol NameSymbol;
            /// Not attached: user space runs it to read the kernel's own code.
            raw_tracepoint "sched_process_fork" read_text ReadText;
            /// Not attached: user space runs it, to have noted how deep its own PID namespace lies.
            raw_tracepoint "sched_process_fork" own_level OwnLevel;
            /// Not attached: user space runs it to have its own cgroup reported.
            raw_tracepoint "sched_process_fork" own_cgroup OwnCgroup;
            /// Not attached: user space runs it to learn what the kernel knows a file by that it has mapped.
            raw_tracepoint "sched_process_fork" code_key CodeKey;
        }
    };
}

macro_rules! ids {
    ($($(#[$doc:meta])+ $kind:ident $($tracepoint:literal)? $name:ident $id:ident $($walks:ident)?;)+) => {
        /// A program of the BPF object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ProgramId {
            $($(#[$doc])+ $id,)+
        }

        impl ProgramId {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$id,)+];

            /// Its name in the object.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$id => stringify!($name),)+ }
            }

            /// Whether it walks user stacks, so that it differs by the runtimes that are shown. It has a place among the
            /// replacements then, by its discriminant.
            pub const fn walks(self) -> bool {
                match self { $(Self::$id => !stringify!($($walks)?).is_empty(),)+ }
            }
        }
    };
}

programs!(ids);

/// How many events one recording may have, and so how many programs there are for each of them to have its own: of
/// an event of each kind in one run, few people can read more graphs. A [`Stamp`](super::Stamp) has room for 16.
pub const MAX_EVENTS: usize = 8;

/// The programs for tracepoints, by the number of their event.
const TRACEPOINT: [ProgramId; MAX_EVENTS] = [
    ProgramId::Tracepoint,
    ProgramId::Tracepoint1,
    ProgramId::Tracepoint2,
    ProgramId::Tracepoint3,
    ProgramId::Tracepoint4,
    ProgramId::Tracepoint5,
    ProgramId::Tracepoint6,
    ProgramId::Tracepoint7,
];

impl ProgramId {
    /// The program that does the same for the event of this number; programs that all events share are their own.
    #[must_use]
    pub fn of_event(self, event: usize) -> Self {
        match self {
            Self::Tracepoint => TRACEPOINT.get(event).copied().unwrap_or(self),
            shared => shared,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_programs_of_their_own_where_they_need_them() {
        assert_eq!(ProgramId::Tracepoint.of_event(0), ProgramId::Tracepoint);
        assert_eq!(ProgramId::OnCpu.of_event(3), ProgramId::OnCpu);
        assert_eq!(ProgramId::Tracepoint.of_event(7).name(), "tracepoint_7");
        assert_eq!(ProgramId::Function.of_event(5), ProgramId::Function);
    }
}
