//! How long each kernel test took the last time.
//!
//! In: a file under the target directory. Out: times, for which tests to begin first, and the file anew.
//! It decides about the order alone: without the file tests run all the same, a little longer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Times by test, such as `kernel_x::a`.
pub(crate) struct TestTimes {
    path: PathBuf,
    times: BTreeMap<String, Duration>,
}

impl TestTimes {
    /// Reads what the last runs with this target directory left.
    pub(crate) fn read(target: &Path) -> Self {
        let path = target.join("test-times");
        let text = fs::read_to_string(&path).unwrap_or_default();
        Self {
            times: parse(&text),
            path,
        }
    }

    /// How long a test took the last time; one that has not run yet may take long.
    pub(crate) fn of(&self, test: &str) -> Duration {
        self.times.get(test).copied().unwrap_or(Duration::MAX)
    }

    /// Takes in how long tests took this time, and writes all.
    pub(crate) fn keep(&mut self, taken: &[(Duration, String)]) -> Result<()> {
        let taken = taken.iter().map(|(time, test)| (test.clone(), *time));
        self.times.extend(taken);
        let line = |(test, time): (&String, &Duration)| format!("{} {test}\n", time.as_millis());
        let text: String = self.times.iter().map(line).collect();
        fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn parse(text: &str) -> BTreeMap<String, Duration> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let times = lines
        .filter_map(|(ms, test)| Some((test.to_owned(), Duration::from_millis(ms.parse().ok()?))));
    times.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_until_a_test_runs_again() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let ms = Duration::from_millis;
        let mut times = TestTimes::read(folder.path());
        assert_eq!(times.of("x::a"), Duration::MAX);
        let first = [(ms(7), "x::a".to_owned()), (ms(9), "x::b".to_owned())];
        times.keep(&first).expect("the folder can be written");
        let mut again = TestTimes::read(folder.path());
        let second = [(ms(8), "x::a".to_owned())];
        again.keep(&second).expect("the folder can be written");
        let last = TestTimes::read(folder.path());
        assert_eq!((last.of("x::a"), last.of("x::b")), (ms(8), ms(9)));
    }
}
