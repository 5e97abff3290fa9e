//! Weights of things by side and window.
//!
//! In: profiles of both sides. Out: their tree, and rows of any of its parts. Never: compares counts, since recordings differ in
//! length and rate: values are parts of everything, or for each second.

use super::entries::{Entry, NameIndex, Tree};
use super::model::{DiffOptions, Quantity};
use super::stats::estimate::{Clusters, Estimate, Measure, Sides, Thing};
use super::stats::series::Series;
use crate::profile::{Profile, Unit, WindowTotals};
use std::num::NonZeroU64;

/// A thing by side and window.
#[derive(Clone, Debug)]
pub(super) struct DiffRow {
    pub(super) values: [Vec<f64>; 2],
    pub(super) samples: [u64; 2],
    pub(super) weights: [u64; 2],
    lone: [u64; 2],
}

impl DiffRow {
    /// Is of nothing again.
    pub(super) fn clear(&mut self) {
        for values in &mut self.values {
            values.fill(0.0);
        }
        self.samples = [0; 2];
        self.weights = [0; 2];
        self.lone = [0; 2];
    }
}

/// Data that all comparisons of things share.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) tree: Tree,
    pub(super) unit: Unit,
    pub(super) quantity: Quantity,
    pub(super) sides: Sides,
    pub(super) factors: [Vec<f64>; 2],
    pub(super) claims: bool,
}

impl Rows {
    pub(super) fn new(
        profiles: [Vec<Profile>; 2],
        unit: &Unit,
        quantity: Quantity,
        options: DiffOptions,
    ) -> Self {
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
            claims: sides.can_tell() || options.assume_independent,
            sides,
            factors,
        }
    }

    pub(super) fn row(&self) -> DiffRow {
        DiffRow {
            values: [0, 1].map(|side| vec![0.0; self.factors[side].len()]),
            samples: [0; 2],
            weights: [0; 2],
            lone: [0; 2],
        }
    }

    pub(super) fn add(&self, row: &mut DiffRow, entry: &Entry) {
        let (side, window) = (entry.side(), entry.window as usize);
        let factor = self.factors[side][window];
        row.values[side][window] += entry.weight as f64 * factor;
        row.samples[side] = row.samples[side].saturating_add(entry.count);
        row.weights[side] = row.weights[side].saturating_add(entry.weight);
        row.lone[side] = row.lone[side].max(entry.lone);
    }

    /// Functions by name: what was counted in them, and in what they called.
    pub(super) fn functions(&self) -> Vec<(NameIndex, [DiffRow; 2])> {
        let names = &self.tree.names;
        let mut rows: Vec<Option<[DiffRow; 2]>> = vec![None; names.len()];
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

    /// The row of a node with all that it called.
    pub(super) fn fill(&self, node: usize, row: &mut DiffRow) {
        row.clear();
        for entry in self.tree.below(node) {
            self.add(row, entry);
        }
    }

    /// The change of a thing.
    pub(super) fn estimate(&self, row: &DiffRow) -> Estimate {
        let values = [&*row.values[0], &*row.values[1]];
        let samples = row.samples;
        self.sides.estimate(Thing { values, samples })
    }

    /// Whether waits are tested by mixing windows.
    pub(super) fn permutes(&self) -> bool {
        self.unit == Unit::Nanoseconds
            && self.quantity == Quantity::Time
            && self.sides.clusters == Clusters::Windows
    }

    /// One wait that is more than half of a difference.
    pub(super) fn lone(&self, row: &DiffRow, difference: f64) -> Option<NonZeroU64> {
        if self.unit != Unit::Nanoseconds || self.quantity != Quantity::Time {
            return None;
        }
        let side = usize::from(difference > 0.0);
        let wait = row.lone[side];
        let rate = wait as f64 / self.sides.series[side].total();
        NonZeroU64::new(wait).filter(|_| rate > difference.abs() / 2.0)
    }
}

fn length(totals: &WindowTotals) -> f64 {
    let length = totals.window.length();
    length.as_secs_f64()
}

pub(super) fn seconds(profile: &Profile) -> f64 {
    profile.windows.iter().map(length).sum()
}

/// Quantity of profiles of a unit for each second: time where samples stand for some.
pub(super) fn quantity_of_time<'p>(
    mut profiles: impl Iterator<Item = &'p Profile>,
    unit: &Unit,
) -> Quantity {
    let has_period = |profile: &Profile| profile.origin.period_ns.is_some();
    match *unit == Unit::Nanoseconds || profiles.all(has_period) {
        true => Quantity::Time,
        false => Quantity::Rate,
    }
}

/// Factors of each window's weights: the time that a sample stands for, and a correction for
/// losses.
pub(super) fn factors(profile: &Profile, unit: &Unit, quantity: Quantity) -> Vec<f64> {
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
pub(super) fn base(profile: &Profile, quantity: Quantity) -> Vec<f64> {
    if quantity != Quantity::Share {
        return profile.windows.iter().map(length).collect();
    }
    let mut base = vec![0.0; profile.windows.len().max(1)];
    for sample in profile.samples() {
        base[sample.window.0 as usize] += sample.weight as f64;
    }
    base
}
