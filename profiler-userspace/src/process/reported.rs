//! Mappings of one process that the kernel half reported, and which of them a stack's addresses lay in.
//!
//! In: mappings as they were when an address in them was sampled. Out: those that lay at an address, at one time or
//! another, and the choice among them that gives the check of a stack. Pure.

use super::mapping::{Mapping, find};
use foldhash::HashMap;
use profiler_common::abi::{MappingCheck, MappingKey};
use std::ops::Range;
use std::time::SystemTime;

/// The most ways to choose mappings that are tried for one stack.
const MAX_WAYS: usize = 4096;

/// Choice among the mappings that lay at an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Choice {
    /// The only one, or the first.
    #[default]
    First,
    /// The reported mapping of this layer.
    Layer(u16),
    /// Memory that belongs to no file.
    Memory,
    /// None: which it was could not be told.
    Unknown,
}

/// Mappings that were reported.
#[derive(Debug, Default)]
pub(super) struct ReportedMappings {
    /// Ascending, and without overlaps in each. Where another thing was mapped at an address later, it is
    /// in a later one.
    layers: Vec<Vec<Mapping>>,
    /// When the last one came.
    pub(super) seen: Option<SystemTime>,
}

impl ReportedMappings {
    /// Adds a mapping, unless it is known.
    pub(super) fn add(&mut self, mapping: Mapping) {
        self.seen = Some(SystemTime::now());
        let mut free = None;
        for (number, layer) in self.layers.iter().enumerate() {
            match overlapping(layer, &mapping).next() {
                Some(other) if other.says_the_same(&mapping) => return,
                Some(_) => {}
                None => free = free.or(Some(number)),
            }
        }
        let Some(number) = free else {
            return self.layers.push(vec![mapping]);
        };
        let layer = &mut self.layers[number];
        let at = layer.partition_point(|other| other.range.end <= mapping.range.start);
        layer.insert(at, mapping);
    }

    /// Whether there is another thing where a mapping lies.
    pub(super) fn contest(&self, mapping: &Mapping) -> bool {
        let mut layers = self.layers.iter();
        layers.any(|layer| {
            overlapping(layer, mapping).any(|other| other.mapping_key != mapping.mapping_key)
        })
    }

    /// The first mapping that was reported at an address.
    pub(super) fn first(&self, address: u64) -> Option<&Mapping> {
        let mut layers = self.layers.iter();
        layers.find_map(|layer| find(layer, address))
    }

    /// The mapping at an address in a layer.
    pub(super) fn in_layer(&self, layer: u16, address: u64) -> Option<&Mapping> {
        find(self.layers.get(usize::from(layer))?, address)
    }

    /// The different mappings at an address.
    pub(super) fn at(&self, address: u64) -> impl Iterator<Item = (Choice, MappingKey)> {
        let layers = (0..).zip(&self.layers);
        let mut choices: Choices = Vec::new();
        for (number, layer) in layers {
            if let Some(mapping) = find(layer, address)
                && choices
                    .iter()
                    .all(|(_, known)| *known != mapping.mapping_key)
            {
                choices.push((Choice::Layer(number), mapping.mapping_key));
            }
        }
        choices.into_iter()
    }

    /// All of them.
    pub(super) fn mappings(&self) -> impl Iterator<Item = &Mapping> + Clone {
        self.layers.iter().flatten()
    }
}

/// Those of some ascending mappings that lie where another one does.
fn overlapping<'m>(
    mappings: &'m [Mapping],
    mapping: &Mapping,
) -> impl Iterator<Item = &'m Mapping> + use<'m> {
    let Range { start, end } = mapping.range;
    let at = mappings.partition_point(|other| other.range.end <= start);
    let behind = mappings[at..].iter();
    behind.take_while(move |other| other.range.start < end)
}

/// The mappings that may have lain at an address when it was sampled.
pub(super) type Choices = Vec<(Choice, MappingKey)>;

