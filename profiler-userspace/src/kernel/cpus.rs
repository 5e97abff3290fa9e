//! The CPUs that run.
//!
//! In: the list under `/sys`. Out: their numbers, and which of the times that one is online this is.

use std::io;
use std::os::unix::fs::MetadataExt as _;

/// The CPUs that are running.
///
/// # Errors
/// The list under `/sys` cannot be read.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    aya::util::online_cpus().map_err(|(_, error)| error)
}

/// A number that a CPU has from when it comes online until it goes offline, and that no other such time has: that of the folder
/// which the kernel makes then (`drivers/base/topology.c`). None where there is no such folder.
pub fn time_online(cpu: u32) -> Option<u64> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
    Some(std::fs::metadata(folder).ok()?.ino())
}

/// Whether a CPU is running.
pub(super) fn is_online(cpu: u32) -> bool {
    online_cpus().is_ok_and(|cpus| cpus.contains(&cpu))
}
