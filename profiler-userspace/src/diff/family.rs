//! Tests of things of one kind, and what became of them.
//!
//! In: rows of things. Out: a verdict on each, which takes into account how many were tested. Never: keeps a row, but where
//! windows are mixed.

use super::model::{Change, Tests, Verdict};
use super::rows::{DiffRow, Rows};
use super::stats::permutation::Permutations;
use super::stats::{ALPHA, MIN_SAMPLES, family};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;

/// Things of which each is tested, if it has enough samples.
pub(super) struct Family<'a> {
    rows: &'a Rows,
    /// Tests by what they are of: those that cannot be told apart, such as a function and the only one that calls it, are one.
    known: HashMap<[u64; 2], u32>,
    hashers: [RandomState; 2],
    /// Probability of each test where nothing changed.
    p: Vec<f64>,
    /// Where windows are mixed, the weights of each test by side and window.
    values: Vec<[Vec<f64>; 2]>,
    /// For each thing its test; [`UNTESTED`] where there is none.
    tests: Vec<u32>,
}

/// Stands for the test of a thing with too few samples.
const UNTESTED: u32 = u32::MAX;

impl<'a> Family<'a> {
    /// One without members.
    pub(super) fn new(rows: &'a Rows) -> Self {
        Self {
            rows,
            known: HashMap::default(),
            hashers: [RandomState::default(), RandomState::default()],
            p: Vec::new(),
            values: Vec::new(),
            tests: Vec::new(),
        }
    }

    /// Adds a thing.
    pub(super) fn add(&mut self, row: &DiffRow) {
        let samples = row.samples[0].saturating_add(row.samples[1]);
        let test = match samples >= MIN_SAMPLES {
            true => self.test(row),
            false => UNTESTED,
        };
        self.tests.push(test);
    }

    /// The number of a thing's test.
    fn test(&mut self, row: &DiffRow) -> u32 {
        let bits = |values: &Vec<f64>| values.iter().map(|value| value.to_bits()).collect();
        let bits: [Vec<u64>; 2] = row.values.each_ref().map(bits);
        let key = [0, 1].map(|at| self.hashers[at].hash_one((&bits, row.samples)));
        let next = self.p.len() as u32;
        let test = *self.known.entry(key).or_insert(next);
        if test == next {
            self.p.push(self.rows.estimate(row).p());
            if self.rows.permutes() {
                self.values.push(row.values.clone());
            }
        }
        test
    }

    /// All of them, tested.
    pub(super) fn judged(mut self) -> Judged {
        let [before, after] = &self.rows.sides.series;
        let permutations = (self.rows.permutes())
            .then(|| Permutations::new([before, after], self.p.len()))
            .flatten();
        if let Some(permutations) = &permutations {
            for (p, values) in self.p.iter_mut().zip(&self.values) {
                *p = permutations.p([&values[0], &values[1]]);
            }
        }
        let family = family::Family::new(&self.p);
        let alphas = [ALPHA, family.alpha_of_found()]
            .map(|of_interval| Arc::new([of_interval, family.alpha_of_first()]));
        Judged {
            claims: self.rows.claims,
            tests: self.tests,
            p: self.p,
            significant: family.significant,
            alphas,
        }
    }
}

/// Things of which it is known what became of their tests.
#[derive(Debug)]
pub(super) struct Judged {
    claims: bool,
    tests: Vec<u32>,
    p: Vec<f64>,
    significant: Vec<bool>,
    /// Parts that intervals leave out: of noise, and of what is beyond it.
    alphas: [Arc<[f64; 2]>; 2],
}

impl Judged {
    /// How many were tested.
    pub(super) fn tests(&self) -> Tests {
        let found = self.significant.iter().filter(|found| **found).count();
        Tests {
            tests: self.p.len(),
            found: if self.claims { found } else { 0 },
        }
    }

    /// The verdict on the thing that was added as that one.
    pub(super) fn verdict(&self, thing: usize, samples: [u64; 2], change: f64) -> Verdict {
        match (self.claims, self.tests[thing], samples) {
            (false, ..) => Verdict::NoClaim,
            (true, UNTESTED, _) => Verdict::Few,
            (true, test, _) if !self.significant[test as usize] => Verdict::Noise,
            (true, _, [0, _]) => Verdict::New,
            (true, _, [_, 0]) => Verdict::Gone,
            (true, ..) if change > 0.0 => Verdict::More,
            (true, ..) => Verdict::Less,
        }
    }

    /// The change of that thing, whose row this is.
    pub(super) fn change(&self, thing: usize, row: &DiffRow, rows: &Rows) -> Change {
        let estimate = rows.estimate(row);
        let difference = estimate.change();
        let test = self.tests[thing];
        let is_found = test != UNTESTED && self.significant[test as usize];
        Change {
            estimate,
            p: match test {
                UNTESTED => None,
                test => Some(self.p[test as usize]),
            },
            weights: row.weights,
            verdict: self.verdict(thing, row.samples, difference),
            alphas: (self.claims).then(|| Arc::clone(&self.alphas[usize::from(is_found)])),
            lone: rows.lone(row, difference),
            partner: None,
        }
    }
}