/// The choice for each address of a stack that gives its check. Where none does, or too many would have to be tried, what
/// lay at an address that has several choices is not known.
///
/// Addresses with the same choices lie in the same mapping: only one of them was there at that time.
pub(super) fn choose(frames: &[Choices], check: u32) -> Vec<Choice> {
    let mut groups: Vec<&Choices> = Vec::new();
    let mut known: HashMap<&Choices, usize> = HashMap::default();
    let of_frame: Vec<usize> = frames
        .iter()
        .map(|choices| {
            *known.entry(choices).or_insert_with(|| {
                groups.push(choices);
                groups.len() - 1
            })
        })
        .collect();
    let ways = groups.iter().try_fold(1_usize, |ways, choices| {
        ways.checked_mul(choices.len().max(1))
            .filter(|ways| *ways <= MAX_WAYS)
    });
    let mut chosen = vec![0; groups.len()];
    for way in 0..ways.unwrap_or(0) {
        let mut rest = way;
        for (chosen, choices) in chosen.iter_mut().zip(&groups) {
            *chosen = rest % choices.len().max(1);
            rest /= choices.len().max(1);
        }
        let choice = |group: usize| groups[group].get(chosen[group]);
        let all = of_frame.iter().fold(MappingCheck::EMPTY, |all, &group| {
            all.with(choice(group).map_or(MappingKey::NONE, |(_, mapping_key)| *mapping_key))
        });
        if all.finish() == check {
            let of_group =
                |&group: &usize| choice(group).map_or(Choice::First, |(choice, _)| *choice);
            return of_frame.iter().map(of_group).collect();
        }
    }
    let is_sure = |choices: &Choices| choices.len() < 2;
    frames
        .iter()
        .map(|choices| {
            if is_sure(choices) {
                Choice::First
            } else {
                Choice::Unknown
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(mapping_keys: impl IntoIterator<Item = u64>) -> u32 {
        let all = mapping_keys.into_iter();
        all.fold(MappingCheck::EMPTY, |check, word| {
            check.with(MappingKey(word))
        })
        .finish()
    }

    fn choices(words: &[u64]) -> Choices {
        (0..)
            .map(Choice::Layer)
            .zip(words.iter().copied().map(MappingKey))
            .collect()
    }

    #[test]
    fn a_check_that_no_choice_gives_leaves_contested_addresses_unknown() {
        let frames = [choices(&[10, 20]), choices(&[30])];
        assert_eq!(
            choose(&frames, check([11, 30])),
            [Choice::Unknown, Choice::First]
        );
    }

    #[test]
    fn too_many_ways_are_not_tried() {
        let group = |number: u64| choices(&[number * 10 + 2, number * 10 + 3]);
        let frames: Vec<Choices> = (0..13).map(group).collect();
        let check = check((0..13).map(|number| number * 10 + 2));
        assert!(
            choose(&frames, check)
                .iter()
                .all(|choice| *choice == Choice::Unknown)
        );
        let few = &frames[..12];
        let check = super::tests::check((0..12).map(|number| number * 10 + 3));
        assert!(
            choose(few, check)
                .iter()
                .all(|choice| *choice == Choice::Layer(1))
        );
    }

    proptest! {
        #[test]
        fn the_choice_that_was_made_is_found_again(
            groups in prop::collection::vec(prop::collection::btree_set(2..u64::MAX, 1..4), 1..4),
            frames in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
            made in prop::collection::vec(any::<prop::sample::Index>(), 4),
        ) {
            let groups: Vec<Vec<u64>> = groups.into_iter().map(|group| group.into_iter().collect()).collect();
            let of_frame: Vec<usize> = frames.iter().map(|frame| frame.index(groups.len())).collect();
            let made: Vec<usize> = groups.iter().zip(&made).map(|(group, made)| made.index(group.len())).collect();
            let check = check(of_frame.iter().map(|&group| groups[group][made[group]]));
            let all: Vec<Choices> = of_frame.iter().map(|&group| choices(&groups[group])).collect();
            for (choice, &group) in choose(&all, check).iter().zip(&of_frame) {
                let Choice::Layer(layer) = choice else { panic!("{choice:?}") };
                prop_assert_eq!(groups[group][usize::from(*layer)], groups[group][made[group]]);
            }
        }
    }
}
