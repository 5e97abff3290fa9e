//! Compares two sides.
//!
//! In: profiles of one unit, by side. Out: a [`Comparison`]. Never: compares counts, since recordings differ in length and
//! rate: values are parts of everything, or for each second.

use super::entries::{Entry, NameIndex, Tree};
use super::model::{Change, Comparison, Function, Node, Quantity, Side, Sight, Tests, Verdict};
use super::shift;
use super::stats::estimate::{Clusters, Estimate, Measure, Sides, Thing};
use super::stats::family;
use super::stats::permutation::Permutations;
use super::stats::series::Series;
use super::stats::{ALPHA, LEAST_SAMPLES};
use crate::profile::{Profile, Unit, WindowTotals};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use std::hash::BuildHasher as _;
use std::num::NonZeroU64;
use std::sync::Arc;

/// How two sides are to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// For each second instead of parts of everything.
    pub absolute: bool,
    /// Takes samples for independent where the recordings do not say how much they vary.
    pub assume_independent: bool,
}

/// Why two sides cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// They count different things.
    #[error("one input counts {one}, another {other}; compare recordings of one event")]
    Unit {
        /// Unit of one input.
        one: String,
        /// Unit of another input.
        other: String,
    },
    /// Nobody knows how long something took.
    #[error(
        "--absolute cannot be had: an input does not say how long it took, as raw recordings do; leave it out, or record \
         with -o NAME.fbpf"
    )]
    NoTimes,
    /// One side has no samples.
    #[error(
        "there is not one sample {0}, so there is nothing to compare; record while the target is busy"
    )]
    Empty(&'static str),
}

/// Compares; the profiles' memory is freed as they are read.
///
/// # Errors
/// When the profiles cannot be compared as wanted.
pub fn compare(profiles: [Vec<Profile>; 2], wanted: Wanted) -> Result<Comparison, CompareError> {
    let all = || profiles.iter().flatten();
    let unit = all()
        .next()
        .ok_or(CompareError::Empty("at all"))?
        .unit
        .clone();
    if let Some(other) = all().find(|profile| profile.unit != unit) {
        return Err(CompareError::Unit {
            one: unit.noun().to_owned(),
            other: other.unit.noun().to_owned(),
        });
    }
    for (side, which) in profiles.iter().zip(["before", "after"]) {
        if side.iter().all(|profile| profile.total_weight() == 0) {
            return Err(CompareError::Empty(which));
        }
    }
    let has_times = all().all(|profile| !profile.windows.is_empty() && seconds(profile) > 0.0);
    let quantity = match (&unit, has_times) {
        (_, false) if wanted.absolute => return Err(CompareError::NoTimes),
        (Unit::Nanoseconds, true) => Quantity::Time,
        (_, true) if wanted.absolute => {
            let is_time = all().all(|profile| profile.origin.period_ns.is_some());
            if is_time {
                Quantity::Time
            } else {
                Quantity::Rate
            }
        }
        _ => Quantity::Share,
    };
    let seconds =
        has_times.then(|| [0, 1].map(|side| profiles[side].iter().map(seconds).sum::<f64>()));
    Ok(Comparing::new(profiles, &unit, quantity, wanted).comparison(seconds))
}

fn length(totals: &WindowTotals) -> f64 {
    let length = totals.window.end.saturating_sub(totals.window.start);
    length.as_secs_f64()
}

fn seconds(profile: &Profile) -> f64 {
    profile.windows.iter().map(length).sum()
}

/// Factors of each window's weights: the time that a sample stands for, and a correction for
/// losses.
fn factors(profile: &Profile, unit: &Unit, quantity: Quantity) -> Vec<f64> {
    let period = match quantity {
        Quantity::Time if *unit != Unit::Nanoseconds => {
            profile.origin.period_ns.unwrap_or(1) as f64
        }
        _ => 1.0,
    };
    let lost = |totals: &WindowTotals| {
        let wanted = totals.firings.saturating_sub(totals.filtered);
        let recorded = wanted.saturating_sub(totals.lost);
        // How long a lost wait was, nobody knows.
        let is_known = quantity != Quantity::Share && *unit != Unit::Nanoseconds && recorded > 0;
        match is_known {
            true => wanted as f64 / recorded as f64,
            false => 1.0,
        }
    };
    match profile.windows.is_empty() {
        true => vec![period],
        false => (profile.windows.iter())
            .map(|totals| period * lost(totals))
            .collect(),
    }
}

/// Divisor of each window's weights: its length, or for shares its whole weight.
fn base(profile: &Profile, quantity: Quantity) -> Vec<f64> {
    if quantity != Quantity::Share {
        return profile.windows.iter().map(length).collect();
    }
    let mut base = vec![0.0; profile.windows.len().max(1)];
    for sample in profile.samples() {
        base[sample.window.0 as usize] += sample.weight as f64;
    }
    base
}

