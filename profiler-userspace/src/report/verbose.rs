//! Output of `-v`: counters and numbers that are no findings.
//!
//! In: counters, and what was counted. Out: lines of a name and a number.

use crate::text::number::grouped;
use crate::unwind::loader::Loaded;
use profiler_common::abi::{Counter, Counters, StackEnd};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Every counter by name, for verbose output. `whose`: which probe's, with a blank behind it, where there is
/// another.
pub(crate) fn counters(counters: &Counters, whose: &str) -> String {
    let mut text = String::new();
    for &counter in Counter::ALL {
        let (name, count) = (counter.name(), counters.get(counter));
        let _ = writeln!(text, "{whose}counter: {name} {count}");
    }
    text
}

/// The unwind tables, for verbose output.
pub(crate) fn tables(loaded: &Loaded) -> String {
    format!(
        "unwind tables: {} of objects, {} rows, {} bytes in the kernel, made in {:.1} ms; {} files without; {} evicted, {} given back; \
         {} functions read from their code, {} left for later\n",
        loaded.tables,
        grouped(loaded.rows as u64),
        grouped(loaded.bytes),
        loaded.time.as_secs_f64() * 1000.0,
        loaded.no_table,
        loaded.evicted,
        loaded.given_back,
        grouped(loaded.functions as u64),
        grouped(loaded.functions_left_out as u64),
    )
}

/// Where user stacks were cut short, for verbose output: by reason and module of the last frame.
pub(crate) fn cut_short(counts: &BTreeMap<(StackEnd, String), u64>) -> String {
    let mut text = String::new();
    for ((end, module), count) in counts {
        let mark = end.mark().unwrap_or_default();
        let _ = writeln!(text, "cut short: {count} in {module} {mark}");
    }
    text
}
