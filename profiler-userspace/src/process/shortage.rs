//! Amounts left out, because there was no room for them.
//!
//! In: the limit on open files of this process, which keeps the files of others open. Out: how many may be kept,
//! and [`Shortage`]: how many were not, and what else exceeded a limit.

use rustix::process::{Resource, getrlimit};

/// Amounts of process data that exceeded a limit. The report says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// Mapped files that were not kept open. They have names if they are still there at the end.
    pub files: usize,
    /// Processes whose directory of perf maps was not kept open. Their code has names if they still run at
    /// the end.
    pub code_maps: usize,
    /// Readings that had more executable mappings than are kept of one.
    pub mappings: usize,
    /// Readings that were forgotten for later ones of the same process.
    pub readings: usize,
    /// Functions of interpreters that were not kept.
    pub functions: usize,
}

/// The most mapped files that are kept open: half of the limit.
pub(super) fn most_files() -> usize {
    of_descriptors(2)
}

/// The most processes whose directories of perf maps are kept open; each takes two descriptors.
pub(super) fn most_code_maps() -> usize {
    of_descriptors(16)
}

/// One in so many of the files that this process may have open; of any number, no more than is of use.
fn of_descriptors(part: u64) -> usize {
    const MAX: u64 = 1 << 16;
    let most = getrlimit(Resource::Nofile).current.unwrap_or(MAX).min(MAX);
    usize::try_from(most / part).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_file_descriptors_stay_free() {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let taken = most_files() + 2 * most_code_maps();
        assert!(taken as u64 <= limit * 5 / 8, "{taken} of {limit}");
        assert!(most_code_maps() > 0);
    }
}