/// A thing by side and window.
#[derive(Clone)]
struct Row {
    values: [Vec<f64>; 2],
    samples: [u64; 2],
    weights: [u64; 2],
    lone: [u64; 2],
}

impl Row {
    /// Is of nothing again.
    fn clear(&mut self) {
        for values in &mut self.values {
            values.fill(0.0);
        }
        self.samples = [0; 2];
        self.weights = [0; 2];
        self.lone = [0; 2];
    }
}

/// Things of which each is tested, if it has enough samples.
struct Family<'a> {
    comparing: &'a Comparing,
    /// Tests by what they are of: those that cannot be told apart, such as a function and the only one that calls it, are one.
    known: HashMap<[u64; 2], u32>,
    hashers: [RandomState; 2],
    /// Probability of each test where nothing changed.
    p: Vec<f64>,
    /// Where windows are mixed, the weights of each test by side and window.
    values: Vec<[Vec<f64>; 2]>,
    /// For each thing its test.
    tests: Vec<Option<u32>>,
}

/// Data that all comparisons of things share.
struct Comparing {
    tree: Tree,
    unit: Unit,
    quantity: Quantity,
    sides: Sides,
    factors: [Vec<f64>; 2],
    claims: bool,
}

impl Comparing {
    fn new(profiles: [Vec<Profile>; 2], unit: &Unit, quantity: Quantity, wanted: Wanted) -> Self {
        let series = [0, 1].map(|side| {
            let windows: Vec<Vec<f64>> = (profiles[side].iter())
                .map(|profile| base(profile, quantity))
                .collect();
            let samples = profiles[side].iter().map(Profile::total_count).sum();
            Series::new(&windows, samples)
        });
        let measure = match quantity {
            Quantity::Share => Measure::Share,
            Quantity::Time | Quantity::Rate => Measure::Rate,
        };
        let sides = Sides::new(series, measure);
        let factors = [0, 1].map(|side| {
            let profiles = profiles[side].iter();
            profiles
                .flat_map(|profile| factors(profile, unit, quantity))
                .collect()
        });
        Self {
            tree: Tree::new(profiles),
            unit: unit.clone(),
            quantity,
            claims: sides.can_tell() || wanted.assume_independent,
            sides,
            factors,
        }
    }

    fn row(&self) -> Row {
        Row {
            values: [0, 1].map(|side| vec![0.0; self.factors[side].len()]),
            samples: [0; 2],
            weights: [0; 2],
            lone: [0; 2],
        }
    }

    fn add(&self, row: &mut Row, entry: &Entry) {
        let (side, window) = (entry.side(), entry.window as usize);
        let factor = self.factors[side][window];
        row.values[side][window] += entry.weight as f64 * factor;
        row.samples[side] = row.samples[side].saturating_add(entry.count);
        row.weights[side] = row.weights[side].saturating_add(entry.weight);
        row.lone[side] = row.lone[side].max(entry.lone);
    }

    /// Functions by name: what was counted in them, and in what they called.
    fn functions(&self) -> Vec<(NameIndex, [Row; 2])> {
        let names = &self.tree.names;
        let mut rows: Vec<Option<[Row; 2]>> = vec![None; names.len()];
        let mut seen: Vec<NameIndex> = Vec::new();
        // For each name the last own node that was met below it, plus one.
        let mut met: Vec<u32> = vec![0; names.len()];
        let mut last = None;
        for entry in &self.tree.entries {
            if last != Some(entry.own) {
                last = Some(entry.own);
                seen.clear();
                for node in self.tree.callers(entry.own as usize) {
                    let name = self.tree.nodes[node].name;
                    let is_new =
                        std::mem::replace(&mut met[name.index()], entry.own + 1) != entry.own + 1;
                    if is_new && names[name.index()].class.is_code() {
                        seen.push(name);
                    }
                }
            }
            for (place, name) in seen.iter().enumerate() {
                let rows = rows[name.index()].get_or_insert_with(|| [self.row(), self.row()]);
                if place == 0 {
                    self.add(&mut rows[0], entry);
                }
                self.add(&mut rows[1], entry);
            }
        }
        let rows = (0..).map(NameIndex).zip(rows);
        rows.filter_map(|(name, rows)| Some((name, rows?)))
            .collect()
    }

    /// Whether waits are tested by mixing windows.
    fn permutes(&self) -> bool {
        self.unit == Unit::Nanoseconds
            && self.quantity == Quantity::Time
            && self.sides.clusters == Clusters::Windows
    }

