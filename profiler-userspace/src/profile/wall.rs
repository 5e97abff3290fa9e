//! Wall time: from samples and spans of each thread to where all of its time went.
//!
//! In: a normalized profile with threads told apart, of samples (where a thread was while it ran, in any unit) and of spans in
//! nanoseconds: for how long it ran, was blocked, waited for a CPU. Out: one of nanoseconds alone, in which a thread's samples
//! share the time that it ran. Never: invents time, or drops any.

use super::normalized::{NormalizedKey, NormalizedProfile};
use profiler_common::abi::ThreadState;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A thread, by its ID. Several, if the ID was given again; their times add up.
type Thread = Option<u32>;

/// How a thread's time is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadOptions {
    /// Whether threads stay apart.
    pub per_thread: bool,
    /// Whether threads are shown that slept from the beginning to the end.
    pub idle_threads: bool,
}

/// Sentences on the threads' time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Threads that were seen.
    pub threads: usize,
    /// How long they ran, together.
    pub ran: Duration,
    /// How long they could have run and had no CPU.
    pub runnable: Duration,
    /// How long they were blocked.
    pub blocked: Duration,
    /// How long of the time that they ran was in threads that were never sampled.
    pub not_sampled: Duration,
    /// Threads that slept throughout and are left out, and for how long they slept.
    pub idle: (usize, Duration),
    /// Samples of threads that were not seen to have a CPU, which are left out.
    pub unattributed: u64,
}

/// Facts of one thread.
#[derive(Clone, Copy, Default)]
struct Account {
    ran_ns: u64,
    runnable_ns: u64,
    blocked_ns: u64,
    /// The weight of its samples.
    sampled: u64,
    /// The weight of its samples that have been given their time, and that time.
    given: (u64, u64),
}

impl Account {
    fn is_idle(&self) -> bool {
        self.ran_ns == 0 && self.runnable_ns == 0 && self.sampled == 0
    }

    /// The time that belongs to one more sample: what it brings the sum to, so that the last one leaves no rest.
    fn give(&mut self, weight: u64) -> u64 {
        let weight = self.given.0 + weight;
        let whole = u128::from(self.ran_ns) * u128::from(weight) / u128::from(self.sampled.max(1));
        let ns = u64::try_from(whole).unwrap_or(u64::MAX);
        let share = ns - self.given.1;
        self.given = (weight, ns);
        share
    }
}

/// Puts samples and spans together.
#[must_use]
pub fn attribute(normalized: &NormalizedProfile, how: ThreadOptions) -> (NormalizedProfile, Sums) {
    let mut accounts: BTreeMap<Thread, Account> = BTreeMap::new();
    for (key, counted) in normalized.samples() {
        let account = accounts.entry(key.label.tid).or_default();
        *match key.thread_state {
            ThreadState::Running => &mut account.sampled,
            ThreadState::Ran => &mut account.ran_ns,
            ThreadState::Runnable => &mut account.runnable_ns,
            ThreadState::Blocked | ThreadState::Woken => &mut account.blocked_ns,
        } += counted.weight;
    }
    let sums = sums(normalized, &accounts, how);
    let idle: BTreeSet<Thread> = accounts
        .iter()
        .filter(|(_, account)| !how.idle_threads && account.is_idle())
        .map(|(thread, _)| *thread)
        .collect();
    let attributed = normalized.changed(|mut key, mut counted| {
        let thread = key.label.tid;
        let account = accounts.get_mut(&thread)?;
        match key.thread_state {
            _ if idle.contains(&thread) => return None,
            ThreadState::Running if account.ran_ns == 0 => return None,
            ThreadState::Running => counted.weight = account.give(counted.weight),
            ThreadState::Ran if account.sampled > 0 => return None,
            ThreadState::Ran
            | ThreadState::Blocked
            | ThreadState::Runnable
            | ThreadState::Woken => {}
        }
        if !how.per_thread {
            key.label.tid = None;
        }
        Some((key, counted))
    });
    (attributed, sums)
}

