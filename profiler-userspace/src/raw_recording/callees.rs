//! Which locations have followed which in stacks, from the root: a call that led somewhere before mostly leads there again.
//!
//! In: pairs of neighbours, in the order in which they stand in a file. Out: a small number for most of them. The
//! writer and the reader of a file see the same pairs in the same order, so both know what a number means.

use foldhash::HashMap;

/// How many callees of a location are known at most. Few places call more, and none becomes costly.
const MAX: usize = 64;

/// Callees of each location, by their numbers, the latest first. None stands for the caller of the
/// root.
#[derive(Debug, Default)]
pub(super) struct Callees(HashMap<Option<u32>, Vec<u32>>);

/// About as much memory as the callees of one location take, in bytes: most have few.
const BYTES: usize = 96;

impl Callees {
    /// Where `location` stood among what followed `caller`. From now on it is the latest.
    pub(super) fn place(&mut self, caller: Option<u32>, location: u32) -> Option<usize> {
        let callees = self.0.entry(caller).or_default();
        let place = callees.iter().position(|callee| *callee == location);
        match place {
            Some(place) => callees[..=place].rotate_right(1),
            None => {
                callees.truncate(MAX - 1);
                callees.insert(0, location);
            }
        }
        place
    }

    /// About as much memory as all of them take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        BYTES * self.0.len()
    }

    /// The callee at a place, which is the latest from now on.
    pub(super) fn at(&mut self, caller: Option<u32>, place: usize) -> Option<u32> {
        let callees = self.0.get_mut(&caller)?;
        let callees = callees.get_mut(..=place)?;
        callees.rotate_right(1);
        callees.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_latest_callee_comes_first() {
        let mut callees = Callees::default();
        for location in [7, 8, 9] {
            assert_eq!(callees.place(Some(1), location), None);
        }
        assert_eq!(callees.place(Some(1), 7), Some(2));
        assert_eq!(callees.place(Some(1), 7), Some(0));
        assert_eq!(callees.place(Some(1), 9), Some(1));
        assert_eq!(callees.place(None, 9), None, "that is the root");
        assert_eq!(callees.at(Some(1), 2), Some(8));
        assert_eq!(callees.at(Some(1), 3), None);
        assert_eq!(callees.at(Some(2), 0), None);
    }

    #[test]
    fn callees_unused_for_long_are_forgotten() {
        let mut callees = Callees::default();
        for location in 0..=MAX as u32 {
            callees.place(None, location);
        }
        assert_eq!(callees.place(None, 1), Some(MAX - 1));
        assert_eq!(callees.place(None, 0), None);
        assert_eq!(callees.at(None, MAX), None);
    }

    proptest! {
        #[test]
        fn writer_and_reader_agree_on_callees(pairs in prop::collection::vec((prop::option::of(0_u32..5), 0_u32..100), 0..2_000)) {
            let (mut writer, mut reader) = (Callees::default(), Callees::default());
            for (caller, location) in pairs {
                match writer.place(caller, location) {
                    Some(place) => prop_assert_eq!(reader.at(caller, place), Some(location)),
                    None => prop_assert_eq!(reader.place(caller, location), None),
                }
            }
        }
    }
}