    /// One wait that is more than half of a difference.
    fn lone(&self, row: &Row, difference: f64) -> Option<NonZeroU64> {
        if self.unit != Unit::Nanoseconds || self.quantity != Quantity::Time {
            return None;
        }
        let side = usize::from(difference > 0.0);
        let wait = row.lone[side];
        let rate = wait as f64 / self.sides.series[side].total();
        NonZeroU64::new(wait).filter(|_| rate > difference.abs() / 2.0)
    }

    fn comparison(self, seconds: Option<[f64; 2]>) -> Comparison {
        let rows = self.functions();
        let mut families = [Family::new(&self), Family::new(&self)];
        let mut functions: Vec<Function> = rows
            .iter()
            .map(|(name, rows)| {
                let name = &self.tree.names[name.index()];
                let [itself, total] = [0, 1].map(|at| families[at].add(&rows[at]));
                Function {
                    name: name.shown().to_owned(),
                    class: name.class,
                    itself,
                    total,
                }
            })
            .collect();
        drop(rows);
        let [itself, total] = families;
        let tests_of_self = itself.judge(functions.iter_mut().map(|one| &mut one.itself));
        let tests_of_total = total.judge(functions.iter_mut().map(|one| &mut one.total));
        let sight = self.sight(functions.iter().map(|function| &function.total));
        let mut family = Family::new(&self);
        let mut nodes = self.nodes(&mut family);
        let tests_of_nodes = family.judge(nodes.iter_mut().map(|node| &mut node.change));
        shift::find(&mut nodes, &mut functions);
        functions.sort_by(|a, b| {
            let key = |function: &Function| {
                let moves = |change: &Change| {
                    let weight = if change.verdict.is_change() { 1e6 } else { 1.0 };
                    change.estimate.change().abs() * weight
                };
                (moves(&function.itself), moves(&function.total))
            };
            let ((a_self, a_total), (b_self, b_total)) = (key(a), key(b));
            (b_self.max(b_total).total_cmp(&a_self.max(a_total))).then_with(|| a.name.cmp(&b.name))
        });
        let sides = [0, 1].map(|side| self.side(side, seconds, &nodes));
        Comparison {
            unit: self.unit,
            quantity: self.quantity,
            clusters: self.sides.clusters,
            claims: self.claims,
            sides,
            functions,
            nodes,
            tests: [tests_of_self, tests_of_total, tests_of_nodes],
            sight,
            programs: self.tree.programs,
        }
    }

    /// All nodes, before it is known which of their changes are noise.
    fn nodes(&self, family: &mut Family<'_>) -> Vec<Node> {
        let names = self.tree.names.iter();
        let names: Vec<Arc<str>> = names.map(|name| Arc::from(name.shown())).collect();
        let totals = [0, 1].map(|side| self.sides.series[side].total());
        let mut row = self.row();
        let nodes = self.tree.nodes.iter().enumerate();
        nodes
            .map(|(place, node)| {
                row.clear();
                let mut own = [0.0; 2];
                let mut own_weights = [0_u64; 2];
                for entry in self.tree.below(place) {
                    self.add(&mut row, entry);
                    if entry.node as usize == place {
                        let side = entry.side();
                        let factor = self.factors[side][entry.window as usize];
                        own[side] += entry.weight as f64 * factor / totals[side];
                        own_weights[side] = own_weights[side].saturating_add(entry.weight);
                    }
                }
                Node {
                    name: Arc::clone(&names[node.name.index()]),
                    class: self.tree.names[node.name.index()].class,
                    depth: node.depth as usize,
                    own,
                    own_weights,
                    change: family.add(&row),
                }
            })
            .collect()
    }

    fn side(&self, side: usize, seconds: Option<[f64; 2]>, nodes: &[Node]) -> Side {
        let series = &self.sides.series[side];
        let entries = self
            .tree
            .entries
            .iter()
            .filter(|entry| entry.side() == side);
        let weight: u64 = entries.clone().map(|entry| entry.weight).sum();
        Side {
            recordings: series.count(),
            windows: series.windows(),
            seconds: seconds.map(|seconds| seconds[side]),
            samples: entries.map(|entry| entry.count).sum(),
            weight,
            total: nodes.iter().map(|node| node.own[side]).sum(),
            loose: self.tree.loose[side] as f64 / weight.max(1) as f64,
        }
    }

