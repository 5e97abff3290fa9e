//! Waits: windows of both sides are mixed at random, as if they were of one.
//!
//! In: a thing's time by window. Out: how often chance alone brings such a difference. Waits have heavy tails, so that
//! their variance says little: one of seconds among thousands of microseconds decides it.
//! Never: another answer for the same windows; the seed is fixed.

use super::MIN_WINDOWS;
use super::series::{Group, Series};
use fastrand::Rng;
use std::cell::RefCell;

const SEED: u64 = 0x666c_616d_6562_7066;
/// At least so many mixtures are there to be tried.
const MIN: usize = 10_000;
/// At most, since each takes memory.
const MAX: usize = 200_000;
/// After so many mixtures that differ at least as much, it is known well enough how probable that is.
const ENOUGH: usize = 50;
/// Windows of both sides may differ so much in length and still be mixed.
const TOLERANCE: f64 = 0.05;

/// Mixtures of the windows of both sides.
#[derive(Debug)]
pub struct Permutations {
    groups: [Vec<Group>; 2],
    /// How many are tried at most.
    most: usize,
    mixtures: RefCell<Mixtures>,
}

#[derive(Debug)]
struct Mixtures {
    rng: Rng,
    /// A place for each window.
    order: Vec<u16>,
    /// For each mixture the windows that are of the first side in it.
    first: Vec<u16>,
}

impl Permutations {
    /// For so many tests of windows of these sides, each by their seconds; none if there are too few or too many windows.
    pub fn new([before, after]: [&Series; 2], tests: usize) -> Option<Self> {
        let groups = alike(before, after);
        let all = groups[0].len() + groups[1].len();
        let windows = u16::try_from(all).ok()?;
        (groups.iter().all(|groups| groups.len() >= 2)).then(|| Self {
            groups,
            // Enough for the smallest probability that can decide among so many tests.
            most: (tests.saturating_mul(40)).clamp(MIN, MAX),
            mixtures: RefCell::new(Mixtures {
                rng: Rng::with_seed(SEED),
                order: (0..windows).collect(),
                first: Vec::new(),
            }),
        })
    }

    /// How probable at least such a difference of time for each second is.
    pub fn p(&self, values: [&[f64]; 2]) -> f64 {
        let mut rates: Vec<f64> = Vec::new();
        for (groups, values) in self.groups.iter().zip(values) {
            let rate =
                |group: &Group| values[group.windows.clone()].iter().sum::<f64>() / group.base;
            rates.extend(groups.iter().map(rate));
        }
        let own = self.groups[0].len();
        let sum: f64 = rates.iter().sum();
        let others = (rates.len() - own) as f64;
        let difference = |first: f64| ((sum - first) / others - first / own as f64).abs();
        let observed = difference(rates[..own].iter().sum());
        if observed == 0.0 {
            return 1.0;
        }
        // Sums in another order differ by less than this.
        let observed = observed * (1.0 - 1e-9);
        let mut mixtures = self.mixtures.borrow_mut();
        let mut reached = 0;
        for tried in 1..=self.most {
            let first = mixtures.mixture(tried - 1, own);
            let first: f64 = first.iter().map(|&window| rates[window as usize]).sum();
            reached += usize::from(difference(first) >= observed);
            if reached == ENOUGH {
                return reached as f64 / tried as f64;
            }
        }
        (reached + 1) as f64 / (self.most + 1) as f64
    }
}

impl Mixtures {
    /// The windows of the first side in a mixture, which is made if it was not there yet.
    fn mixture(&mut self, number: usize, own: usize) -> &[u16] {
        while self.first.len() < (number + 1) * own {
            for place in 0..own {
                let other = self.rng.usize(place..self.order.len());
                self.order.swap(place, other);
            }
            self.first.extend_from_slice(&self.order[..own]);
        }
        &self.first[number * own..(number + 1) * own]
    }
}

/// Windows of both sides that are as long as each other, put together where they were not.
fn alike(before: &Series, after: &Series) -> [Vec<Group>; 2] {
    let (a, b) = (before.usual(), after.usual());
    let most = |series: &Series| (series.windows() / MIN_WINDOWS).max(1);
    let mut best = (f64::INFINITY, 1, 1);
    for i in 1..=most(before) {
        for j in 1..=most(after) {
            let (x, y) = (a * i as f64, b * j as f64);
            let apart = (x - y).abs() / x.max(y).max(f64::MIN_POSITIVE);
            // The shortest that will do, else the closest.
            if apart < best.0 && best.0 > TOLERANCE {
                best = (apart, i, j);
            }
        }
    }
    [before.groups(best.1), after.groups(best.2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(windows: usize, seconds: f64) -> Series {
        Series::new(&[vec![seconds; windows]], 0)
    }

    #[test]
    fn steady_differences_are_improbable_and_lone_waits_are_not() {
        let side = series(20, 1.0);
        let permutations = Permutations::new([&side, &side], 100).expect("windows");
        let steady = permutations.p([&[1.0; 20], &[2.0; 20]]);
        assert!(steady < 2e-4, "{steady}");
        let mut one = [0.0; 20];
        one[7] = 7.1;
        let lone = permutations.p([&[0.0; 20], &one]);
        assert!(lone > 0.9, "{lone}");
        assert!((permutations.p([&one, &one]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn windows_of_other_lengths_are_put_together() {
        let [a, b] = alike(&series(40, 0.5), &series(40, 0.75));
        assert_eq!((a.len(), b.len()), (13, 20));
        let [a, b] = alike(&series(40, 0.5), &series(40, 0.51));
        assert_eq!((a.len(), b.len()), (40, 40));
        let [a, b] = alike(&series(20, 0.1), &series(40, 1.0));
        assert_eq!((a.len(), b.len()), (10, 40));
    }
}
