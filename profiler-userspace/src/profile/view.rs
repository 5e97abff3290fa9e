//! A profile as folded text and flame graphs show it: one tree, in which owners are frames.
//!
//! In: a [`Profile`]. Out: its calls below its labels, and where their code is. Never: changes a weight.

use super::call_tree::CallTree;
use super::code_places::CodePlaces;
use super::model::{Profile, Sample};
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
        Self::of(profile, profile.samples().iter().copied(), false)
    }

    /// How a profile reads, with a frame between the user and the kernel part of each stack where that is wanted.
    pub fn delimited(profile: &Profile, is_delimited: bool) -> Self {
        Self::of(profile, profile.samples().iter().copied(), is_delimited)
    }

    /// As [`delimited`](Self::delimited), of a profile that nobody needs any more: its memory is freed as it is read.
    pub fn instead_of(mut profile: Profile, is_delimited: bool) -> Self {
        let samples = profile.take_samples();
        Self::of(&profile, samples.into_iter(), is_delimited)
    }

    fn of(
        profile: &Profile,
        samples: impl ExactSizeIterator<Item = Sample>,
        is_delimited: bool,
    ) -> Self {
        let builder = Builder::new(profile, Owner::InStack { is_delimited });
        let own = profile.profiler_stack();
        let mut profilers: HashSet<&str> = HashSet::default();
        let samples = samples.inspect(|sample| {
            if own.is_some() && sample.user == own {
                profilers.extend(profile.labels_at(sample.labels).name());
            }
        });
        let tree = CallTree::of(builder, samples);
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
