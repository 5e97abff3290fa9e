//! A comparison as a flame graph.
//!
//! In: both sides as one tree. Out: frames as wide as on one side, or as the mean of both, so that what appeared and what
//! vanished are both there; red where there is more after, blue where there is less, grey where that may be noise, and
//! hatched where nothing is known of noise.

use super::bounded;
use super::color::Color;
use super::draw::Texts;
use super::paint::{Paint, Paints};
use super::rests::{self, Source};
use super::tree::{Node, Tree, all as root, rest};
use crate::diff::{self, Comparison, Verdict};
use crate::output::bound::Bound;
use crate::output::{Error, Style};
use crate::profile::fold::visible;
use crate::profile::{Frame, FrameKind};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write;

/// Width of a whole side.
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

/// Text of a frame beside its name.
pub(in crate::output) type Note<'a> = &'a dyn Fn(&diff::Node) -> String;

/// Draws a comparison. `texts` are the second line and the last one.
pub(in crate::output) fn write(
    comparison: &Comparison,
    widths: Widths,
    note: Note<'_>,
    texts: [String; 2],
    (style, bound): (&Style, Bound),
    out: &mut dyn Write,
) -> Result<(), Error> {
    style.check()?;
    let frames = Frames::new(comparison, widths);
    if frames.nodes[0].weight == 0 {
        return Err(Error::Empty);
    }
    let [subtitle, balance] = texts;
    let texts = Texts {
        subtitle,
        balance,
        ..Texts::new(style, "")
    };
    let make = |most: usize| {
        let (tree, paints) = frames.drawn(note, most);
        (Cow::Owned(tree), paints)
    };
    bounded(make, None, &texts, (style, bound), out)
}

/// Frames that have a width.
struct Frames<'a> {
    comparison: &'a Comparison,
    /// Below a root; the name of each is the place of what it is in the comparison, plus one.
    nodes: Vec<Node>,
}

impl<'a> Frames<'a> {
    fn new(comparison: &'a Comparison, widths: Widths) -> Self {
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
        let mut tree = Tree::root();
        let places = 0..comparison.nodes.len();
        tree.nodes.extend(places.map(|place| Node {
            name: place as u32 + 1,
            depth: comparison.nodes.depth(place) as u32 + 1,
            own: width(comparison.nodes.own(place)),
            weight: 0,
            left: 0,
        }));
        tree.add_up();
        let mut nodes = tree.nodes;
        nodes.retain(|node| node.depth == 0 || node.weight > 0);
        Self { comparison, nodes }
    }

    /// About so many of the widest, and their colours. Each has a name of its own, since its colour and note are.
    fn drawn(&self, note: Note<'_>, most: usize) -> (Tree, Paints) {
        let all = &self.comparison.nodes;
        // The first word is the root's.
        let word_of = |name: u32| match name.checked_sub(1) {
            Some(place) => all.name(place as usize) + 1,
            None => 0,
        };
        let folded = rests::fold(&self.nodes, (all.names().len() + 1, word_of), most);
        let drawn: Vec<Option<diff::Node>> = (folded.names.iter())
            .map(|source| match source {
                Source::Rest | Source::Word(_) | Source::Name(0) => None,
                Source::Name(name) => Some(all.at(*name as usize - 1)),
            })
            .collect();
        let meanings: BTreeSet<Meaning> = drawn.iter().flatten().map(Meaning::of).collect();
        let legend = meanings.iter();
        let mut paints = Paints {
            of_names: Vec::with_capacity(folded.names.len()),
            legend: legend
                .map(|meaning| (meaning.label(), meaning.color(0.7)))
                .collect(),
            notes: Vec::with_capacity(folded.names.len()),
            origins: (Vec::new(), vec![0; folded.names.len()]),
            is_hatched: !self.comparison.claims,
        };
        let mut names = Vec::with_capacity(folded.names.len());
        for (source, node) in folded.names.iter().zip(&drawn) {
            let frame = match (source, node) {
                (_, Some(node)) => {
                    Frame::new(visible(&node.name).into_owned(), node.class.frame_kind())
                }
                (Source::Word(word), None) => Frame::new(
                    visible(&all.names()[*word as usize - 1]).into_owned(),
                    FrameKind::User,
                ),
                (Source::Rest, None) => rest(),
                (Source::Name(_), None) => root(),
            };
            names.push(frame);
            paints.notes.push(match (source, node) {
                (_, Some(node)) => note(node),
                (Source::Rest | Source::Word(_), None) => String::new(),
                (Source::Name(_), None) => "everything, before and after".to_owned(),
            });
            paints.of_names.push(paint(node.as_ref(), &meanings));
        }
        let mut tree = Tree {
            names,
            nodes: folded.nodes,
            profilers: Vec::new(),
            rests: folded.rests,
        };
        tree.pack_left();
        (tree, paints)
    }
}

/// The colour of a frame; that of what has no meaning for one that is none of these.
fn paint(node: Option<&diff::Node>, meanings: &BTreeSet<Meaning>) -> Paint {
    let meaning = node.map(Meaning::of);
    let strength = node.map_or(0.0, strength);
    Paint {
        color: meaning.unwrap_or(Meaning::Noise).color(strength),
        entry: meanings.iter().position(|known| Some(*known) == meaning),
    }
}

/// How much of a frame changed, from 0 to 1.
fn strength(node: &diff::Node) -> f64 {
    let [before, after] = node.change.estimate.values;
    (after - before).abs() / before.max(after).max(f64::MIN_POSITIVE)
}

/// Meaning of a colour.
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
