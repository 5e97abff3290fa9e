//! The table of processes, or of threads where these are told apart.
//!
//! In: calls. Out: a row for each owner, the most first, with what was counted while it ran and while it did not.

use super::calls::{Calls, NodeKind, Owner};
use super::shape::Time;

/// Weights of an owner, while it ran and while it did not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProcessRow {
    pub(super) owner: Owner,
    pub(super) time: [f64; 2],
}

impl ProcessRow {
    /// Its whole weight.
    pub(super) fn weight(&self) -> f64 {
        self.time[0] + self.time[1]
    }
}

/// All owners of which anything of such time was counted.
pub(super) fn processes(calls: &Calls, time: Time) -> Vec<ProcessRow> {
    let mut sums = vec![[0.0; 2]; calls.owners.len()];
    let mut owners: Vec<usize> = Vec::with_capacity(calls.nodes.len());
    for node in &calls.nodes {
        let owner = match (node.what, node.parent) {
            (NodeKind::Owner(owner), _) => owner as usize,
            (NodeKind::Call(_), Some(parent)) => owners[parent as usize],
            (NodeKind::Call(_), None) => unreachable!("a call has an owner"),
        };
        owners.push(owner);
        if time != Time::Off {
            sums[owner][0] += node.own.weight[0];
        }
        if time != Time::On {
            sums[owner][1] += node.own.weight[1];
        }
    }
    let row = |(owner, time): (&Owner, [f64; 2])| ProcessRow {
        owner: owner.clone(),
        time,
    };
    let mut rows: Vec<ProcessRow> = calls.owners.iter().zip(sums).map(row).collect();
    rows.retain(|row| row.weight() > 0.0);
    rows.sort_by(|a, b| {
        let by_weight = b.weight().total_cmp(&a.weight());
        by_weight.then_with(|| a.owner.cmp(&b.owner))
    });
    rows
}
