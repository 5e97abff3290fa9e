//! The colours of a tree's names, and their legend.
//!
//! In: a palette and the names of a tree. Out: a colour for each of them, and the meanings that occur.

use super::color::Color;
use super::colors::{self, Look, Meaning};
use super::tree::Tree;
use crate::output::Palette;
use crate::profile::View;
use std::collections::BTreeSet;

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
    /// What colours mean, with one of them for each meaning.
    pub(super) legend: Vec<(&'static str, Color)>,
    /// What is said of a frame instead of its weight, by the tree's names; empty where its weight is what there is to say.
    pub(super) notes: Vec<String>,
    /// Whether frames are hatched, since nothing is claimed of them.
    pub(super) is_hatched: bool,
}

impl Paints {
    pub(super) fn new(palette: Palette, view: &View, tree: &Tree) -> Self {
        let looks = colors::looks(palette, view, &tree.names);
        // The root's means nothing.
        let meanings: BTreeSet<Meaning> =
            looks[1..].iter().filter_map(|look| look.meaning).collect();
        let paint = |look: &Look| Paint {
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
            is_hatched: false,
        }
    }
}
