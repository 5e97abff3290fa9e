//! Which waits of a thread are sampled, and what those stand for that are; see [`profiler_common::wait_sampling`].

use crate::{platform::config::config, store::threads, task};
use profiler_common::wait_sampling;

/// Whether this is one of the waits of the thread that are sampled. A thread without an entry has not waited before,
/// and its first wait is.
#[inline(always)]
pub(crate) fn is_sampled(entry: &threads::Entry, now: u64) -> bool {
    let period = config!(wait_sample_period_ns);
    let interval =
        wait_sampling::mean_gap(entry.interval_ns(), entry.left_before(now), now, period);
    entry.set_interval(interval);
    wait_sampling::is_looked_at(interval, period, task::random())
}

/// Weight of time off the CPU; see [`threads::Entry::interval_ns`].
#[inline(always)]
pub(crate) fn weight(spent_ns: u64, interval_ns: u64) -> u64 {
    match config!(wait_sample_period_ns) {
        0 => spent_ns,
        period => wait_sampling::weight(spent_ns, interval_ns, period),
    }
}
