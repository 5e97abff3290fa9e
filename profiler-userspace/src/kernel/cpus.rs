//! The CPUs that run.
//!
//! In: the list under `/sys`. Out: their numbers.

use std::io;

/// The CPUs that are running.
///
/// # Errors
/// The list under `/sys` cannot be read.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    aya::util::online_cpus().map_err(|(_, error)| error)
}

/// Whether a CPU is running.
pub(super) fn is_online(cpu: u32) -> bool {
    online_cpus().is_ok_and(|cpus| cpus.contains(&cpu))
}
