//! The windows of one side, and how they are put together into longer ones.
//!
//! In: for each recording of a side what each window's values are divided by: the weight of everything in it, or its
//! seconds. Out: groups of neighbours, for each length that leaves enough of them. Windows without any are left out.

use super::MIN_WINDOWS;
use std::ops::Range;

/// One side: recordings one behind the other, each in windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Divisor of each window's values.
    base: Vec<f64>,
    /// The windows of each recording.
    recordings: Vec<Range<usize>>,
    /// For each length the windows that are one.
    lengths: Vec<Vec<Group>>,
    /// How many samples there are.
    samples: f64,
}

/// Windows that are taken as one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) windows: Range<usize>,
    pub(super) base: f64,
}

impl Series {
    /// A side of recordings with these windows, in which so many samples were taken.
    pub fn new(recordings: &[Vec<f64>], samples: u64) -> Self {
        let mut base: Vec<f64> = Vec::new();
        let mut ranges = Vec::new();
        for windows in recordings {
            ranges.push(base.len()..base.len() + windows.len());
            base.extend(windows);
        }
        let mut series = Self {
            base,
            recordings: ranges,
            lengths: Vec::new(),
            samples: samples as f64,
        };
        let mut together = 1;
        loop {
            let groups = series.groups(together);
            if together > 1 && groups.len() < MIN_WINDOWS {
                break;
            }
            series.lengths.push(groups);
            together *= 2;
        }
        series
    }

    /// As many neighbours of a recording together. What is left at its end is a group if it is at least half of one.
    pub(super) fn groups(&self, together: usize) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for recording in &self.recordings {
            let mut start = recording.start;
            let mut first = true;
            while start < recording.end {
                let end = (start + together).min(recording.end);
                let base = self.base[start..end].iter().sum();
                match groups.last_mut() {
                    Some(last) if !first && (end - start) * 2 < together => {
                        last.windows.end = end;
                        last.base += base;
                    }
                    _ => groups.push(Group {
                        windows: start..end,
                        base,
                    }),
                }
                first = false;
                start = end;
            }
        }
        groups.retain(|group| group.base > 0.0);
        groups
    }

    pub(super) fn lengths(&self) -> &[Vec<Group>] {
        &self.lengths
    }

    /// Each recording as one group.
    pub(super) fn recordings(&self) -> Vec<Group> {
        let whole = |windows: &Range<usize>| Group {
            windows: windows.clone(),
            base: self.base[windows.clone()].iter().sum(),
        };
        let groups = self.recordings.iter().map(whole);
        groups.filter(|group| group.base > 0.0).collect()
    }

    /// How many recordings there are.
    pub fn count(&self) -> usize {
        self.recordings.len()
    }

    /// How many windows there are, those of all recordings.
    pub fn windows(&self) -> usize {
        self.base.len()
    }

    /// Whether each recording has enough windows to say how much it varies. Those in which nothing was counted say nothing.
    pub fn varies(&self) -> bool {
        let said = |windows: &Range<usize>| {
            let base = &self.base[windows.clone()];
            base.iter().filter(|base| **base > 0.0).count()
        };
        self.recordings
            .iter()
            .all(|windows| said(windows) >= MIN_WINDOWS)
    }

    /// The sum of what values are divided by.
    pub fn total(&self) -> f64 {
        self.base.iter().sum()
    }

    pub(super) fn samples(&self) -> f64 {
        self.samples
    }

    /// How long a window usually is, where windows are divided by their seconds.
    pub(super) fn usual(&self) -> f64 {
        let mut sorted = self.base.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }
}

/// A share or a rate, and its variance when groups, not samples, are what is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) variance: f64,
    /// The degrees of freedom.
    pub(super) freedom: f64,
}

impl Ratio {
    /// Of values by window; none of fewer than two groups.
    pub(super) fn of(groups: &[Group], values: &[f64]) -> Option<Self> {
        let count = groups.len() as f64;
        if count < 2.0 {
            return None;
        }
        let value = |group: &Group| values[group.windows.clone()].iter().sum::<f64>();
        let base: f64 = groups.iter().map(|group| group.base).sum();
        let ratio = groups.iter().map(value).sum::<f64>() / base;
        let square = |group: &Group| (value(group) - ratio * group.base).powi(2);
        let squares: f64 = groups.iter().map(square).sum();
        Some(Self {
            variance: squares * count / (count - 1.0) / (base * base),
            freedom: count - 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_put_together_as_long_as_ten_are_left() {
        let series = Series::new(&[vec![1.0; 41]], 41);
        let counts: Vec<usize> = series.lengths().iter().map(Vec::len).collect();
        assert_eq!(counts, [41, 21, 10]);
        let last = &series.lengths()[2];
        assert_eq!(last[9].windows, 36..41);
        assert!((last[9].base - 5.0).abs() < 1e-12);
    }

    #[test]
    fn recordings_never_share_a_group_and_empty_windows_are_none() {
        let series = Series::new(&[vec![1.0; 3], vec![0.0, 2.0, 2.0]], 9);
        let groups: Vec<_> = (series.groups(2).iter())
            .map(|group| group.windows.clone())
            .collect();
        assert_eq!(groups, [0..2, 2..3, 3..5, 5..6]);
        assert_eq!(series.groups(1).len(), 5);
        assert_eq!(series.recordings().len(), 2);
    }

    #[test]
    fn a_program_that_was_busy_in_few_windows_does_not_say_how_much_it_varies() {
        let mut windows = vec![0.0; 40];
        windows[..9].fill(100.0);
        assert!(!Series::new(&[windows.clone()], 900).varies());
        windows[39] = 1.0;
        assert!(Series::new(&[windows], 901).varies());
    }

    #[test]
    fn the_variance_is_that_of_the_ratio_estimator() {
        let series = Series::new(&[vec![10.0, 20.0, 10.0]], 40);
        let ratio = Ratio::of(&series.groups(1), &[1.0, 6.0, 1.0]).expect("three groups");
        // The share is 0.2; the rests are -1, 2 and -1.
        let variance = 6.0 * 3.0 / 2.0 / 1600.0;
        assert!((ratio.variance - variance).abs() < 1e-12, "{ratio:?}");
        assert!((ratio.freedom - 2.0).abs() < 1e-12);
        assert_eq!(Ratio::of(&series.recordings(), &[1.0, 6.0, 1.0]), None);
    }
}
