//! Wall time: from samples and spans of each thread to where all of its time went.
//!
//! In: a raw profile with threads told apart, of samples (where a thread was while it ran, in any unit) and of spans in
//! nanoseconds: for how long it ran, was blocked, waited for a CPU. Out: one of nanoseconds alone, in which a thread's samples
//! share the time that it ran. Never: invents time, or drops any.

use super::raw::{RawProfile, RawSample};
use profiler_common::abi::Doing;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The leaf of time on a CPU in which no sample was taken.
pub const NOT_SAMPLED: &str = "[on-CPU, not sampled]";

/// A thread: its process's ID and its own. Several, if the ID was given again; their times add up.
type Thread = (u32, Option<u32>);

/// How a thread's time is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Whether threads stay apart.
    pub per_thread: bool,
    /// Whether threads are shown that slept from the beginning to the end.
    pub idle_threads: bool,
}

/// What there is to say of the threads' time.
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
    pub strays: u64,
}

/// What is known of one thread.
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
pub fn settle(raw: &RawProfile, how: How) -> (RawProfile, Sums) {
    let mut accounts: BTreeMap<Thread, Account> = BTreeMap::new();
    for sample in &raw.samples {
        let account = accounts.entry(thread(sample)).or_default();
        *match sample.doing {
            Doing::Running => &mut account.sampled,
            Doing::Ran => &mut account.ran_ns,
            Doing::Runnable => &mut account.runnable_ns,
            Doing::Blocked => &mut account.blocked_ns,
        } += sample.weight;
    }
    let sums = sums(raw, &accounts, how);
    let idle: BTreeSet<Thread> = accounts
        .iter()
        .filter(|(_, account)| !how.idle_threads && account.is_idle())
        .map(|(thread, _)| *thread)
        .collect();
    let settled = raw.part(|sample| !idle.contains(&thread(sample)));
    let settled = settled.reweighed(|sample| {
        let account = accounts.get_mut(&thread(sample))?;
        let mut sample = *sample;
        match sample.doing {
            Doing::Running if account.ran_ns == 0 => return None,
            Doing::Running => sample.weight = account.give(sample.weight),
            Doing::Ran if account.sampled > 0 => return None,
            Doing::Ran | Doing::Blocked | Doing::Runnable => {}
        }
        if !how.per_thread {
            sample.who.tid = None;
        }
        Some(sample)
    });
    (settled, sums)
}

fn thread(sample: &RawSample) -> Thread {
    (sample.who.tgid, sample.who.tid)
}

fn sums(raw: &RawProfile, accounts: &BTreeMap<Thread, Account>, how: How) -> Sums {
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
    let is_stray = |sample: &&RawSample| {
        sample.doing == Doing::Running && accounts[&thread(sample)].ran_ns == 0
    };
    sums.strays = raw
        .samples
        .iter()
        .filter(is_stray)
        .map(|sample| sample.count)
        .sum();
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::raw::{RawStack, Who};
    use profiler_common::abi::StackEnd;
    use proptest::prelude::*;

    const SHOWN: How = How {
        per_thread: true,
        idle_threads: true,
    };

    fn sample(tid: u32, doing: Doing, weight: u64) -> RawSample {
        RawSample {
            who: Who {
                tgid: 1,
                incarnation: 0,
                comm: [0; 16],
                tid: Some(tid),
                cpu: None,
            },
            user: None,
            kernel: None,
            doing,
            weight,
            count: 1,
        }
    }

    /// A sample on a stack of one address.
    fn at(raw: &mut RawProfile, address: u64, sample: RawSample) {
        let user = raw.intern(RawStack {
            addresses: [address].into(),
            end: StackEnd::Root,
            guessed: false,
        });
        raw.add(RawSample {
            user: Some(user),
            ..sample
        });
    }

    fn time(raw: &RawProfile, tid: u32) -> u64 {
        let of = |sample: &&RawSample| sample.who.tid == Some(tid);
        raw.samples.iter().filter(of).map(|s| s.weight).sum()
    }

    #[test]
    fn samples_share_the_time_that_their_thread_ran() {
        let mut raw = RawProfile::default();
        at(&mut raw, 1, sample(7, Doing::Running, 3));
        at(&mut raw, 2, sample(7, Doing::Running, 1));
        at(&mut raw, 1, sample(8, Doing::Running, 4));
        raw.add(sample(7, Doing::Ran, 1_000));
        raw.add(sample(8, Doing::Ran, 40));
        raw.add(sample(7, Doing::Blocked, 500));
        let (settled, sums) = settle(&raw, SHOWN);
        let weights: Vec<u64> = settled.samples.iter().map(|s| s.weight).collect();
        assert_eq!(weights, [750, 250, 40, 500]);
        assert_eq!((sums.threads, sums.ran), (2, Duration::from_nanos(1_040)));
        assert_eq!(sums.blocked, Duration::from_nanos(500));
    }

    #[test]
    fn what_was_not_sampled_is_time_all_the_same() {
        let mut raw = RawProfile::default();
        raw.add(sample(7, Doing::Ran, 1_000));
        at(&mut raw, 1, sample(8, Doing::Running, 1));
        let (settled, sums) = settle(&raw, SHOWN);
        assert_eq!(settled.samples.len(), 1);
        assert_eq!(settled.samples[0].doing, Doing::Ran);
        assert_eq!(sums.not_sampled, Duration::from_nanos(1_000));
        assert_eq!(sums.strays, 1);
    }

    #[test]
    fn threads_that_slept_throughout_can_be_left_out() {
        let mut raw = RawProfile::default();
        raw.add(sample(7, Doing::Blocked, 9));
        raw.add(sample(8, Doing::Blocked, 5));
        raw.add(sample(8, Doing::Runnable, 4));
        let how = How {
            per_thread: false,
            idle_threads: false,
        };
        let (settled, sums) = settle(&raw, how);
        assert_eq!(sums.idle, (1, Duration::from_nanos(9)));
        assert_eq!(settled.samples.iter().map(|s| s.weight).sum::<u64>(), 9);
        assert!(settled.samples.iter().all(|s| s.who.tid.is_none()));
    }

    proptest! {
        #[test]
        fn no_nanosecond_is_lost(
            spans in prop::collection::vec((0..4u32, 0..3u8, 0..1u64 << 40), 1..20),
            samples in prop::collection::vec((0..4u32, 1..9u64, 1..1_000_000u64), 0..40),
        ) {
            let mut raw = RawProfile::default();
            for &(tid, kind, ns) in &spans {
                let doing = [Doing::Ran, Doing::Blocked, Doing::Runnable][usize::from(kind)];
                raw.add(sample(tid, doing, ns));
            }
            for &(tid, address, weight) in &samples {
                at(&mut raw, address, sample(tid, Doing::Running, weight));
            }
            let (settled, _) = settle(&raw, SHOWN);
            for tid in 0..4 {
                let own = spans.iter().filter(|(of, ..)| *of == tid);
                let expected: u64 = own.map(|(_, _, ns)| ns).sum();
                prop_assert_eq!(time(&settled, tid), expected);
            }
        }
    }
}
