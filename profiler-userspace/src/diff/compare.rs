//! Compares two sides.
//!
//! In: profiles of one unit, by side. Out: a [`Comparison`]. Never: compares counts, since recordings differ in length and
//! rate: values are parts of everything, or for each second.

use super::comparison::Comparison;
use super::family::Family;
use super::model::{Change, DiffOptions, Function, Quantity, Side, Sight, Verdict};
use super::nodes::Nodes;
use super::rows::{Rows, quantity_of_time, seconds};
use super::shift;
use super::whole::{Whole, whole};
use crate::profile::{Profile, Unit};

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
pub fn compare(
    profiles: [Vec<Profile>; 2],
    options: DiffOptions,
) -> Result<Comparison, CompareError> {
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
        (_, false) if options.absolute => return Err(CompareError::NoTimes),
        (Unit::Nanoseconds, true) => Quantity::Time,
        (_, true) if options.absolute => quantity_of_time(all(), &unit),
        _ => Quantity::Share,
    };
    let seconds =
        has_times.then(|| [0, 1].map(|side| profiles[side].iter().map(seconds).sum::<f64>()));
    let whole = has_times.then(|| whole(&profiles, &unit));
    Ok(comparison(
        Rows::new(profiles, &unit, quantity, options),
        (seconds, whole),
    ))
}

fn comparison(rows: Rows, (seconds, whole): (Option<[f64; 2]>, Option<Whole>)) -> Comparison {
    let all = rows.functions();
    let [itself, total] = [0, 1].map(|part| {
        let mut family = Family::new(&rows);
        for (_, each) in &all {
            family.add(&each[part]);
        }
        family.judged()
    });
    let mut functions: Vec<Function> = all
        .iter()
        .enumerate()
        .map(|(at, (name, each))| {
            let name = &rows.tree.names[name.index()];
            Function {
                name: name.shown().to_owned(),
                class: name.class,
                itself: itself.change(at, &each[0], &rows),
                total: total.change(at, &each[1], &rows),
            }
        })
        .collect();
    drop(all);
    let sight = sight(&rows, functions.iter().map(|function| &function.total));
    let mut nodes = Nodes::new(rows);
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
    let sides = [0, 1].map(|at| side(at, seconds, &nodes));
    let rows = nodes.rows();
    Comparison {
        unit: rows.unit.clone(),
        quantity: rows.quantity,
        whole,
        clusters: rows.sides.clusters,
        claims: rows.claims,
        sides,
        functions,
        tests: [itself.tests(), total.tests(), nodes.tests()],
        sight,
        programs: rows.tree.programs.clone(),
        nodes,
    }
}

fn side(side: usize, seconds: Option<[f64; 2]>, nodes: &Nodes) -> Side {
    let rows = nodes.rows();
    let series = &rows.sides.series[side];
    let entries = rows
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
        total: (0..nodes.len()).map(|node| nodes.own(node)[side]).sum(),
        loose: rows.tree.loose[side] as f64 / weight.max(1) as f64,
    }
}

/// The least visible change of a function of a tenth of everything, scaled from those that were
/// there.
fn sight<'c>(rows: &Rows, functions: impl Iterator<Item = &'c Change>) -> Option<Sight> {
    let tested: Vec<&Change> = functions
        .filter(|change| change.verdict != Verdict::Few)
        .collect();
    let all = match rows.quantity {
        Quantity::Share => 1.0,
        Quantity::Time | Quantity::Rate => {
            let entries = rows.tree.entries.iter();
            let rate = entries.map(|entry| {
                let side = &rows.sides.series[entry.side()];
                let factor = rows.factors[entry.side()][entry.window as usize];
                entry.weight as f64 * factor / side.total()
            });
            rate.sum::<f64>() / 2.0
        }
    };
    let spread = |value: f64| match rows.quantity {
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
