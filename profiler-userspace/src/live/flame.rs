//! Where frames of a flame graph stand on a screen of cells.
//!
//! In: a [`Shape`], the node that is zoomed to, and a width. Out: rows of spans, the first row that of the root. Edges are
//! rounded, never widths, so a row is as full as what was counted: nothing drifts. What is narrower than a cell is joined
//! with its neighbours.
//! Never: text or colours.

use super::shape::{ROOT, Shape};
use std::ops::Range;

/// Content of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// A node of the shape.
    Node(u32),
    /// A node, and the callers of it that have no row.
    Trunk(u32),
    /// Several that are too narrow.
    Joined,
}

/// A part of a row. Between two spans is what the node below counted itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// From where to where, in units.
    pub(super) range: Range<u32>,
    pub(super) filling: Filling,
}

/// A row, from left to right.
pub(super) type SpanRow = Vec<Span>;

/// A node, or several, with the weights between which they stand.
#[derive(Clone, Copy)]
struct Bar {
    filling: Filling,
    from: f64,
    to: f64,
}

/// Turns weights into units.
#[derive(Clone, Copy)]
struct Scale {
    units: u32,
    /// How many units a cell has.
    cell: u32,
    total: f64,
}

impl Scale {
    fn edge(self, at: f64) -> u32 {
        // Rounding errors of sums of parts must not move an edge by a unit.
        let units = at / self.total * f64::from(self.units) + 1e-6;
        (units as u32).min(self.units)
    }

    fn is_narrow(self, piece: &Bar) -> bool {
        (piece.to - piece.from) / self.total * f64::from(self.units) + 1e-6 < f64::from(self.cell)
    }
}

/// Rows from the root on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) all: Vec<SpanRow>,
    /// How many levels have no row of their own, since nearly all is in one frame there and rows are few.
    pub(super) folded: usize,
}

impl Rows {
    /// Which row a level is in.
    pub(super) fn of_level(&self, level: usize) -> usize {
        match level {
            0..NEVER_FOLDED => level,
            _ => level.saturating_sub(self.folded).max(NEVER_FOLDED),
        }
    }
}

/// The rows of the root and of the owners stay.
pub(super) const NEVER_FOLDED: usize = 2;

/// Fewer levels are not folded.
const MIN_FOLDED: usize = 2;

/// A frame that is so wide is of the trunk, as a share of the screen.
const TRUNK_SHARE: f64 = 0.8;

/// The rows of what is on the screen when it is zoomed to a node. Where there are more than `room`, the trunk, which nearly
/// all stacks share, has one row.
pub(super) fn rows(shape: &Shape, zoom: u32, columns: u16, cell: u32, room: usize) -> Rows {
    let mut all = levels(shape, zoom, columns, cell);
    let least = f64::from(u32::from(columns) * cell) * TRUNK_SHARE;
    let widest = |row: &SpanRow| {
        row.iter()
            .position(|span| f64::from(span.range.end - span.range.start) >= least)
    };
    let trunk: Vec<usize> = all.iter().map_while(widest).collect();
    let folded = trunk.len().saturating_sub(NEVER_FOLDED + 1);
    if all.len() <= room || folded < MIN_FOLDED {
        return Rows { all, folded: 0 };
    }
    all.drain(NEVER_FOLDED..NEVER_FOLDED + folded);
    let span = &mut all[NEVER_FOLDED][trunk[trunk.len() - 1]];
    if let Filling::Node(node) = span.filling {
        span.filling = Filling::Trunk(node);
    }
    Rows { all, folded }
}

