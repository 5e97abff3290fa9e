//! The balance: where every firing went.

/// What a counter says about a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The firing happened. There is one such counter.
    Fired,
    /// The firing is in a tally. There is one such counter.
    Recorded,
    /// The firing was left out, as asked.
    Filtered,
    /// The firing should have been recorded and was not.
    Lost,
    /// Says nothing about where a firing went, and is no part of the balance.
    Note,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $class:ident;)*) => {
        /// Where a firing went, or what else there is to tell. Each firing bumps `Fired` when it begins
        /// and exactly one counter of class `Recorded`, `Filtered` or `Lost` when it ends.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Counter { $($(#[$doc])* $variant,)* }

        impl Counter {
            /// Every counter, in the order of its place in [`Counters`](super::Counters).
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The counter's name, as verbose output prints it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the counter says about a firing.
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
    /// The process or thread is not a target.
    FilteredTarget = "filtered-target", Filtered;
    /// The process lives outside our PID namespace, where nobody here can name it.
    FilteredNamespace = "filtered-namespace", Filtered;
    /// The CPU was in user mode, and only kernel stacks were asked for.
    FilteredUserMode = "filtered-user-mode", Filtered;
    /// A kernel thread, or a process whose memory is gone already, and only user stacks were asked for.
    FilteredNoUserStack = "filtered-no-user-stack", Filtered;
    /// The thread was left out by the kind that was asked for: user or kernel threads.
    FilteredThreadKind = "filtered-thread-kind", Filtered;
    /// The thread was switched out in a state that was not asked for.
    FilteredState = "filtered-state", Filtered;
    /// The thread was off the CPU for a shorter or longer time than was asked for.
    FilteredBlockTime = "filtered-block-time", Filtered;
    /// The thread had waited shortly before, and not all of its waits were to be looked at.
    FilteredSwitchSample = "filtered-switch-sample", Filtered;
    /// The call was about a file of another kind than was asked for.
    FilteredFileKind = "filtered-file-kind", Filtered;
    /// The store of stacks was full.
    LostStackStore = "lost-stack-store", Lost;
    /// The table of tallies was full.
    LostTallyTable = "lost-tally-table", Lost;
    /// The table of threads that are off the CPU, or in a call, was full.
    LostSleeperTable = "lost-sleeper-table", Lost;
    /// A thread was switched out twice, and not in between, or began two calls; the first time is not in a tally.
    LostPair = "lost-pair", Lost;
    /// The probe fired while an earlier firing on the same CPU was still being walked.
    LostReentered = "lost-reentered", Lost;
    /// Nanoseconds spent in the probe's program.
    RunTime = "run-time-ns", Note;
    /// The queue of notices was full; the process is announced again by its next new stack.
    NoticesDropped = "notices-dropped", Note;
    /// The queue of notices was full; what lies at a sampled address is told with the process's next new
    /// stack.
    MappingsUntold = "mappings-untold", Note;
    /// Slots of an index were taken all around; the entry is counted, but takes room of its own.
    IndexCrowded = "index-crowded", Note;
    /// The probe began to look at a switch that concerns a target. Off the CPU, a firing lasts as long as
    /// the wait does; this and `Left` tell when nobody writes.
    Entered = "entered", Note;
    /// The probe ended doing so.
    Left = "left", Note;
    /// Switches between tasks that are no targets.
    OtherSwitches = "other-switches", Note;
    /// Waits whose end the kernel did not tell, and that was reckoned from how long the thread then ran.
    EndReckoned = "end-reckoned", Note;
    /// Waits that had not ended when the recording did, and are counted up to then.
    StillWaiting = "still-waiting", Note;
    /// Waits that had begun before the recording did, and are counted from its beginning.
    WaitingBefore = "waiting-before", Note;
    /// Waits, or requests for memory, within another of the same thread's, which they are part of.
    Nested = "nested", Note;
    /// Waits whose kernel stack was one that had been walked before, and was not walked again.
    KernelStacksRecognized = "kernel-stacks-recognized", Note;
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
    fn names_say_the_class() {
        for counter in Counter::ALL {
            let filtered = counter.name().starts_with("filtered-");
            assert_eq!(filtered, counter.class() == Class::Filtered);
            let lost = counter.name().starts_with("lost-");
            assert_eq!(lost, counter.class() == Class::Lost);
        }
    }
}
