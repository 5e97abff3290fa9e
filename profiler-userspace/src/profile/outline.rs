//! The widest nodes of any tree, and one rest for each of their callers, so that files have a bound.
//!
//! In: calls in preorder, and how many of them are wanted. Out: those that are left and rests of the others, in preorder, and for
//! each word how much weight it has in rests. Never: a weight that is lost.

use std::cmp::Reverse;

/// A node of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// How many nodes are below it; 0 for the first, the root.
    pub(crate) depth: u32,
    /// The word that it reads as.
    pub(crate) word: u32,
    /// Its weight and that of all that it called.
    pub(crate) weight: u64,
}

/// A node of an outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The call that had this place.
    Call(u32),
    /// A rest, behind all else that its caller called.
    Rest {
        /// As of a call.
        depth: u32,
        /// The weight of its calls.
        weight: u64,
        /// How many calls it stands for.
        calls: u64,
    },
}

/// The place of a call in an outline.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OutlineSlot {
    /// It is this node.
    Kept(u32),
    /// It is part of the rest of this number.
    Rest(u32),
}

/// A word in an outline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Word {
    /// How many calls on the path from the root read so.
    open: u32,
    /// Whether a call that is left reads so.
    is_kept: bool,
    /// The weight of such calls in rests, those below one that reads the same left out.
    pub(crate) hidden: u64,
}

/// A tree with rests.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) nodes: Vec<Left>,
    /// The places of rests among the nodes, by their numbers.
    rests: Vec<u32>,
    pub(crate) words: Vec<Word>,
}

impl Outline {
    /// About so many of these calls, the widest, in preorder from the root. `moved` gets the place of each in turn.
    pub(crate) fn new(
        calls: impl Iterator<Item = Call> + Clone,
        words: usize,
        most: usize,
        mut moved: impl FnMut(OutlineSlot),
    ) -> Self {
        let mut outlining = Outlining {
            least: least(calls.clone().map(|call| call.weight), most),
            path: Vec::new(),
            kept: 0,
            outline: Self {
                words: vec![Word::default(); words],
                ..Self::default()
            },
        };
        for (at, call) in (0..).zip(calls) {
            outlining.leave(call.depth);
            moved(outlining.enter(at, call));
        }
        outlining.leave(0);
        outlining.outline
    }

    /// The node that a place is.
    pub(crate) fn node(&self, place: OutlineSlot) -> u32 {
        match place {
            OutlineSlot::Kept(node) => node,
            OutlineSlot::Rest(number) => self.rests[number as usize],
        }
    }

    /// So many words that are only in rests, and how many others there are. The heaviest are more likely to be searched for.
    pub(crate) fn only_in_rests(&self, most: usize) -> (Vec<u32>, u64) {
        let is_only = |word: &Word| !word.is_kept && word.hidden > 0;
        let words = (0..).zip(&self.words);
        let only = words.filter(|(_, word)| is_only(word));
        let mut only: Vec<u32> = only.map(|(number, _)| number).collect();
        only.sort_by_key(|&number| Reverse(self.words[number as usize].hidden));
        let others = only.len().saturating_sub(most) as u64;
        only.truncate(most);
        (only, others)
    }
}

/// The weight from which on not more than so many are at least as heavy.
fn least(weights: impl Iterator<Item = u64>, most: usize) -> u64 {
    let mut weights: Vec<u64> = weights.collect();
    match most < weights.len() {
        true => {
            let (_, first_too_many, _) = weights.select_nth_unstable_by(most, |a, b| b.cmp(a));
            first_too_many.saturating_add(1)
        }
        false => 0,
    }
}

/// A call on the way from the root.
struct Open {
    word: u32,
    rest: Option<Rest>,
}

/// Calls of one that is left.
#[derive(Clone, Copy)]
struct Rest {
    number: u32,
    weight: u64,
    calls: u64,
}

struct Outlining {
    least: u64,
    path: Vec<Open>,
    /// So many of them, from the root on, are left.
    kept: usize,
    outline: Outline,
}

impl Outlining {
    fn enter(&mut self, at: u32, call: Call) -> OutlineSlot {
        let is_below_kept = self.kept == self.path.len();
        let is_kept = self.path.is_empty() || (is_below_kept && call.weight >= self.least);
        let place = match is_kept {
            true => {
                self.kept += 1;
                self.outline.nodes.push(Left::Call(at));
                OutlineSlot::Kept(self.outline.nodes.len() as u32 - 1)
            }
            false => OutlineSlot::Rest(self.add_to_rest(call)),
        };
        let word = &mut self.outline.words[call.word as usize];
        word.is_kept |= is_kept;
        word.open += 1;
        self.path.push(Open {
            word: call.word,
            rest: None,
        });
        place
    }

    /// Adds a call to the rest of the last of its callers that is left; the number of that.
    fn add_to_rest(&mut self, call: Call) -> u32 {
        let word = &mut self.outline.words[call.word as usize];
        if word.open == 0 {
            word.hidden = word.hidden.saturating_add(call.weight);
        }
        // Those further below are part of its weight.
        let is_first = self.kept == self.path.len();
        let rests = &mut self.outline.rests;
        let rest = self.path[self.kept - 1].rest.get_or_insert_with(|| {
            // Its place is known when its caller ends.
            rests.push(0);
            Rest {
                number: rests.len() as u32 - 1,
                weight: 0,
                calls: 0,
            }
        });
        rest.calls += 1;
        if is_first {
            rest.weight = rest.weight.saturating_add(call.weight);
        }
        rest.number
    }

    /// Ends the calls on the path from a depth on.
    fn leave(&mut self, depth: u32) {
        while self.path.len() > depth as usize {
            let Some(open) = self.path.pop() else { return };
            self.outline.words[open.word as usize].open -= 1;
            self.kept = self.kept.min(self.path.len());
            let Some(rest) = open.rest else { continue };
            self.outline.rests[rest.number as usize] = self.outline.nodes.len() as u32;
            self.outline.nodes.push(Left::Rest {
                depth: self.path.len() as u32 + 1,
                weight: rest.weight,
                calls: rest.calls,
            });
        }
    }
}
