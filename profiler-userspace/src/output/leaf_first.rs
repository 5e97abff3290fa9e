//! The stack of a sample from the leaf on, as pprof and its relatives want it.
//!
//! In: a sample. Out: its locations and marks in the order of folded text, reversed, as IDs of the format's own tables.

use crate::profile::normalized::{LocationIndex, NormalizedStackIndex};
use crate::profile::{Profile, Sample, Wakers, marks};
use profiler_common::abi::ThreadState;

/// The tables of a format, which say what a location's ID is.
pub(super) trait Places {
    /// Frames of stacks.
    type Id;

    /// The ID of a location of the profile.
    fn location(&mut self, index: LocationIndex) -> Self::Id;

    /// The ID of a location that is no place, but says something.
    fn mark(&mut self, name: &'static str) -> Self::Id;
}

/// The stack of a sample of the profile.
pub(super) fn stack<P: Places>(profile: &Profile, sample: &Sample, places: &mut P) -> Vec<P::Id> {
    let ids = Vec::new();
    let mut stack = Stack {
        profile,
        places,
        ids,
    };
    stack.push(sample);
    stack.ids
}

struct Stack<'a, P: Places> {
    profile: &'a Profile,
    places: &'a mut P,
    ids: Vec<P::Id>,
}

impl<P: Places> Stack<'_, P> {
    fn push(&mut self, sample: &Sample) {
        let view = self.profile.off_cpu;
        match view.map(|view| view.wakers) {
            Some(Wakers::Alone) => return self.push_waker(sample),
            Some(Wakers::Above) => {
                self.push_waker(sample);
                // The waker stands upside down above what waited.
                self.ids.reverse();
                self.push_mark(marks::WOKEN_BY);
            }
            Some(Wakers::None) | None => {}
        }
        let mark = match (sample.thread_state, sample.reason) {
            (ThreadState::Running, _) => None,
            (ThreadState::Ran, _) => Some(marks::NOT_SAMPLED),
            (ThreadState::Runnable, _) => Some(marks::RUNNABLE),
            (ThreadState::Blocked | ThreadState::Woken, Some(reason)) => Some(reason.name()),
            (ThreadState::Blocked | ThreadState::Woken, None) => {
                let is_told = view.is_none_or(|view| view.ran);
                is_told.then_some(marks::BLOCKED)
            }
        };
        if let Some(mark) = mark {
            self.push_mark(mark);
        }
        self.push_thread(sample.user, sample.kernel);
    }

    fn push_thread(
        &mut self,
        user: Option<NormalizedStackIndex>,
        kernel: Option<NormalizedStackIndex>,
    ) {
        let profile = self.profile;
        for index in [kernel, user].into_iter().flatten() {
            let stack = profile.stack_at(index);
            for location in stack.locations() {
                let id = self.places.location(location);
                self.ids.push(id);
            }
            if let Some(mark) = stack.end.mark() {
                self.push_mark(mark);
            }
        }
    }

    fn push_waker(&mut self, sample: &Sample) {
        let waker = sample.waker.map(|index| *self.profile.waker_at(index));
        let mark = match (sample.thread_state, waker) {
            (ThreadState::Woken, Some(waker)) if waker.interrupt => {
                self.push_thread(None, waker.kernel);
                marks::INTERRUPT
            }
            (ThreadState::Woken, Some(waker)) => {
                return self.push_thread(waker.user, waker.kernel);
            }
            (ThreadState::Woken, None) => marks::WAKER_UNSEEN,
            _ => marks::NOT_WOKEN,
        };
        self.push_mark(mark);
    }

    fn push_mark(&mut self, name: &'static str) {
        let id = self.places.mark(name);
        self.ids.push(id);
    }
}
