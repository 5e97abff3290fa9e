//! Many tests at once.
//!
//! In: the probabilities of all things of one kind. Out: which of them are no noise, after Benjamini and Hochberg: of
//! those that are called so, at most one in twenty is expected to be noise. Tests of one tree depend on each other
//! positively, for which this holds.

use super::ALPHA;

/// Results of a family of tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// For each test whether it is significant.
    pub significant: Vec<bool>,
    found: usize,
}

impl Family {
    /// Of these probabilities.
    pub fn new(p: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..p.len()).collect();
        order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
        let enough = |(rank, index): (usize, &usize)| {
            p[*index] <= ALPHA * (rank as f64 + 1.0) / p.len() as f64
        };
        let found = order.iter().enumerate().rposition(enough);
        let found = found.map_or(0, |rank| rank + 1);
        let mut significant = vec![false; p.len()];
        for &index in &order[..found] {
            significant[index] = true;
        }
        Self { significant, found }
    }

    /// How many tests there were.
    pub fn tests(&self) -> usize {
        self.significant.len()
    }

    /// Error probability of the intervals of significant changes. These were chosen for their
    /// distance, so their intervals are wider: then as many of them hold the true value as of
    /// others.
    pub fn alpha_of_found(&self) -> f64 {
        match self.found {
            0 => ALPHA,
            found => ALPHA * found as f64 / self.tests() as f64,
        }
    }

    /// How improbable a single change has to be to be found where nothing else changed.
    pub fn alpha_of_first(&self) -> f64 {
        ALPHA / self.tests().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_rank_that_is_small_enough_takes_all_before_it() {
        // Bounds: 0.01, 0.02, 0.03, 0.04, 0.05.
        let family = Family::new(&[0.9, 0.029, 0.012, 0.025, 0.7]);
        assert_eq!(family.significant, [false, true, true, true, false]);
        assert!((family.alpha_of_found() - 0.03).abs() < 1e-12);
        let none = Family::new(&[0.04, 0.2, 0.3]);
        assert!(none.significant.iter().all(|found| !found));
        assert!((none.alpha_of_found() - ALPHA).abs() < 1e-12);
        assert!((none.alpha_of_first() - ALPHA / 3.0).abs() < 1e-12);
        assert_eq!(Family::new(&[]).tests(), 0);
    }
}
