//! Runs of a program that the kernel left out.
//!
//! In: a loaded program. Out: how often a tracepoint was passed on a CPU that was running the very program that is
//! attached there, as happens in interrupts. The kernel does not run a program within itself, and counts these.

use std::os::fd::{AsRawFd as _, BorrowedFd};

/// How many runs the kernel left out so far; none where it does not say (before Linux 5.12).
pub(super) fn runs(program: BorrowedFd<'_>) -> u64 {
    let path = format!("/proc/self/fdinfo/{}", program.as_raw_fd());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    parse(&text).unwrap_or(0)
}

/// The number behind `recursion_misses` (`kernel/bpf/syscall.c`, `bpf_prog_show_fdinfo`).
fn parse(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let number = lines.find_map(|line| line.strip_prefix("recursion_misses:"))?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_runs_are_read_from_the_program_info() {
        let text =
            "pos:\t0\nprog_type:\t17\nrun_cnt:\t9\nrecursion_misses:\t42\nverified_insns:\t7\n";
        assert_eq!(parse(text), Some(42));
        assert_eq!(parse("prog_type:\t17\n"), None);
    }
}
