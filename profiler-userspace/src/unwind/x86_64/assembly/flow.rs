//! Chooses where to begin to follow code.
//!
//! In: code, and where functions begin in it, for certain or likely. Out: a [`Walk`] that has followed it all. Takes a number of
//! steps in proportion to the code, whatever that is.

use super::parts::Parts;
use super::states::States;
use super::walk::{Callee, Refusal, Trust, Walk};
use crate::code::Undescribed;
use foldhash::{HashSet, HashSetExt as _};
use std::ops::Range;

/// Follows all code from all beginnings.
pub(super) fn follow(code: &Undescribed) -> Walk<'_> {
    let mut flow = Flow::of(code);
    flow.follow();
    flow.walk.endless.remove(&Callee::Computed);
    if flow.walk.endless.is_empty() {
        return flow.walk;
    }
    // Some functions turned out never to return, after others had been taken to go on behind their calls.
    let mut again = Flow::of(code);
    again.walk.endless = flow.walk.endless;
    again.certain.extend(flow.walk.begins);
    again.follow();
    again.walk
}

/// A walk, and where it is to begin.
struct Flow<'c> {
    walk: Walk<'c>,
    certain: Vec<u32>,
    likely: Vec<u32>,
    started: Option<u32>,
    /// Which of the beginnings that were followed are no more than likely.
    likely_begins: HashSet<u32>,
}

impl<'c> Flow<'c> {
    fn of(code: &'c Undescribed) -> Self {
        let parts = code.parts.iter();
        let parts = Parts::new(parts.map(|(address, bytes)| (*address, bytes.as_slice())));
        let places = |all: &[u64]| all.iter().filter_map(|&at| parts.place(at)).collect();
        Self {
            certain: places(&code.certain),
            likely: places(&code.likely),
            started: code.started.and_then(|at| parts.place(at)),
            walk: Walk::new(parts),
            likely_begins: HashSet::new(),
        }
    }

    /// Follows what is certain first: what is likely may turn out to be the middle of something.
    fn follow(&mut self) {
        let certain = std::mem::take(&mut self.certain);
        let likely = std::mem::take(&mut self.likely);
        self.walk.begins.extend(&certain);
        self.walk.begins.extend(self.started);
        let done = self
            .start()
            .and_then(|()| self.all_certain(&certain))
            .and_then(|()| self.all_likely(&likely))
            .and_then(|()| self.all_hidden())
            .and_then(|()| self.all_taken());
        // If there was too much, what was followed by then holds.
        let _ = done;
    }

    fn start(&mut self) -> Result<(), Refusal> {
        match self.started {
            Some(place) => self.begin(place, States::STARTED, Trust::Certain),
            None => Ok(()),
        }
    }

    /// Follows a function, and those that it calls.
    fn begin(&mut self, place: u32, state: u32, trust: Trust) -> Result<(), Refusal> {
        self.walk.begin(place, state, trust)?;
        while let Some(place) = self.walk.called.pop() {
            self.walk.begin(place, States::CALLED, Trust::Certain)?;
        }
        Ok(())
    }

    fn all_certain(&mut self, all: &[u32]) -> Result<(), Refusal> {
        for &place in all {
            if Some(place) != self.started {
                self.begin(place, States::CALLED, Trust::Certain)?;
            }
        }
        Ok(())
    }

    fn all_likely(&mut self, all: &[u32]) -> Result<(), Refusal> {
        for &place in all {
            if self.walk.visited.at(place).is_none() {
                self.likely_begins.insert(place);
                self.begin(place, States::CALLED, Trust::Likely)?;
            }
        }
        Ok(())
    }

    /// Follows what only computed jumps lead to: code behind an end within a function, all of whose computed jumps are
    /// made with the same frame.
    fn all_hidden(&mut self) -> Result<(), Refusal> {
        let mut from = 0;
        while let Some((&jump, _)) = self.walk.computed.range(from..).next() {
            let extent = self.extent(jump);
            from = extent.end.max(jump + 1);
            self.hidden_in(&extent)?;
        }
        Ok(())
    }

    fn hidden_in(&mut self, extent: &Range<u32>) -> Result<(), Refusal> {
        let mut from = extent.start;
        let mut jumping = self.jumping(extent);
        if self.likely_begins.contains(&extent.start) && jumping.is_some_and(|at| self.is_bare(at))
        {
            // It may be a label of a computed jump itself, taken for a function.
            return Ok(());
        }
        while let Some(state) = jumping
            && let Some(&end) = self.walk.ends.range(from..extent.end).next()
        {
            from = end + 1;
            let place = self.walk.parts.skip_padding(end);
            let is_function = self.walk.taken.contains(&place) && self.walk.parts.is_aligned(place);
            if extent.contains(&place) && !is_function && self.walk.visited.at(place).is_none() {
                let known = self.walk.computed.len();
                self.begin(place, state, Trust::Likely)?;
                if self.walk.computed.len() != known {
                    // The code that was found has computed jumps of its own.
                    jumping = self.jumping(extent);
                }
            }
        }
        Ok(())
    }

    /// Whether a state has nothing on the stack but the return address.
    fn is_bare(&self, state: u32) -> bool {
        self.walk.states.get(state).stack() == self.walk.states.get(States::CALLED).stack()
    }

    /// The state at all computed jumps of a function; none if their frames differ.
    fn jumping(&mut self, extent: &Range<u32>) -> Option<u32> {
        let mut all = self.walk.computed.range(extent.clone());
        let (&first, &number) = all.next()?;
        let mut same = self.walk.states.get(number).clone();
        for (_, &other) in all {
            let other = self.walk.states.get(other);
            if same.stack() != other.stack() {
                return None;
            }
            same = same.meet(other, first);
        }
        Some(self.walk.states.number(&same))
    }

    /// Follows addresses that the code itself takes, where functions can begin.
    fn all_taken(&mut self) -> Result<(), Refusal> {
        while let Some(place) = self.walk.taken.pop_first() {
            if self.walk.visited.at(place).is_none() && self.walk.parts.is_aligned(place) {
                self.begin(place, States::CALLED, Trust::Likely)?;
            }
        }
        Ok(())
    }

    /// From the beginning of the function around a place to that of the next.
    fn extent(&self, place: u32) -> Range<u32> {
        let begins = &self.walk.begins;
        let around = self.walk.parts.around(place);
        let start = begins.range(around.start..=place).next_back();
        let behind = begins.range(place + 1..around.end).next();
        *start.unwrap_or(&around.start)..*behind.unwrap_or(&around.end)
    }
}
