//! The accounts that flame-bpf closes each recording with.
//!
//! In: stderr of a run with `-v`, which holds a line `counter: <name> <value>` for each counter; the lines of a second
//! probe begin with its name.
//! Out: a [`Balance`] that can be added up.

use std::collections::BTreeMap;

use crate::feature::broken;

/// Where each firing of a recording ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// All firings of the probe.
    pub fired: u64,
    /// Those that became samples.
    pub recorded: u64,
    /// Those that were left out because they were not asked for, by reason.
    pub filtered: BTreeMap<String, u64>,
    /// Those that should have become samples and did not, by reason.
    pub lost: BTreeMap<String, u64>,
}

impl Balance {
    /// Reads the counters among the lines of `stderr`; `None` when `fired` or `recorded` is missing or
    /// a counter's line cannot be read.
    pub fn parse(stderr: &str) -> Option<Self> {
        let mut balance = Self::default();
        let (mut fired, mut recorded) = (None, None);
        for line in stderr.lines() {
            let Some(counter) = line.trim().strip_prefix("counter: ") else {
                continue;
            };
            let (name, value) = counter.trim().rsplit_once(' ')?;
            let value = value.parse().ok()?;
            let name = name.trim();
            if name == "fired" {
                fired = Some(value);
            } else if name == "recorded" {
                recorded = Some(value);
            } else if name.starts_with("filtered-") {
                balance.filtered.insert(name.to_owned(), value);
            } else if name.starts_with("lost-") {
                balance.lost.insert(name.to_owned(), value);
            }
        }
        balance.fired = fired?;
        balance.recorded = recorded?;
        Some(balance)
    }

    /// As [`Balance::parse`], of the second probe, whose lines begin with its name and a blank.
    pub fn parse_of(probe: &str, stderr: &str) -> Option<Self> {
        let lines = stderr.lines();
        let own = lines.filter_map(|line| line.trim().strip_prefix(probe)?.strip_prefix(' '));
        Self::parse(&own.collect::<Vec<_>>().join("\n"))
    }

    /// The firings that were not asked for.
    pub fn filtered_total(&self) -> u64 {
        self.filtered.values().sum()
    }

    /// The firings that should have become samples and did not.
    pub fn lost_total(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Panics unless each firing ended in exactly one place.
    #[track_caller]
    pub fn assert_even(&self) {
        if self.fired != self.recorded + self.filtered_total() + self.lost_total() {
            broken(&format!(
                "fired = recorded + filtered + lost does not hold in {self:?}"
            ));
        }
    }

    /// Panics unless each firing ended in exactly one place, and none was lost.
    #[track_caller]
    pub fn assert_lossless(&self) {
        self.assert_even();
        if self.lost_total() > 0 {
            broken(&format!("firings were lost: {self:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STDERR: &str = "recording...\n\
        counter: fired 100\n\
        counter: recorded 60\n\
        counter: filtered-idle 30\n\
        counter: filtered-target 6\n\
        counter: lost-tallies-full 4\n\
        60 samples of 3 stacks\n";

    #[test]
    fn counters_are_sorted_into_recorded_filtered_and_lost() {
        let balance = Balance::parse(STDERR).expect("all lines are well-formed");
        assert_eq!((balance.fired, balance.recorded), (100, 60));
        assert_eq!((balance.filtered_total(), balance.lost_total()), (36, 4));
        balance.assert_even();
    }

    #[test]
    #[should_panic(expected = "does not hold")]
    fn an_unaccounted_firing_is_noticed() {
        let stderr = STDERR.replace("recorded 60", "recorded 59");
        Balance::parse(&stderr)
            .expect("all lines are well-formed")
            .assert_even();
    }

    #[test]
    fn each_of_two_probes_has_its_own_balance() {
        let stderr = "counter: fired 2\ncounter: recorded 2\nwaits counter: fired 5\n waits counter: recorded 5\n";
        let fired = |balance: Option<Balance>| balance.map(|balance| balance.fired);
        assert_eq!(fired(Balance::parse(stderr)), Some(2));
        assert_eq!(fired(Balance::parse_of("waits", stderr)), Some(5));
        assert_eq!(fired(Balance::parse_of("others", stderr)), None);
    }

    #[test]
    fn a_balance_without_fired_or_recorded_is_none() {
        assert_eq!(Balance::parse("counter: fired 1\n"), None);
        assert_eq!(Balance::parse("counter: fired many\n"), None);
        assert_eq!(Balance::parse(""), None);
    }
}
