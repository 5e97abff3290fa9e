//! Laws that hold for any calls, whatever is asked for.

use super::calls::Calls;
use super::flame::{Filling, rows};
use super::functions::functions;
use super::save;
use super::shape::{CallSelection, Grouping, ROOT, Shape};
use crate::profile::fold::parse;
use crate::profile::{Profile, Unit, Window};
use proptest::prelude::*;

fn profile(text: &str) -> Profile {
    parse(text.as_bytes(), Unit::Samples).unwrap()
}

fn calls(texts: &[String]) -> (Calls, f64) {
    let mut calls = Calls::new(Unit::Samples);
    let mut weight = 0;
    for text in texts {
        let profile = profile(text);
        weight += profile.total_weight();
        calls.add(&profile, 1.0);
    }
    (calls, weight as f64)
}

/// Folded text of few names, so that paths recur, and functions call themselves.
fn text() -> impl Strategy<Value = String> {
    "([a-d](;[a-d](_\\[[kji]\\])?){0,5} [1-9][0-9]{0,3}\n){1,30}"
}

fn wanted() -> impl Strategy<Value = CallSelection> {
    let groupings = [Grouping::Names, Grouping::Processes, Grouping::Nothing];
    let grouping = prop::sample::select(groupings.to_vec());
    let flags = [any::<bool>(), any::<bool>(), any::<bool>()];
    (flags, grouping).prop_map(|([kernel, reverse, by_weight], grouping)| CallSelection {
        grouping,
        kernel,
        reverse,
        by_weight,
        ..CallSelection::default()
    })
}

proptest! {
    #[test]
    fn nothing_is_lost_however_it_is_shown(
        texts in prop::collection::vec(text(), 1..4),
        wanted in wanted(),
    ) {
        let (calls, weight) = calls(&texts);
        let shape = Shape::new(&calls, &wanted);
        prop_assert_eq!(shape.total(), weight);
        for (index, node) in shape.nodes.iter().enumerate() {
            let above: f64 = node.children.iter().map(|child| shape.node(*child).weight()).sum();
            prop_assert_eq!(node.own + above, node.weight(), "node {}", index);
        }
        let saved = save::profile(&calls, &wanted, &[], Window::default());
        prop_assert_eq!(saved.total_weight() as f64, weight);
        let own: f64 = functions(&shape, &calls).iter().map(|row| row.own).sum();
        prop_assert!(own <= weight);
        prop_assert!(functions(&shape, &calls).iter().all(|row| row.own <= row.total && row.total <= weight));
    }

    #[test]
    fn what_is_zoomed_to_is_what_is_saved(texts in prop::collection::vec(text(), 1..4), wanted in wanted(), at: prop::sample::Index) {
        let (calls, _) = calls(&texts);
        let shape = Shape::new(&calls, &wanted);
        let node = at.index(shape.nodes.len()) as u32;
        let path = shape.path(node);
        prop_assert_eq!(shape.find(&path), if shape.node(node).weight() > 0.0 { node } else { shape.find(&path) });
        let saved = save::profile(&calls, &wanted, &path, Window::default());
        prop_assert_eq!(saved.total_weight() as f64, shape.node(node).weight());
    }

    #[test]
    fn rows_are_as_full_as_what_was_counted(
        texts in prop::collection::vec(text(), 1..4),
        columns in 1u16..300,
        cell in prop::sample::select(vec![1u32, 8]),
    ) {
        let (calls, _) = calls(&texts);
        let shape = Shape::new(&calls, &CallSelection::default());
        let rows = rows(&shape, ROOT, columns, cell, usize::MAX).all;
        let units = u32::from(columns) * cell;
        for row in &rows {
            prop_assert!(row.iter().all(|span| !span.range.is_empty() && span.range.end <= units));
            prop_assert!(row.is_sorted_by(|one, next| one.range.end <= next.range.start));
            for span in row {
                // Rounding is at the edges, so a frame is at most a unit wider or narrower than it
                // should be.
                if let Filling::Node(node) = span.filling {
                    let exact = shape.node(node).weight() / shape.total() * f64::from(units);
                    let width = f64::from(span.range.end - span.range.start);
                    prop_assert!((width - exact).abs() < 1.001, "{width} for {exact}");
                }
            }
        }
        // Nothing was counted at the root itself, nor without a process.
        for row in rows.iter().take(2) {
            let covered: u32 = row.iter().map(|span| span.range.end - span.range.start).sum();
            prop_assert_eq!(covered, units);
        }
    }

    #[test]
    fn what_is_joined_keeps_its_weight(texts in prop::collection::vec(text(), 1..4), nodes in 1usize..40) {
        let (mut calls, weight) = calls(&texts);
        let before = calls.nodes.len();
        calls.keep_bounds(nodes, 2);
        prop_assert_eq!(calls.total(), weight);
        // A mark may stand above each of those that are kept.
        prop_assert!(before <= nodes || calls.nodes.len() <= nodes + 3);
        calls.fade(0.5);
        prop_assert_eq!(calls.total(), weight / 2.0);
    }
}