fn sums(
    normalized: &NormalizedProfile,
    accounts: &BTreeMap<Thread, Account>,
    how: ThreadOptions,
) -> Sums {
    let add = |sum: &mut Duration, ns| *sum += Duration::from_nanos(ns);
    let mut sums = Sums::default();
    for account in accounts.values() {
        if !how.idle_threads && account.is_idle() {
            sums.idle.0 += 1;
            add(&mut sums.idle.1, account.blocked_ns);
            continue;
        }
        sums.threads += 1;
        add(&mut sums.ran, account.ran_ns);
        add(&mut sums.runnable, account.runnable_ns);
        add(&mut sums.blocked, account.blocked_ns);
        if account.sampled == 0 {
            add(&mut sums.not_sampled, account.ran_ns);
        }
    }
    let is_unattributed = |key: &NormalizedKey| {
        key.thread_state == ThreadState::Running && accounts[&key.label.tid].ran_ns == 0
    };
    sums.unattributed = normalized
        .samples()
        .filter(|(key, _)| is_unattributed(key))
        .map(|(_, counted)| counted.count)
        .sum();
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::normalized::{
        Label, Location, NormalizedStack, ObjectIndex, Sums as Counted,
    };
    use proptest::prelude::*;

    const SHOWN: ThreadOptions = ThreadOptions {
        per_thread: true,
        idle_threads: true,
    };

    fn key(tid: u32, thread_state: ThreadState) -> NormalizedKey {
        NormalizedKey {
            label: Label {
                pid: 1,
                start: 0,
                comm: [0; 16],
                tid: Some(tid),
                ..Label::default()
            },
            thread_state,
            ..NormalizedKey::default()
        }
    }

    fn add(normalized: &mut NormalizedProfile, tid: u32, thread_state: ThreadState, weight: u64) {
        normalized.add(key(tid, thread_state), Counted { weight, count: 1 });
    }

    /// A sample on a stack of one place.
    fn at(normalized: &mut NormalizedProfile, offset: u64, tid: u32, weight: u64) {
        let object = ObjectIndex(0);
        let location = normalized.location(Location::At { object, offset });
        let user = normalized.stack(NormalizedStack::whole([location]));
        let key = NormalizedKey {
            user: Some(user),
            ..key(tid, ThreadState::Running)
        };
        normalized.add(key, Counted { weight, count: 1 });
    }

    fn weights(normalized: &NormalizedProfile) -> Vec<u64> {
        normalized
            .samples()
            .map(|(_, counted)| counted.weight)
            .collect()
    }

    fn time(normalized: &NormalizedProfile, tid: u32) -> u64 {
        let of = |(key, _): &(&NormalizedKey, Counted)| key.label.tid == Some(tid);
        normalized
            .samples()
            .filter(of)
            .map(|(_, counted)| counted.weight)
            .sum()
    }

    #[test]
    fn samples_share_the_time_that_their_thread_ran() {
        let mut normalized = NormalizedProfile::default();
        at(&mut normalized, 1, 7, 3);
        at(&mut normalized, 2, 7, 1);
        at(&mut normalized, 1, 8, 4);
        add(&mut normalized, 7, ThreadState::Ran, 1_000);
        add(&mut normalized, 8, ThreadState::Ran, 40);
        add(&mut normalized, 7, ThreadState::Blocked, 500);
        let (attributed, sums) = attribute(&normalized, SHOWN);
        assert_eq!(weights(&attributed), [750, 250, 40, 500]);
        assert_eq!((sums.threads, sums.ran), (2, Duration::from_nanos(1_040)));
        assert_eq!(sums.blocked, Duration::from_nanos(500));
    }

    #[test]
    fn running_time_without_samples_is_kept() {
        let mut normalized = NormalizedProfile::default();
        add(&mut normalized, 7, ThreadState::Ran, 1_000);
        at(&mut normalized, 1, 8, 1);
        let (attributed, sums) = attribute(&normalized, SHOWN);
        let thread_state: Vec<ThreadState> = attributed
            .samples()
            .map(|(key, _)| key.thread_state)
            .collect();
        assert_eq!(thread_state, [ThreadState::Ran]);
        assert_eq!(sums.not_sampled, Duration::from_nanos(1_000));
        assert_eq!(sums.unattributed, 1);
    }

    #[test]
    fn threads_that_slept_throughout_can_be_left_out() {
        let mut normalized = NormalizedProfile::default();
        add(&mut normalized, 7, ThreadState::Blocked, 9);
        add(&mut normalized, 8, ThreadState::Blocked, 5);
        add(&mut normalized, 8, ThreadState::Runnable, 4);
        let how = ThreadOptions {
            per_thread: false,
            idle_threads: false,
        };
        let (attributed, sums) = attribute(&normalized, how);
        assert_eq!(sums.idle, (1, Duration::from_nanos(9)));
        assert_eq!(weights(&attributed).iter().sum::<u64>(), 9);
        assert!(attributed.samples().all(|(key, _)| key.label.tid.is_none()));
    }

    proptest! {
        #[test]
        fn no_nanosecond_of_wall_time_is_lost(
            spans in prop::collection::vec((0..4u32, 0..3u8, 0..1u64 << 40), 1..20),
            samples in prop::collection::vec((0..4u32, 1..9u64, 1..1_000_000u64), 0..40),
        ) {
            let mut normalized = NormalizedProfile::default();
            for &(tid, kind, ns) in &spans {
                let thread_state = [ThreadState::Ran, ThreadState::Blocked, ThreadState::Runnable][usize::from(kind)];
                add(&mut normalized, tid, thread_state, ns);
            }
            for &(tid, address, weight) in &samples {
                at(&mut normalized, address, tid, weight);
            }
            let (attributed, _) = attribute(&normalized, SHOWN);
            for tid in 0..4 {
                let own = spans.iter().filter(|(of, ..)| *of == tid);
                let expected: u64 = own.map(|(_, _, ns)| ns).sum();
                prop_assert_eq!(time(&attributed, tid), expected);
            }
        }
    }
}
