//! What a recording ends with, wherever its outputs go.
//!
//! In: what it cost, and which files were written. Out: text for stderr.

use crate::kernel::Kernel;
use crate::pipeline::write::wrote;
use crate::report::cost::{self, Cost};
use crate::report::findings;
use crate::unwind::loader::Loaded;
use profiler_common::abi::Counters;

/// What is left to do: say this, and end accordingly.
pub(crate) struct Report {
    /// For stderr.
    pub(crate) text: String,
    /// Whether there was anything to write.
    pub(crate) wrote: bool,
}

/// The counters of all of the kernel half's events.
pub(crate) fn counters(kernel: &Kernel) -> Vec<Counters> {
    let events = 0..kernel.events();
    events.map(|event| kernel.counters(event)).collect()
}

/// What the recording cost by these counters, and which files it wrote.
pub(crate) fn closing(
    kernel: &Kernel,
    loaded: Option<&Loaded>,
    counters: &[Counters],
    files: Vec<String>,
) -> String {
    let tables = loaded.map_or(0, |loaded| loaded.bytes);
    let cost = Cost::now(kernel.map_bytes() + tables);
    let mut findings = vec![cost::cost(counters, &cost)];
    findings.extend(wrote(files));
    findings::shown(&findings)
}
