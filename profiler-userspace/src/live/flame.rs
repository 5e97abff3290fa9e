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
pub(super) type Row = Vec<Span>;

/// A node, or several, with the weights between which they stand.
#[derive(Clone, Copy)]
struct Piece {
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

    fn is_narrow(self, piece: &Piece) -> bool {
        (piece.to - piece.from) / self.total * f64::from(self.units) + 1e-6 < f64::from(self.cell)
    }
}

/// The rows of what is on the screen when it is zoomed to a node: the nodes below it as wide as itself. `columns` cells of
/// `cell` units each. Rows begin at the root and end where no node is.
pub(super) fn rows(shape: &Shape, zoom: u32, columns: u16, cell: u32) -> Vec<Row> {
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
    let mut rows: Vec<Row> = below.iter().rev().map(whole).collect();
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
fn children(shape: &Shape, level: &[(u32, f64)], scale: Scale) -> (Vec<Piece>, Vec<(u32, f64)>) {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut next = Vec::new();
    for &(node, mut at) in level {
        for &child in &shape.node(node).children {
            let weight = shape.node(child).weight();
            next.push((child, at));
            let mut piece = Piece {
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

fn row(pieces: &[Piece], scale: Scale) -> Row {
    let mut row: Row = Vec::with_capacity(pieces.len());
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
