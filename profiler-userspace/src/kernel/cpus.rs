//! The CPUs that run.
//!
//! In: the list under `/sys`. Out: their numbers, and a number for each period in which one is online.

use std::io;
use std::os::unix::fs::MetadataExt as _;

/// The CPUs that are running.
///
/// # Errors
/// The list under `/sys` cannot be read.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    aya::util::online_cpus().map_err(|(_, error)| error)
}

/// Number of the period in which a CPU is online now; it has another when it has gone offline and returned. It is the inode of a
/// folder that the kernel makes when the CPU comes online (`drivers/base/topology.c`). None where there is no such folder.
pub fn online_period(cpu: u32) -> Option<u64> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
    Some(std::fs::metadata(folder).ok()?.ino())
}

/// Whether a CPU is running.
pub(super) fn is_online(cpu: u32) -> bool {
    online_cpus().is_ok_and(|cpus| cpus.contains(&cpu))
}
