//! States by number.
//!
//! In: states. Out: the number of each, the same for equal ones.

use super::state::State;
use foldhash::{HashMap, HashMapExt as _};

/// The most different states. When there are more, nothing is known where one of the others would be.
const MAX_STATES: usize = 1 << 18;

/// The states by number.
pub(super) struct States {
    all: Vec<State>,
    numbers: HashMap<State, u32>,
}

impl States {
    /// The number of the state in which nothing is known. No state has zero.
    pub(super) const UNKNOWN: u32 = 1;
    /// That in which a function is called.
    pub(super) const CALLED: u32 = 2;
    /// That in which a program is started.
    pub(super) const STARTED: u32 = 3;

    pub(super) fn new() -> Self {
        let mut states = Self {
            all: vec![State::unknown()],
            numbers: HashMap::new(),
        };
        for state in [State::unknown(), State::called(), State::started()] {
            states.number(&state);
        }
        states
    }

    /// The state with a number.
    pub(super) fn get(&self, number: u32) -> &State {
        self.all.get(number as usize).unwrap_or(&self.all[0])
    }

    /// The number of a state.
    pub(super) fn number(&mut self, state: &State) -> u32 {
        if let Some(&number) = self.numbers.get(state) {
            return number;
        }
        if self.all.len() == MAX_STATES {
            return Self::UNKNOWN;
        }
        let number = self.all.len() as u32;
        self.all.push(state.clone());
        self.numbers.insert(state.clone(), number);
        number
    }
}
