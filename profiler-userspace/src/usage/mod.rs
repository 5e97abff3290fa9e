//! CPU time and memory that this process uses.

mod budget;

pub(crate) use budget::{Budget, Limit};

use std::time::Duration;

/// The CPU time of this process up to now.
pub(crate) fn cpu_time() -> Duration {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(cpu.tv_sec).unwrap_or(0),
        u32::try_from(cpu.tv_nsec).unwrap_or(0),
    )
}

/// Resident memory of this process, in bytes; `statm` counts pages (`proc_pid_statm(5)`).
pub(crate) fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        assert!(resident_bytes() > 1 << 20);
        assert!(cpu_time() > Duration::ZERO);
    }
}
