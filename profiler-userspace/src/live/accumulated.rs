//! Accumulated windows: all of them, those of late, or the last.
//!
//! In: the profile of each window, once before all of its names are known and once with them. Out: [`Calls`]. A window
//! whose names come late counts at once, under what its code is called until then, and no window counts twice.

use super::calls::Calls;
use crate::profile::{Profile, Unit};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Fate of a window when the next one comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Keeping {
    /// It is kept.
    #[default]
    All,
    /// It counts an eighth less, as in perf top.
    Fading,
    /// It is forgotten.
    Last,
}

/// Factor of a weight that fades, with each window.
const FADE: f64 = 7.0 / 8.0;

impl Keeping {
    /// How much a window counts that so many others have followed.
    fn factor(self, age: u64) -> f64 {
        match self {
            Self::All => 1.0,
            Self::Fading => FADE.powi(i32::try_from(age).unwrap_or(i32::MAX)),
            Self::Last if age == 0 => 1.0,
            Self::Last => 0.0,
        }
    }
}

/// Windows of one event.
#[derive(Debug)]
pub(super) struct Accumulated {
    /// Of windows whose names are known.
    settled: Calls,
    /// The others, by their numbers.
    provisional: BTreeMap<u64, Profile>,
    /// The number of the last window.
    last: u64,
    /// Windows before this one do not count any more.
    first: u64,
}

impl Accumulated {
    /// No window yet.
    pub(super) fn new(unit: Unit) -> Self {
        Self {
            settled: Calls::new(unit),
            provisional: BTreeMap::new(),
            last: 0,
            first: 0,
        }
    }

    /// Takes in a window, for the first time or again. `is_final`: all of its names are known, or will never be.
    pub(super) fn take(&mut self, number: u64, profile: Profile, is_final: bool, keeping: Keeping) {
        for _ in self.last..number {
            match keeping {
                Keeping::All => {}
                Keeping::Fading => self.settled.fade(FADE),
                Keeping::Last => self.settled = Calls::new(self.settled.unit.clone()),
            }
        }
        self.last = self.last.max(number);
        self.provisional.remove(&number);
        if number < self.first {
            return;
        }
        let factor = keeping.factor(self.last - number);
        if !is_final {
            self.provisional.insert(number, profile);
        } else if factor > 0.0 {
            self.settled.add(&profile, factor);
        }
    }

    /// Forgets all windows that there were.
    pub(super) fn reset(&mut self) {
        self.settled = Calls::new(self.settled.unit.clone());
        self.provisional.clear();
        self.first = self.last + 1;
    }

    /// All that counts.
    pub(super) fn calls(&self, keeping: Keeping) -> Cow<'_, Calls> {
        let mut calls = Cow::Borrowed(&self.settled);
        for (number, profile) in &self.provisional {
            let factor = keeping.factor(self.last - number);
            if factor > 0.0 {
                calls.to_mut().add(profile, factor);
            }
        }
        calls
    }
}
