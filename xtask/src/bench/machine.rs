//! The machine in words.
//!
//! In: `/proc`. Out: a sentence without which figures mean nothing. Never changes anything.

use std::fs;
use std::thread;

/// How many CPUs there are.
pub(super) fn cpus() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}

/// The load averages of 1, 5 and 15 minutes, as the kernel prints them.
pub(super) fn load() -> String {
    let text = read("/proc/loadavg");
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    words.join(" ")
}

/// Properties of the machine that the figures depend on.
pub(super) fn describe() -> String {
    let about = read("/proc/cpuinfo");
    let model = about.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": "));
    format!(
        "{} CPUs ({}), Linux {}. Load average at the start: {}.",
        cpus(),
        model.map_or(std::env::consts::ARCH, |(_, model)| model),
        read("/proc/sys/kernel/osrelease").trim(),
        load()
    )
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
