//! Call chains that a program allows, by its own account.
//!
//! In: what a workload said behind `ready`: `chain FUNCTION;FUNCTION;…` from root to leaf of each chain that is run for long,
//! `rare FUNCTION;…` of those that may be met besides. Out: whether a profile's stacks are such chains, or parts of them from
//! the root. Never: guesses at what a function is; that says the test.

use std::collections::HashSet;

use crate::{ALL_BUT_A_FEW, Folded, Said, Stack};

/// The chains of a program.
#[derive(Clone, Debug)]
pub struct Grammar {
    often: Vec<Vec<String>>,
    allowed: HashSet<Vec<String>>,
}

impl Grammar {
    /// The chains that a workload said.
    ///
    /// # Panics
    ///
    /// When it said none.
    #[track_caller]
    pub fn of(said: &Said) -> Self {
        let chains = |word: &'static str| {
            let lines = said.lines.iter();
            let chains = lines.filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '));
            chains.map(|chain| chain.split(';').map(str::to_owned).collect::<Vec<_>>())
        };
        let often: Vec<_> = chains("chain").collect();
        assert!(!often.is_empty(), "no chains in {said:?}");
        let all = often.iter().cloned().chain(chains("rare"));
        let parts =
            |chain: Vec<String>| (1..=chain.len()).map(move |length| chain[..length].to_vec());
        Self {
            allowed: all.flat_map(parts).collect(),
            often,
        }
    }

    /// The same of functions whose names lack what they are defined in, up to the last `separator`.
    #[must_use]
    pub fn unqualified(self, separator: char) -> Self {
        let shorten = |chain: Vec<String>| -> Vec<String> {
            let names = chain
                .iter()
                .map(|name| name.rsplit(separator).next().unwrap_or(name));
            names.map(str::to_owned).collect()
        };
        Self {
            often: self.often.into_iter().map(shorten).collect(),
            allowed: self.allowed.into_iter().map(shorten).collect(),
        }
    }

    /// Checks that nearly all stacks are allowed and that no chain is missing. `functions` says which of a stack's frames are
    /// the program's functions, from the root.
    ///
    /// # Panics
    ///
    /// When they are not, or one is.
    #[track_caller]
    pub fn check(&self, folded: &Folded, functions: impl Fn(&Stack) -> Vec<String>) {
        let (mut right, mut wrong) = (0, Vec::new());
        let mut seen = HashSet::new();
        for stack in &folded.stacks {
            let functions = functions(stack);
            if self.allowed.contains(&functions) {
                right += stack.weight;
                seen.insert(functions);
            } else {
                wrong.push((stack.weight, functions.join(";")));
            }
        }
        // Of functions that are entered or left at that moment, one in thousands stands at another native frame.
        let share = right as f64 / folded.total() as f64;
        wrong.sort_by(|one, other| other.cmp(one));
        assert!(
            share > ALL_BUT_A_FEW,
            "allowed are {share:.4}, not these: {wrong:?}"
        );
        for chain in &self.often {
            assert!(seen.contains(chain), "{chain:?} is missing in {folded}");
        }
    }
}
