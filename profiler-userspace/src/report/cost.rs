//! Cost of a recording.
//!
//! In: the kernel half's counters, and what this process used. Out: a finding.

use super::findings::Finding;
use crate::process::Status;
use crate::text::number::{mebibytes, seconds};
use crate::usage::cpu_time;
use profiler_common::abi::{Class, Counter, Counters};
use std::time::Duration;

/// CPU time and memory that the profiler itself used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// CPU time of this process.
    pub(crate) cpu: Duration,
    /// The most memory that was ever resident, in bytes.
    pub(crate) peak_bytes: u64,
    /// Memory of the BPF maps, in bytes.
    pub(crate) map_bytes: u64,
}

impl Cost {
    /// CPU time and memory used up to now.
    pub(crate) fn now(map_bytes: u64) -> Self {
        let status = Status::of(std::process::id());
        let peak_kib = status.and_then(|status| status.number("VmHWM:"));
        Self {
            cpu: cpu_time(),
            peak_bytes: u64::from(peak_kib.unwrap_or(0)) * 1024,
            map_bytes,
        }
    }
}

/// The finding on the cost, by the counters of all probes. `own_share`: how much of what was sampled was the profiler.
pub(crate) fn cost(counters: &[Counters], cost: &Cost, own_share: Option<String>) -> Finding {
    // The off-CPU program runs twice for each wait, but once for two if both threads of a switch are targets.
    let runs = |counters: &Counters| match counters.get(Counter::Entered) {
        0 => counters.sum(Class::Fired),
        entered => entered,
    };
    let runs: u64 = counters.iter().map(runs).sum();
    let ns: u64 = counters
        .iter()
        .map(|counters| counters.get(Counter::RunTime))
        .sum();
    let each = ns.checked_div(runs).unwrap_or(0);
    let own = own_share.map(|share| format!("{share} of all recorded, "));
    Finding::new(
        "cost",
        format!(
            "{}{} in the kernel ({:.1} µs each), {:.2} s CPU and {} here, {} of BPF maps",
            own.unwrap_or_default(),
            seconds(Duration::from_nanos(ns)),
            each as f64 / 1000.0,
            cost.cpu.as_secs_f64(),
            mebibytes(cost.peak_bytes),
            mebibytes(cost.map_bytes),
        ),
    )
}
