//! A profile as folded text and flame graphs show it: one tree, in which owners are frames.
//!
//! In: a [`Profile`]. Out: its calls below its labels, and where their code is. Never: changes a weight.

use super::call_tree::CallTree;
use super::code_places::CodePlaces;
use super::model::Profile;
use super::stacks::{Builder, Owner};
use super::{FrameKind, Unit, marks};
use foldhash::HashSet;

/// The stacks of a profile as one tree of frames.
#[derive(Clone, Debug)]
pub struct View {
    /// Unit of the weights.
    pub unit: Unit,
    tree: CallTree,
    code_places: CodePlaces,
}

impl View {
    /// How a profile reads.
    pub fn new(profile: &Profile) -> Self {
        Self::delimited(profile, false)
    }

    /// How a profile reads, with a frame between the user and the kernel part of each stack where that is wanted.
    pub fn delimited(profile: &Profile, is_delimited: bool) -> Self {
        let mut profilers: HashSet<&str> = HashSet::default();
        if let own @ Some(_) = profile.profiler_stack() {
            let samples = profile.samples().iter();
            let its = samples.filter(|sample| sample.user == own);
            profilers.extend(its.filter_map(|sample| profile.labels_at(sample.labels).name()));
        }
        let tree = CallTree::of(Builder::new(profile, Owner::InStack), profile.samples());
        let tree = match is_delimited {
            true => tree.delimited(),
            false => tree,
        };
        let mut code_places = CodePlaces::new(profile, tree.frames());
        for id in tree.frame_ids() {
            let frame = tree.frame(id);
            if frame.kind == FrameKind::Mark && profilers.contains(&*frame.name) {
                code_places.set_module(id, marks::ITSELF);
            }
        }
        Self {
            unit: profile.unit.clone(),
            code_places,
            tree,
        }
    }

    /// Its calls: labels and process, then user frames, then kernel frames, then marks.
    pub fn tree(&self) -> &CallTree {
        &self.tree
    }

    /// Where the code of all frames is.
    pub fn code_places(&self) -> &CodePlaces {
        &self.code_places
    }

    /// The sum of all weights.
    pub fn total_weight(&self) -> u64 {
        let weights = self.tree.samples().iter().map(|sample| sample.weight);
        weights.fold(0, u64::saturating_add)
    }
}
