//! The colours of a tree's names, and their legend.
//!
//! In: a palette and the names of a tree. Out: a colour for each of them, and the meanings that occur.

use super::color::Color;
use super::colors::{self, FrameStyle, Meaning};
use super::tree::{Tree, drawn};
use crate::output::Palette;
use crate::profile::fold::visible;
use crate::profile::{CodePlace, Frame, View};
use indexmap::IndexSet;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// A name's colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    pub(super) color: Color,
    /// Its place in [`Paints::legend`], if the palette means something by it.
    pub(super) entry: Option<usize>,
}

/// Colours of all names.
#[derive(Debug)]
pub(super) struct Paints {
    /// By the tree's names.
    pub(super) of_names: Vec<Paint>,
    /// Meanings of colours, with one colour for each.
    pub(super) legend: Vec<(&'static str, Color)>,
    /// Text on a frame instead of its weight, by the tree's names; empty where its weight is what there is to say.
    pub(super) notes: Vec<String>,
    /// Where the code of the tree's names is, each once, and for each name its place there plus one; 0 where it is not known.
    pub(super) origins: (Vec<String>, Vec<u32>),
    /// Whether frames are hatched, since nothing is claimed of them.
    pub(super) is_hatched: bool,
}

impl Paints {
    pub(super) fn new(palette: Palette, view: &View, tree: &Tree) -> Self {
        let mut looks = colors::looks(palette, view, &tree.names);
        looks[0].color = colors::ROOT;
        // The root's means nothing.
        let meanings: BTreeSet<Meaning> =
            looks[1..].iter().filter_map(|look| look.meaning).collect();
        let paint = |look: &FrameStyle| Paint {
            color: look.color,
            entry: meanings
                .iter()
                .position(|known| Some(*known) == look.meaning),
        };
        Self {
            of_names: looks.iter().map(paint).collect(),
            legend: meanings
                .iter()
                .map(|meaning| (meaning.label(), meaning.sample()))
                .collect(),
            notes: Vec::new(),
            origins: origins(view, tree),
            is_hatched: false,
        }
    }
}

/// Where the code of a tree's names is: `module\tfile`.
fn origins(view: &View, tree: &Tree) -> (Vec<String>, Vec<u32>) {
    let origins = view.code_places();
    let mut of_frames: HashMap<Cow<'_, Frame>, CodePlace> = HashMap::new();
    for ((frame, _), origin) in view.tree().frames().zip(origins.all()) {
        of_frames
            .entry(drawn(frame))
            .and_modify(|known| *known = known.and(origin))
            .or_insert(origin);
    }
    let mut all: IndexSet<CodePlace> = IndexSet::new();
    let is_known = |origin: &&CodePlace| **origin != CodePlace::default();
    let of_names = (tree.names.iter())
        .map(|name| match of_frames.get(name).filter(is_known) {
            Some(origin) => all.insert_full(*origin).0 as u32 + 1,
            None => 0,
        })
        .collect();
    let text = |origin: CodePlace| {
        let file = origins.file(origin);
        format!("{}\t{}", visible(origins.module(origin)), visible(&file))
    };
    (all.into_iter().map(text).collect(), of_names)
}
