//! Costs that moved and did not change.
//!
//! In: nodes and functions with their changes. Out: the same, where what appeared or vanished while as much of the opposite
//! happened beside it, or in what calls it, is a [`Verdict::Shift`]: a function was renamed, or compiled into its caller.
//! Never: where the caller's total changed as well.

use super::model::{Change, Function, Verdict};
use super::nodes::Nodes;
use foldhash::HashMap;
use std::sync::Arc;

/// Two changes are each other's opposite if what is left of both is at most this part of one.
const REST: f64 = 0.25;

/// Finds shifts among nodes, and functions all of whose change they explain.
pub(super) fn find(nodes: &mut Nodes, functions: &mut [Function]) {
    if !nodes.rows().claims {
        return;
    }
    let verdicts: Vec<(Verdict, f64)> = (0..nodes.len()).map(|node| nodes.verdict(node)).collect();
    let mut moved: HashMap<Arc<str>, Moved> = HashMap::default();
    let mut partners: Vec<(usize, Arc<str>)> = Vec::new();
    let came_or_went = |node: &usize| matches!(verdicts[*node].0, Verdict::New | Verdict::Gone);
    let change_of = |node: usize| verdicts[node].1;
    for parent in 0..nodes.len() {
        if verdicts[parent].0.is_change() {
            continue;
        }
        let next = |node: &usize| Some(nodes.end(*node)).filter(|next| *next < nodes.end(parent));
        let first = Some(parent + 1).filter(|first| *first < nodes.end(parent));
        let called = std::iter::successors(first, next).filter(came_or_went);
        let below: Vec<usize> = called.collect();
        for &node in &below {
            let change = change_of(node);
            if change_of(parent).abs() > REST * change.abs() {
                continue;
            }
            // The sibling that is most like its opposite.
            let rest = |other: &usize| (change_of(*other) + change).abs();
            let sibling = below
                .iter()
                .filter(|other| verdicts[**other].0 != verdicts[node].0)
                .min_by(|a, b| rest(a).total_cmp(&rest(b)));
            let [before, after] = nodes.own(parent);
            let own = after - before;
            if let Some(sibling) = sibling.filter(|sibling| rest(sibling) <= REST * change.abs()) {
                let name = Arc::clone(nodes.reads(*sibling));
                moved
                    .entry(Arc::clone(nodes.reads(node)))
                    .or_default()
                    .total(change, &name);
                partners.push((node, name));
            } else if (own + change).abs() <= REST * change.abs() {
                let name = Arc::clone(nodes.reads(parent));
                moved
                    .entry(Arc::clone(nodes.reads(node)))
                    .or_default()
                    .total(change, &name);
                let gone = Arc::clone(nodes.reads(node));
                moved
                    .entry(Arc::clone(&name))
                    .or_default()
                    .itself(own, &gone);
                partners.push((node, name));
            }
        }
    }
    for (node, name) in partners {
        // The node and all that came or went with it.
        for moved in (node..nodes.end(node)).filter(came_or_went) {
            nodes.set_moved(moved, &name);
        }
    }
    for function in functions {
        if let Some(moved) = moved.get(&*function.name) {
            moved.explain(function);
        }
    }
}

/// Parts of a function's change that are known to have moved, and where to or from.
#[derive(Default)]
struct Moved {
    total: f64,
    itself: f64,
    partner: Arc<str>,
}

impl Moved {
    fn total(&mut self, change: f64, partner: &Arc<str>) {
        self.total += change;
        self.partner = Arc::clone(partner);
    }

    fn itself(&mut self, change: f64, partner: &Arc<str>) {
        self.itself += change;
        self.partner = Arc::clone(partner);
    }

    /// Says so of a function, if it is most of its change.
    fn explain(&self, function: &mut Function) {
        let is_most = |moved: f64, change: &Change| {
            let change = change.estimate.change();
            moved != 0.0 && (change - moved).abs() <= REST * change.abs()
        };
        let total = is_most(self.total, &function.total);
        let itself = is_most(self.itself, &function.itself);
        let came_or_went = |change: &Change| matches!(change.verdict, Verdict::New | Verdict::Gone);
        if total && came_or_went(&function.total) {
            self.mark(&mut function.total);
            if came_or_went(&function.itself) {
                self.mark(&mut function.itself);
            }
        }
        if itself && is_changed(&function.itself) {
            self.mark(&mut function.itself);
        }
    }

    fn mark(&self, change: &mut Change) {
        change.verdict = Verdict::Shift;
        change.partner = Some(Arc::clone(&self.partner));
    }
}

fn is_changed(change: &Change) -> bool {
    change.verdict.is_change()
}
