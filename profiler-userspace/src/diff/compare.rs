//! Compares two sides.
//!
//! In: profiles of one unit, by side. Out: a [`Comparison`]. Never: compares counts, since recordings differ in length and
//! rate: values are parts of everything, or for each second.

use super::entries::{Entry, NameIndex, Tree};
use super::model::{Change, Comparison, Function, Node, Quantity, Side, Sight, Tests, Verdict};
use super::shift;
use super::stats::estimate::{Clusters, Estimate, Measure, Sides, Thing};
use super::stats::family::Family;
use super::stats::permutation::Permutations;
use super::stats::series::Series;
use super::stats::{ALPHA, LEAST_SAMPLES};
use crate::profile::{Profile, Unit, WindowTotals};
use foldhash::HashMap;
use std::collections::BTreeMap;

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

/// Compares.
///
/// # Errors
/// When the profiles cannot be compared as wanted.
pub fn compare(profiles: &[Vec<Profile>; 2], wanted: Wanted) -> Result<Comparison, CompareError> {
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
    let comparing = Comparing::new(profiles, &unit, quantity, wanted);
    Ok(comparing.comparison(
        has_times.then(|| [0, 1].map(|side| profiles[side].iter().map(seconds).sum::<f64>())),
    ))
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
struct Row {
    values: [Vec<f64>; 2],
    samples: [u64; 2],
    weights: [u64; 2],
    lone: [u64; 2],
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
    fn new(profiles: &[Vec<Profile>; 2], unit: &Unit, quantity: Quantity, wanted: Wanted) -> Self {
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
        let side = entry.side;
        let factor = self.factors[side][entry.window];
        row.values[side][entry.window] += entry.weight as f64 * factor;
        row.samples[side] = row.samples[side].saturating_add(entry.count);
        row.weights[side] = row.weights[side].saturating_add(entry.weight);
        row.lone[side] = row.lone[side].max(entry.lone);
    }

    /// Functions by name: what was counted in them, and in what they called.
    fn functions(&self) -> BTreeMap<NameIndex, [Row; 2]> {
        let mut rows: BTreeMap<NameIndex, [Row; 2]> = BTreeMap::new();
        let mut seen: Vec<NameIndex> = Vec::new();
        let mut last = None;
        for entry in &self.tree.entries {
            if last != Some(entry.own) {
                last = Some(entry.own);
                seen.clear();
                for node in self.tree.callers(entry.own) {
                    let name = self.tree.nodes[node].name;
                    if self.tree.names[name.index()].class.is_code() && !seen.contains(&name) {
                        seen.push(name);
                    }
                }
            }
            for (place, name) in seen.iter().enumerate() {
                let rows = rows
                    .entry(*name)
                    .or_insert_with(|| [self.row(), self.row()]);
                if place == 0 {
                    self.add(&mut rows[0], entry);
                }
                self.add(&mut rows[1], entry);
            }
        }
        rows
    }

    fn nodes(&self) -> impl Iterator<Item = Row> {
        (0..self.tree.nodes.len()).map(|node| {
            let mut row = self.row();
            for entry in self.tree.below(node) {
                self.add(&mut row, entry);
            }
            row
        })
    }

    /// Changes of one family, and what came of its tests.
    fn changes(&self, rows: impl Iterator<Item = Row>) -> (Vec<Change>, Tests) {
        let mut known: HashMap<(Vec<u64>, [u64; 2]), usize> = HashMap::default();
        let mut things: Vec<(Row, Estimate, Option<usize>)> = Vec::new();
        let mut tests = 0;
        for mut row in rows {
            let values = [&*row.values[0], &*row.values[1]];
            let samples = row.samples;
            let estimate = self.sides.estimate(Thing { values, samples });
            let is_tested = samples[0].saturating_add(samples[1]) >= LEAST_SAMPLES;
            let test = is_tested.then(|| {
                // Those that cannot be told apart, such as a function and the only one that calls it, are one test.
                let bits: Vec<u64> = values
                    .iter()
                    .copied()
                    .flatten()
                    .map(|value| value.to_bits())
                    .collect();
                *known.entry((bits, samples)).or_insert_with(|| {
                    tests += 1;
                    tests - 1
                })
            });
            if self.permutes() && is_tested {
                things.push((row, estimate, test));
            } else {
                row.values = Default::default();
                things.push((row, estimate, test));
            }
        }
        drop(known);
        let mut p: Vec<Option<f64>> = vec![None; tests];
        let [before, after] = &self.sides.series;
        let permutations = (self.permutes())
            .then(|| Permutations::new([before, after], tests))
            .flatten();
        for (row, estimate, test) in &mut things {
            let Some(test) = *test else { continue };
            estimate.p = *p[test].get_or_insert_with(|| match &permutations {
                Some(permutations) => permutations.p([&row.values[0], &row.values[1]]),
                None => estimate.p,
            });
        }
        let p: Vec<f64> = p.into_iter().flatten().collect();
        let family = Family::new(&p);
        let found = family.significant.iter().filter(|found| **found).count();
        let changes = things
            .into_iter()
            .map(|(row, estimate, test)| self.change(&row, estimate, test, &family))
            .collect();
        let found = if self.claims { found } else { 0 };
        (changes, Tests { tests, found })
    }

    /// Whether waits are tested by mixing windows.
    fn permutes(&self) -> bool {
        self.unit == Unit::Nanoseconds
            && self.quantity == Quantity::Time
            && self.sides.clusters == Clusters::Windows
    }

    fn change(
        &self,
        row: &Row,
        estimate: Estimate,
        test: Option<usize>,
        family: &Family,
    ) -> Change {
        let difference = estimate.change();
        let is_found = test.is_some_and(|test| family.significant[test]);
        let verdict = match (self.claims, test, is_found) {
            (false, ..) => Verdict::NoClaim,
            (true, None, _) => Verdict::Few,
            (true, _, false) => Verdict::Noise,
            _ if row.samples[0] == 0 => Verdict::New,
            _ if row.samples[1] == 0 => Verdict::Gone,
            _ if difference > 0.0 => Verdict::More,
            _ => Verdict::Less,
        };
        Change {
            estimate,
            weights: row.weights,
            verdict,
            alphas: self.claims.then(|| {
                let of_interval = match is_found {
                    true => family.alpha_of_found(),
                    false => ALPHA,
                };
                [of_interval, family.alpha_of_first()]
            }),
            lone: self.lone(row, difference),
            partner: None,
        }
    }

    /// One wait that is more than half of a difference.
    fn lone(&self, row: &Row, difference: f64) -> Option<u64> {
        if self.unit != Unit::Nanoseconds || self.quantity != Quantity::Time {
            return None;
        }
        let side = usize::from(difference > 0.0);
        let wait = row.lone[side];
        let rate = wait as f64 / self.sides.series[side].total();
        (wait > 0 && rate > difference.abs() / 2.0).then_some(wait)
    }

    fn comparison(self, seconds: Option<[f64; 2]>) -> Comparison {
        let (names, rows): (Vec<NameIndex>, Vec<[Row; 2]>) = self.functions().into_iter().unzip();
        let (itself, total): (Vec<Row>, Vec<Row>) = rows.into_iter().map(|[a, b]| (a, b)).unzip();
        let (itself, tests_of_self) = self.changes(itself.into_iter());
        let (total, tests_of_total) = self.changes(total.into_iter());
        let (changes, tests_of_nodes) = self.changes(self.nodes());
        let sight = self.sight(&total);
        let mut functions: Vec<Function> = names
            .iter()
            .zip(itself.into_iter().zip(total))
            .map(|(name, (itself, total))| {
                let name = &self.tree.names[name.index()];
                Function {
                    name: name.shown().to_owned(),
                    class: name.class,
                    itself,
                    total,
                }
            })
            .collect();
        let mut nodes = self.own(changes);
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

    /// The nodes with these changes, and what was counted right in them.
    fn own(&self, changes: Vec<Change>) -> Vec<Node> {
        let nodes = self.tree.nodes.iter().zip(changes);
        let mut nodes: Vec<Node> = nodes
            .map(|(node, change)| {
                let name = &self.tree.names[node.name.index()];
                Node {
                    name: name.shown().to_owned(),
                    class: name.class,
                    depth: node.depth,
                    own: [0.0; 2],
                    own_weights: [0; 2],
                    change,
                }
            })
            .collect();
        let totals = [0, 1].map(|side| self.sides.series[side].total());
        for entry in &self.tree.entries {
            let side = entry.side;
            let node = &mut nodes[entry.node];
            let weight = entry.weight as f64 * self.factors[side][entry.window];
            node.own[side] += weight / totals[side];
            node.own_weights[side] = node.own_weights[side].saturating_add(entry.weight);
        }
        nodes
    }

    fn side(&self, side: usize, seconds: Option<[f64; 2]>, nodes: &[Node]) -> Side {
        let series = &self.sides.series[side];
        let entries = self.tree.entries.iter().filter(|entry| entry.side == side);
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
    fn sight(&self, functions: &[Change]) -> Option<Sight> {
        let all = match self.quantity {
            Quantity::Share => 1.0,
            Quantity::Time | Quantity::Rate => {
                let entries = self.tree.entries.iter();
                let rate = entries.map(|entry| {
                    let side = &self.sides.series[entry.side];
                    entry.weight as f64 * self.factors[entry.side][entry.window] / side.total()
                });
                rate.sum::<f64>() / 2.0
            }
        };
        let spread = |value: f64| match self.quantity {
            Quantity::Share => (value * (1.0 - value)).max(0.0).sqrt(),
            Quantity::Time | Quantity::Rate => value.sqrt(),
        };
        let scaled = |least: f64, most: f64| -> Vec<f64> {
            let tested = functions
                .iter()
                .filter(|change| change.verdict != Verdict::Few);
            let scaled = tested.filter_map(|change| {
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
