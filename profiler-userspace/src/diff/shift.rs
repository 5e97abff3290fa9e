//! Costs that moved and did not change.
//!
//! In: nodes and functions with their changes. Out: the same, where what appeared or vanished while as much of the opposite
//! happened beside it, or in what calls it, is a [`Verdict::Shift`]: a function was renamed, or compiled into its caller.
//! Never: where the caller's total changed as well.

use super::model::{Change, Function, Node, Verdict};
use foldhash::HashMap;

/// Two changes are each other's opposite if what is left of both is at most this part of one.
const REST: f64 = 0.25;

/// Finds shifts among nodes, and functions all of whose change they explain.
pub(super) fn find(nodes: &mut [Node], functions: &mut [Function]) {
    let parents = parents(nodes);
    let mut callees: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (node, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            callees[*parent].push(node);
        }
    }
    let mut moved: HashMap<String, Moved> = HashMap::default();
    let mut partners: Vec<(usize, String)> = Vec::new();
    for (parent, below) in callees.iter().enumerate() {
        if below.is_empty() || is_changed(&nodes[parent].change) {
            continue;
        }
        let came_or_went =
            |node: &&usize| matches!(nodes[**node].change.verdict, Verdict::New | Verdict::Gone);
        for &node in below.iter().filter(came_or_went) {
            let change = nodes[node].change.estimate.change();
            if nodes[parent].change.estimate.change().abs() > REST * change.abs() {
                continue;
            }
            // The sibling that is most like its opposite.
            let rest = |other: &usize| (nodes[*other].change.estimate.change() + change).abs();
            let sibling = below
                .iter()
                .filter(came_or_went)
                .filter(|other| nodes[**other].change.verdict != nodes[node].change.verdict)
                .min_by(|a, b| rest(a).total_cmp(&rest(b)));
            let own = nodes[parent].own[1] - nodes[parent].own[0];
            if let Some(sibling) = sibling.filter(|sibling| rest(sibling) <= REST * change.abs()) {
                let name = nodes[*sibling].name.clone();
                moved
                    .entry(nodes[node].name.clone())
                    .or_default()
                    .total(change, &name);
                partners.push((node, name));
            } else if (own + change).abs() <= REST * change.abs() {
                let name = nodes[parent].name.clone();
                moved
                    .entry(nodes[node].name.clone())
                    .or_default()
                    .total(change, &name);
                let gone = nodes[node].name.clone();
                moved.entry(name.clone()).or_default().itself(own, &gone);
                partners.push((node, name));
            }
        }
    }
    for (node, name) in partners {
        below(nodes, node, &name);
    }
    for function in functions {
        if let Some(moved) = moved.get(&function.name) {
            moved.explain(function);
        }
    }
}

/// Parts of a function's change that are known to have moved, and where to or from.
#[derive(Default)]
struct Moved {
    total: f64,
    itself: f64,
    partner: String,
}

impl Moved {
    fn total(&mut self, change: f64, partner: &str) {
        self.total += change;
        partner.clone_into(&mut self.partner);
    }

    fn itself(&mut self, change: f64, partner: &str) {
        self.itself += change;
        partner.clone_into(&mut self.partner);
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
        change.partner = Some(self.partner.clone());
    }
}

fn is_changed(change: &Change) -> bool {
    change.verdict.is_change()
}

/// The node and all that came or went with it.
fn below(nodes: &mut [Node], node: usize, partner: &str) {
    let depth = nodes[node].depth;
    let end = nodes[node + 1..]
        .iter()
        .position(|other| other.depth <= depth);
    let end = end.map_or(nodes.len(), |end| node + 1 + end);
    for node in &mut nodes[node..end] {
        if matches!(node.change.verdict, Verdict::New | Verdict::Gone) {
            node.change.verdict = Verdict::Shift;
            node.change.partner = Some(partner.to_owned());
        }
    }
}

fn parents(nodes: &[Node]) -> Vec<Option<usize>> {
    let mut path: Vec<usize> = Vec::new();
    nodes
        .iter()
        .enumerate()
        .map(|(index, node)| {
            path.truncate(node.depth);
            let parent = path.last().copied();
            path.push(index);
            parent
        })
        .collect()
}
