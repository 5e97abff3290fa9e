//! The table of functions: what was counted in each, and in all that it called.
//!
//! In: a shape that begins at the roots. Out: rows, the most first. A function that called itself counts once. Marks are no
//! functions: time at a mark is that of the function below it.

use super::calls::{Calls, Name, NodeKind};
use super::shape::{ROOT, Shape};
use crate::profile::fold::visible;
use crate::profile::{FrameKind, interpreted_module};
use foldhash::HashMap;

/// A function of a module.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FunctionRow {
    pub(super) name: Name,
    /// The module that it lies in; empty if that is not known.
    pub(super) module: String,
    /// Its own weight, without callees.
    pub(super) own: f64,
    /// Its weight with all that it called.
    pub(super) total: f64,
}

/// The functions of a shape made of these calls.
pub(super) fn functions(shape: &Shape, calls: &Calls) -> Vec<FunctionRow> {
    let mut rows: Vec<FunctionRow> = Vec::new();
    let mut known: HashMap<(u32, Option<u32>), usize> = HashMap::default();
    // How often each function is on the path to the node that is looked at.
    let mut open: Vec<u32> = Vec::new();
    // A node, the row that its own weight is of, and whether it was entered already.
    let mut todo: Vec<(u32, Option<usize>, bool)> = vec![(ROOT, None, false)];
    while let Some((index, below, was_entered)) = todo.pop() {
        let node = shape.node(index);
        let row = is_function(shape, index).then(|| {
            let mapping = mapping(calls, node.source);
            *known.entry((node.name, mapping)).or_insert_with(|| {
                rows.push(FunctionRow {
                    name: shape.name(index).clone(),
                    module: module(calls, node.source, shape.name(index).kind),
                    own: 0.0,
                    total: 0.0,
                });
                open.push(0);
                rows.len() - 1
            })
        });
        if was_entered {
            if let Some(row) = row {
                open[row] -= 1;
            }
            continue;
        }
        if let Some(row) = row {
            if open[row] == 0 {
                rows[row].total += node.weight();
            }
            open[row] += 1;
        }
        let innermost = row.or(below);
        if let Some(row) = innermost {
            rows[row].own += node.own;
        }
        todo.push((index, below, true));
        todo.extend((node.children.iter()).map(|child| (*child, innermost, false)));
    }
    rows.sort_by(|a, b| {
        let by_own = b.own.total_cmp(&a.own);
        let by_total = by_own.then_with(|| b.total.total_cmp(&a.total));
        by_total.then_with(|| (&a.name.text, &a.module).cmp(&(&b.name.text, &b.module)))
    });
    rows
}

fn is_function(shape: &Shape, index: u32) -> bool {
    let kind = shape.name(index).kind;
    index != ROOT && (kind.is_user() || kind == FrameKind::Kernel)
}

fn mapping(calls: &Calls, source: Option<u32>) -> Option<u32> {
    match calls.nodes[source? as usize].what {
        NodeKind::Call(place) => place.mapping,
        NodeKind::Owner(_) => None,
    }
}

fn module(calls: &Calls, source: Option<u32>, kind: FrameKind) -> String {
    let place = source.map(|source| calls.nodes[source as usize].what);
    let Some(NodeKind::Call(place)) = place else {
        return kind.module_without_file().to_owned();
    };
    let function = &calls.functions[place.function as usize];
    let module = match (place.mapping, kind) {
        (Some(mapping), _) => &*calls.mappings[mapping as usize].module,
        (None, FrameKind::Interpreted(runtime)) => {
            interpreted_module(runtime, &function.name, &function.file)
        }
        (None, _) => kind.module_without_file(),
    };
    visible(module).into_owned()
}