    /// The least visible change of a function of a tenth of everything, scaled from those that were
    /// there.
    fn sight<'c>(&self, functions: impl Iterator<Item = &'c Change>) -> Option<Sight> {
        let tested: Vec<&Change> = functions
            .filter(|change| change.verdict != Verdict::Few)
            .collect();
        let all = match self.quantity {
            Quantity::Share => 1.0,
            Quantity::Time | Quantity::Rate => {
                let entries = self.tree.entries.iter();
                let rate = entries.map(|entry| {
                    let side = &self.sides.series[entry.side()];
                    let factor = self.factors[entry.side()][entry.window as usize];
                    entry.weight as f64 * factor / side.total()
                });
                rate.sum::<f64>() / 2.0
            }
        };
        let spread = |value: f64| match self.quantity {
            Quantity::Share => (value * (1.0 - value)).max(0.0).sqrt(),
            Quantity::Time | Quantity::Rate => value.sqrt(),
        };
        let scaled = |least: f64, most: f64| -> Vec<f64> {
            let scaled = tested.iter().filter_map(|change| {
                let value = (change.estimate.values[0] + change.estimate.values[1]) / 2.0;
                let is_there = (least * all..=most * all).contains(&value);
                let spread = spread(value);
                (is_there && spread > 0.0).then_some(change.visible()? / spread)
            });
            let mut scaled: Vec<f64> = scaled.collect();
            scaled.sort_by(f64::total_cmp);
            scaled
        };
        let scaled = [(0.03, 0.3), (0.0, 0.9)]
            .map(|(least, most)| scaled(least, most))
            .into_iter()
            .find(|scaled| !scaled.is_empty())?;
        let tenth = all / 10.0;
        Some(Sight {
            tenth,
            least: scaled[scaled.len() / 2] * spread(tenth),
        })
    }
}

impl<'a> Family<'a> {
    fn new(comparing: &'a Comparing) -> Self {
        Self {
            comparing,
            known: HashMap::default(),
            hashers: [RandomState::default(), RandomState::default()],
            p: Vec::new(),
            values: Vec::new(),
            tests: Vec::new(),
        }
    }

    /// The change of one more thing, whose verdict is that of a difference beyond noise until the family is judged.
    fn add(&mut self, row: &Row) -> Change {
        let comparing = self.comparing;
        let values = [&*row.values[0], &*row.values[1]];
        let samples = row.samples;
        let estimate = comparing.sides.estimate(Thing { values, samples });
        let is_tested = samples[0].saturating_add(samples[1]) >= LEAST_SAMPLES;
        let test = is_tested.then(|| self.test(row, &estimate));
        self.tests.push(test);
        let difference = estimate.change();
        Change {
            estimate,
            weights: row.weights,
            verdict: match samples {
                [0, _] => Verdict::New,
                [_, 0] => Verdict::Gone,
                _ if difference > 0.0 => Verdict::More,
                _ => Verdict::Less,
            },
            alphas: None,
            lone: comparing.lone(row, difference),
            partner: None,
        }
    }

    /// The number of a thing's test.
    fn test(&mut self, row: &Row, estimate: &Estimate) -> u32 {
        let bits = |values: &Vec<f64>| values.iter().map(|value| value.to_bits()).collect();
        let bits: [Vec<u64>; 2] = row.values.each_ref().map(bits);
        let key = [0, 1].map(|at| self.hashers[at].hash_one((&bits, row.samples)));
        let next = self.p.len() as u32;
        let test = *self.known.entry(key).or_insert(next);
        if test == next {
            self.p.push(estimate.p);
            if self.comparing.permutes() {
                self.values.push(row.values.clone());
            }
        }
        test
    }

    /// Says of each of its things what became of its test, and returns what became of all.
    fn judge<'c>(mut self, changes: impl Iterator<Item = &'c mut Change>) -> Tests {
        let comparing = self.comparing;
        let [before, after] = &comparing.sides.series;
        let tests = self.p.len();
        let permutations = (comparing.permutes())
            .then(|| Permutations::new([before, after], tests))
            .flatten();
        if let Some(permutations) = &permutations {
            for (p, values) in self.p.iter_mut().zip(&self.values) {
                *p = permutations.p([&values[0], &values[1]]);
            }
        }
        let family = family::Family::new(&self.p);
        let found = family.significant.iter().filter(|found| **found).count();
        let alphas = [ALPHA, family.alpha_of_found()]
            .map(|of_interval| Arc::new([of_interval, family.alpha_of_first()]));
        for (change, test) in changes.zip(self.tests) {
            let is_found = test.is_some_and(|test| family.significant[test as usize]);
            change.estimate.p = test.map_or(change.estimate.p, |test| self.p[test as usize]);
            change.verdict = match (comparing.claims, test) {
                (false, _) => Verdict::NoClaim,
                (true, None) => Verdict::Few,
                (true, _) if !is_found => Verdict::Noise,
                (true, _) => change.verdict,
            };
            change.alphas = (comparing.claims).then(|| Arc::clone(&alphas[usize::from(is_found)]));
        }
        let found = if comparing.claims { found } else { 0 };
        Tests { tests, found }
    }
}
