//! Output of a workload at its end: its own measurements and counts.
//!
//! In: its lines behind `ready`. Out: times, shares and numbers by function. A line is
//! `truth FUNCTION NANOSECONDS`, or `truth FUNCTION TID RAN WAITED PASSED` of a thread by the kernel's accounts, in
//! nanoseconds, or `WHAT FUNCTION NUMBER`.

/// The lines of a workload behind its first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// As they came.
    pub lines: Vec<String>,
}

/// The kernel's account of one thread, in seconds.
#[derive(Clone, Debug)]
pub struct Account {
    /// The function that the thread runs.
    pub function: String,
    /// The thread's ID.
    pub tid: u32,
    /// On a CPU.
    pub ran: f64,
    /// Ready to run, without a CPU.
    pub runnable: f64,
    /// Neither.
    pub blocked: f64,
}

impl Said {
    /// Reads what a workload wrote that nobody read meanwhile.
    pub fn read(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let lines = text.lines().map(str::to_owned).collect();
        Self { lines }
    }

    /// Seconds by function.
    pub fn seconds(&self) -> Vec<(String, f64)> {
        let lines = self.lines.iter().filter_map(|line| {
            let (function, ns) = line.strip_prefix("truth ")?.split_once(' ')?;
            Some((function.to_owned(), ns.parse::<f64>().ok()? / 1e9))
        });
        lines.collect()
    }

    /// The seconds of one function.
    ///
    /// # Panics
    ///
    /// When the workload did not measure it.
    #[track_caller]
    pub fn seconds_of(&self, function: &str) -> f64 {
        let all = self.seconds();
        let found = all.iter().find(|(name, _)| name == function);
        found
            .unwrap_or_else(|| panic!("no time of {function} in {self:?}"))
            .1
    }

    /// The share of the time that each function took.
    ///
    /// # Panics
    ///
    /// When the workload measured nothing.
    #[track_caller]
    pub fn shares(&self) -> Vec<(String, f64)> {
        let spent = self.seconds();
        let total: f64 = spent.iter().map(|(_, seconds)| seconds).sum();
        assert!(total > 0.0, "no truth in {self:?}");
        spent
            .into_iter()
            .map(|(function, seconds)| (function, seconds / total))
            .collect()
    }

    /// How many of something there were in a function, by the workload's own count.
    ///
    /// # Panics
    ///
    /// When the workload did not count it.
    #[track_caller]
    pub fn number(&self, what: &str, function: &str) -> u64 {
        let prefix = format!("{what} {function} ");
        let line = self
            .lines
            .iter()
            .find_map(|line| line.strip_prefix(&prefix));
        line.and_then(|number| number.trim().parse().ok())
            .unwrap_or_else(|| panic!("no {prefix}in {self:?}"))
    }

    /// The kernel's accounts of each thread.
    pub fn accounts(&self) -> Vec<Account> {
        let lines = self.lines.iter().filter_map(|line| {
            let words: Vec<&str> = line.strip_prefix("truth ")?.split(' ').collect();
            let [function, tid, ran, waited, passed] = words[..] else {
                return None;
            };
            let seconds = |ns: &str| Some(ns.parse::<f64>().ok()? / 1e9);
            let (ran, runnable, passed) = (seconds(ran)?, seconds(waited)?, seconds(passed)?);
            Some(Account {
                function: function.to_owned(),
                tid: tid.parse().ok()?,
                ran,
                runnable,
                blocked: passed - ran - runnable,
            })
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[&str]) -> Said {
        Said {
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    #[test]
    fn shares_are_of_all_that_was_measured() {
        let said = said(&["truth a 1000000000", "faults a 7", "truth b 3000000000"]);
        assert_eq!(
            said.shares(),
            [("a".to_owned(), 0.25), ("b".to_owned(), 0.75)]
        );
        assert!((said.seconds_of("b") - 3.0).abs() < 1e-9);
        assert_eq!(said.number("faults", "a"), 7);
    }

    #[test]
    fn a_thread_that_neither_ran_nor_was_ready_was_blocked() {
        let accounts = said(&["truth f 12 1000000000 2000000000 4000000000"]).accounts();
        assert_eq!((accounts.len(), accounts[0].tid), (1, 12));
        assert!((accounts[0].blocked - 1.0).abs() < 1e-9);
    }

    #[test]
    #[should_panic(expected = "no faults b")]
    fn a_number_that_was_not_counted_is_noticed() {
        said(&["faults a 7"]).number("faults", "b");
    }
}
