//! The machine in words.
//!
//! In: `/proc` and `/sys`. Out: a sentence or two, without which figures mean nothing.

use std::fs;
use std::path::Path;
use std::thread;

/// How many CPUs there are.
pub(super) fn cpus() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}

/// The load averages, as the kernel prints them.
pub(super) fn load() -> String {
    let text = read("/proc/loadavg");
    text.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

/// What the figures depend on.
pub(super) fn describe() -> String {
    let about = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = about.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": "))
            .map_or("", |(_, value)| value)
    };
    let model = match field("model name") {
        "" => std::env::consts::ARCH,
        model => model,
    };
    let kind = if field("flags").split(' ').any(|flag| flag == "hypervisor") {
        "virtual machine"
    } else {
        "machine"
    };
    let devices = Path::new("/sys/bus/event_source/devices");
    let counters = match ["cpu", "cpu_core", "armv8_pmuv3_0"]
        .iter()
        .any(|name| devices.join(name).exists())
    {
        true => "with",
        false => "without",
    };
    format!(
        "A {kind} of {} CPUs ({model}) {counters} performance counters, Linux {}. Load average at the start: {}.",
        cpus(),
        read("/proc/sys/kernel/osrelease").trim(),
        load()
    )
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
