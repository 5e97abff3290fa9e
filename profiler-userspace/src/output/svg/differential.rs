//! A comparison as a flame graph.
//!
//! In: both sides as one tree. Out: frames as wide as on one side, or as the mean of both, so that what appeared and what
//! vanished are both there; red where there is more after, blue where there is less, grey where that may be noise, and
//! hatched where nothing is known of noise.

use super::color::Color;
use super::draw::Texts;
use super::layout::Layout;
use super::paint::{Paint, Paints};
use super::tree::{Node, Tree};
use super::{draw, pack, page};
use crate::diff::{self, Comparison, Verdict};
use crate::output::{Error, Style};
use crate::profile::Frame;
use crate::profile::fold::visible;
use std::collections::BTreeSet;
use std::io::Write;

/// What a whole side is as a width.
const SIDE: f64 = 1e9;

/// How wide frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::output) enum Widths {
    /// As the mean of both sides.
    Both,
    /// As before.
    Before,
    /// As after.
    After,
}

/// What a frame reads as beside its name.
pub(in crate::output) type Note<'a> = &'a dyn Fn(&diff::Node) -> String;

/// Draws a comparison. `texts` are the second line and the last one.
pub(in crate::output) fn write(
    comparison: &Comparison,
    widths: Widths,
    note: Note<'_>,
    texts: [String; 2],
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    style.check()?;
    let (tree, paints) = tree(comparison, widths, note);
    if tree.total() == 0 {
        return Err(Error::Empty);
    }
    let layout = Layout::new(&tree, style);
    let [subtitle, balance] = texts;
    let texts = Texts {
        subtitle,
        balance,
        ..Texts::new(style, "")
    };
    let packed = pack::pack((&tree, None), &paints, &texts, style)?;
    let drawing = draw::draw((&tree, None), &paints, &layout, &texts, style);
    Ok(page::write(&drawing, &packed, out)?)
}

/// The frames that have a width, and their colours. Each has a name of its own, since its colour and note are.
fn tree(comparison: &Comparison, widths: Widths, note: Note<'_>) -> (Tree, Paints) {
    let totals = comparison
        .sides
        .each_ref()
        .map(|side| side.total.max(f64::MIN_POSITIVE));
    // Shares of each side; where times are compared, of the larger one.
    let whole = totals[0].max(totals[1]);
    let width = |own: [f64; 2]| {
        let part = |side: usize| (own[side] / whole * SIDE).round() as u64;
        match widths {
            Widths::Both => part(0) + part(1),
            Widths::Before => part(0),
            Widths::After => part(1),
        }
    };
    let all = &comparison.nodes;
    let mut weights: Vec<u64> = all.iter().map(|node| width(node.own)).collect();
    let mut path: Vec<usize> = Vec::new();
    let mut parents = Vec::with_capacity(all.len());
    for (index, node) in all.iter().enumerate() {
        path.truncate(node.depth);
        parents.push(path.last().copied());
        path.push(index);
    }
    for (index, parent) in parents.iter().enumerate().rev() {
        if let Some(parent) = parent {
            weights[*parent] += weights[index];
        }
    }
    let meanings: BTreeSet<Meaning> = all
        .iter()
        .zip(&weights)
        .filter(|(_, weight)| **weight > 0)
        .map(|(node, _)| Meaning::of(node))
        .collect();
    let legend: Vec<(&'static str, Color)> = meanings
        .iter()
        .map(|meaning| (meaning.label(), meaning.color(0.7)))
        .collect();
    let mut tree = Tree::root();
    let mut paints = Paints {
        of_names: vec![Paint {
            color: Meaning::Noise.color(0.0),
            entry: None,
        }],
        legend,
        notes: vec!["everything, before and after".to_owned()],
        is_hatched: !comparison.claims,
    };
    for (node, weight) in all.iter().zip(&weights).filter(|(_, weight)| **weight > 0) {
        let name = u32::try_from(tree.names.len()).expect("fewer than 2^32 frames");
        tree.names.push(Frame {
            name: visible(&node.name).into_owned(),
            kind: node.class.frame_kind(),
        });
        paints.notes.push(note(node));
        let meaning = Meaning::of(node);
        paints.of_names.push(Paint {
            color: meaning.color(strength(node)),
            entry: meanings.iter().position(|known| *known == meaning),
        });
        tree.nodes.push(Node {
            name,
            depth: u32::try_from(node.depth + 1).expect("a stack has fewer than 2^32 frames"),
            own: width(node.own),
            weight: *weight,
            left: 0,
        });
        if node.depth == 0 {
            tree.nodes[0].weight += weight;
        }
    }
    tree.pack_left();
    (tree, paints)
}

/// How much of a frame changed, from 0 to 1.
fn strength(node: &diff::Node) -> f64 {
    let [before, after] = node.change.estimate.values;
    (after - before).abs() / before.max(after).max(f64::MIN_POSITIVE)
}

/// What a colour means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meaning {
    New,
    More,
    Less,
    Gone,
    Shift,
    Noise,
}

impl Meaning {
    fn of(node: &diff::Node) -> Self {
        let [before, after] = node.change.estimate.values;
        match node.change.verdict {
            Verdict::New => Self::New,
            Verdict::More => Self::More,
            Verdict::Less => Self::Less,
            Verdict::Gone => Self::Gone,
            Verdict::Shift => Self::Shift,
            Verdict::Noise | Verdict::Few => Self::Noise,
            Verdict::NoClaim if before == 0.0 => Self::New,
            Verdict::NoClaim if after == 0.0 => Self::Gone,
            Verdict::NoClaim if after > before => Self::More,
            Verdict::NoClaim if after < before => Self::Less,
            Verdict::NoClaim => Self::Noise,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::More => "more after",
            Self::Less => "less after",
            Self::Gone => "gone",
            Self::Shift => "moved",
            Self::Noise => "noise",
        }
    }

    fn color(self, strength: f64) -> Color {
        let lightness = 0.9 - 0.25 * strength.clamp(0.0, 1.0);
        let color = match self {
            Self::New => Color::from_hsl(335.0, 0.85, 0.7),
            Self::More => Color::from_hsl(8.0, 0.9, lightness),
            Self::Less => Color::from_hsl(205.0, 0.85, lightness),
            Self::Gone => Color::from_hsl(235.0, 0.8, 0.74),
            Self::Shift => Color::from_hsl(45.0, 0.75, 0.72),
            Self::Noise => Color::from_hsl(0.0, 0.0, 0.85),
        };
        color.readable()
    }
}