/// Each level as a row: the nodes below the zoomed one as wide as itself. `columns` cells of `cell` units each. Rows begin
/// at the root and end where no node is.
fn levels(shape: &Shape, zoom: u32, columns: u16, cell: u32) -> Vec<SpanRow> {
    let scale = Scale {
        units: u32::from(columns) * cell,
        cell,
        total: shape.node(zoom).weight(),
    };
    if scale.total <= 0.0 || columns == 0 {
        return Vec::new();
    }
    let mut below = vec![zoom];
    while let Some(last) = below.last().filter(|last| **last != ROOT) {
        below.push(shape.node(*last).parent);
    }
    let whole = |node: &u32| {
        vec![Span {
            range: 0..scale.units,
            filling: Filling::Node(*node),
        }]
    };
    let mut rows: Vec<SpanRow> = below.iter().rev().map(whole).collect();
    let mut level = vec![(zoom, 0.0)];
    loop {
        let (pieces, next) = children(shape, &level, scale);
        if pieces.is_empty() {
            break;
        }
        rows.push(row(&pieces, scale));
        level = next;
    }
    rows
}

/// The pieces above the nodes of a level, which begin at these weights; and the next level. Callees
/// of narrow nodes are a part of that level, and are joined there.
fn children(shape: &Shape, level: &[(u32, f64)], scale: Scale) -> (Vec<Bar>, Vec<(u32, f64)>) {
    let mut pieces: Vec<Bar> = Vec::new();
    let mut next = Vec::new();
    for &(node, mut at) in level {
        for &child in &shape.node(node).children {
            let weight = shape.node(child).weight();
            next.push((child, at));
            let mut piece = Bar {
                filling: Filling::Node(child),
                from: at,
                to: at + weight,
            };
            at += weight;
            if scale.is_narrow(&piece) {
                piece.filling = Filling::Joined;
            }
            match pieces.last_mut() {
                Some(last)
                    if (last.filling, piece.filling) == (Filling::Joined, Filling::Joined)
                        && scale.edge(piece.from) <= scale.edge(last.to) + 1 =>
                {
                    last.to = piece.to;
                }
                _ => pieces.push(piece),
            }
        }
    }
    (pieces, next)
}

fn row(pieces: &[Bar], scale: Scale) -> SpanRow {
    let mut row: SpanRow = Vec::with_capacity(pieces.len());
    for (place, piece) in pieces.iter().enumerate() {
        let mut range = scale.edge(piece.from)..scale.edge(piece.to);
        let next = pieces.get(place + 1).map(|next| scale.edge(next.from));
        if range.is_empty() && next.is_none_or(|next| next > range.end) && range.end < scale.units {
            // There is room behind it, and nobody would know of it otherwise.
            range.end += 1;
        }
        if !range.is_empty() {
            row.push(Span {
                range,
                filling: piece.filling,
            });
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::super::calls::Calls;
    use super::super::shape::CallSelection;
    use super::*;
    use crate::profile::Unit;
    use crate::profile::fold::parse;

    fn shape(text: &str) -> Shape {
        let mut calls = Calls::new(Unit::Samples);
        calls.add(&parse(text.as_bytes(), Unit::Samples).unwrap(), 1.0);
        Shape::new(&calls, &CallSelection::default())
    }

    #[test]
    fn where_rows_are_few_the_trunk_has_one() {
        let shape = shape(
            "sh;x 5\npython;start;init;main;handle;a;b 50\npython;start;init;main;handle;c 45\n",
        );
        let names = |room| {
            let rows = rows(&shape, ROOT, 80, 8, room);
            let name = |span: &Span| match span.filling {
                Filling::Node(node) => shape.name(node).text.to_string(),
                Filling::Trunk(node) => format!("... {}", shape.name(node).text),
                Filling::Joined => "|".to_owned(),
            };
            let row = |row: &SpanRow| row.iter().map(name).collect::<Vec<_>>().join(" ");
            let shown: Vec<String> = rows.all.iter().map(row).collect();
            (shown, [0, 1, 2, 5, 6].map(|level| rows.of_level(level)))
        };
        let (shown, levels) = names(6);
        assert_eq!(shown, ["all", "python sh", "... handle", "a c", "b"]);
        assert_eq!(levels, [0, 1, 2, 2, 3]);
        let (shown, levels) = names(8);
        assert_eq!(shown.len(), 8);
        assert_eq!(levels, [0, 1, 2, 5, 6]);
    }
}
