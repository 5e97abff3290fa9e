//! The balance: where every firing went.

/// Class of a counter: its part in the balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The firing happened. There is one such counter.
    Fired,
    /// The firing is in a tally. There is one such counter.
    Recorded,
    /// The firing was left out on request.
    Filtered,
    /// The firing should have been recorded and was not.
    Lost,
    /// Not part of the balance.
    Note,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $class:ident;)*) => {
        /// Where a firing went, or something else worth counting. Each firing increments `Fired` when it
        /// begins and exactly one counter of class `Recorded`, `Filtered` or `Lost` when it ends.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Counter { $($(#[$doc])* $variant,)* }

        impl Counter {
            /// Every counter, in the order of its index in [`Counters`](super::Counters).
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The counter's name, as verbose output prints it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The counter's part in the balance.
            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* }
            }
        }
    };
}

counters! {
    /// The probe's program ran.
    Fired = "fired", Fired;
    /// The firing is in a tally.
    Recorded = "recorded", Recorded;
    /// The CPU was idle.
    FilteredIdle = "filtered-idle", Filtered;
    /// The process or thread is no target.
    FilteredTarget = "filtered-target", Filtered;
    /// The process is outside our PID namespace.
    FilteredNamespace = "filtered-namespace", Filtered;
    /// The CPU was in user mode, and only kernel stacks were requested.
    FilteredUserMode = "filtered-user-mode", Filtered;
    /// A kernel thread, or a process without memory, and only user stacks were requested.
    FilteredNoUserStack = "filtered-no-user-stack", Filtered;
    /// The thread is of the other kind than was requested, user or kernel.
    FilteredThreadKind = "filtered-thread-kind", Filtered;
    /// The thread was switched out in a state that was not requested.
    FilteredState = "filtered-state", Filtered;
    /// The thread was off the CPU for a shorter or longer time than was requested.
    FilteredBlockTime = "filtered-block-time", Filtered;
    /// The wait was not among those that are sampled.
    FilteredSwitchSample = "filtered-switch-sample", Filtered;
    /// The call was about another kind of file than was requested.
    FilteredFileKind = "filtered-file-kind", Filtered;
    /// The store of stacks was full.
    LostStackStore = "lost-stack-store", Lost;
    /// The table of tallies was full.
    LostTallyTable = "lost-tally-table", Lost;
    /// The table of threads that are off the CPU, or in a call, was full.
    LostThreadTable = "lost-thread-table", Lost;
    /// A thread was switched out twice without coming back, or began two calls; the first one is in no tally.
    LostPair = "lost-pair", Lost;
    /// The process's cgroup could not be told, and only some cgroups were requested: there were too many.
    LostCgroup = "lost-cgroup", Lost;
    /// The probe fired while an earlier firing on the same CPU was being walked.
    LostReentered = "lost-reentered", Lost;
    /// Nanoseconds spent in the probe's program.
    RunTime = "run-time-ns", Note;
    /// The queue of kernel events was full; the process is announced again with its next new stack.
    KernelEventsDropped = "kernel-events-dropped", Note;
    /// The queue of kernel events was full; the mapping is reported again with the process's next new stack.
    MappingEventsDropped = "mapping-events-dropped", Note;
    /// The queue of kernel events was full; the function is reported again with the next new stack that has it.
    FunctionEventsDropped = "function-events-dropped", Note;
    /// A walk of native frames broke, and the frames of an interpreter were shown below the mark.
    ChainsWithoutStack = "chains-without-stack", Note;
    /// All slots near a hash were taken; the entry is counted but stored again.
    IndexCrowded = "index-crowded", Note;
    /// The probe began to handle a switch of a target. Off the CPU, a firing lasts as long as the wait, so
    /// draining uses this and `Left` to see that nothing writes.
    Entered = "entered", Note;
    /// The probe finished handling it.
    Left = "left", Note;
    /// Switches between tasks that are no targets.
    OtherSwitches = "other-switches", Note;
    /// Waits without an end event; their end is taken from how long the thread then ran.
    EndReckoned = "end-reckoned", Note;
    /// Waits that had not ended when the recording did; they count up to then.
    StillWaiting = "still-waiting", Note;
    /// Waits that began before the recording; they count from its beginning.
    WaitingBefore = "waiting-before", Note;
    /// Waits or allocations inside another of the same thread, which they are part of.
    Nested = "nested", Note;
    /// Waits whose kernel stack was found in the cache and not walked.
    KernelStacksCached = "kernel-stacks-cached", Note;
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn counters_stand_at_their_places_under_distinct_names() {
        let mut names = std::collections::HashSet::new();
        for (place, &counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(counter as usize, place);
            assert!(names.insert(counter.name()));
        }
        let of = |class| Counter::ALL.iter().filter(|c| c.class() == class).count();
        assert_eq!((of(Class::Fired), of(Class::Recorded)), (1, 1));
    }

    #[test]
    fn counter_names_begin_with_their_class() {
        for counter in Counter::ALL {
            let filtered = counter.name().starts_with("filtered-");
            assert_eq!(filtered, counter.class() == Class::Filtered);
            let lost = counter.name().starts_with("lost-");
            assert_eq!(lost, counter.class() == Class::Lost);
        }
    }
}
