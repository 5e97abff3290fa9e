//! Result of a comparison.
//!
//! Values only: the meaning of each number, and its unit. Read by [`crate::output`] and
//! [`Condition`](super::Condition).

use super::matching::Class;
use super::stats::estimate::Estimate;
use std::num::NonZeroU64;
use std::sync::Arc;

/// How two sides are to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// For each second instead of parts of everything.
    pub absolute: bool,
    /// Takes samples for independent where the recordings do not say how much they vary.
    pub assume_independent: bool,
}

/// Quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Parts of everything, from 0 to 1.
    Share,
    /// Nanoseconds for each second of the recording.
    Time,
    /// Weight for each second of the recording, in the profiles' unit.
    Rate,
}

/// Verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is more than before.
    More,
    /// It is less than before.
    Less,
    /// It was not there before.
    New,
    /// It is not there any more.
    Gone,
    /// It has another name, or is part of what calls it: the cost is the same.
    Shift,
    /// The recordings do not say that anything changed.
    Noise,
    /// There are too few samples to say anything.
    Few,
    /// The recordings do not say how much they vary.
    NoClaim,
}

impl Verdict {
    /// As readers see it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Shift => "shift",
            Self::Noise => "noise",
            Self::Few => "few samples",
            Self::NoClaim => "no claim",
        }
    }

    /// Whether it is beyond noise.
    pub const fn is_change(self) -> bool {
        matches!(
            self,
            Self::More | Self::Less | Self::New | Self::Gone | Self::Shift
        )
    }
}

/// A change of a function or of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Values, in the comparison's quantity, and their error.
    pub estimate: Estimate,
    /// How probable at least such a difference is where nothing changed, by its test; none where it was not tested.
    pub(super) p: Option<f64>,
    /// Weights of both sides, in the profiles' unit.
    pub weights: [u64; 2],
    /// Verdict on the change.
    pub verdict: Verdict,
    /// Parts that the interval of the difference, and the smallest difference that would have been found, leave out; none
    /// where nothing is claimed.
    pub(super) alphas: Option<Arc<[f64; 2]>>,
    /// One firing, in the profiles' unit, that is more than half of the difference.
    pub lone: Option<NonZeroU64>,
    /// Where its cost came from or went, if that is a shift.
    pub partner: Option<Arc<str>>,
}

impl Change {
    /// How probable at least such a difference is where nothing changed.
    pub fn p(&self) -> f64 {
        self.p.unwrap_or_else(|| self.estimate.p())
    }

    /// Between what the difference lies; none where nothing is claimed.
    pub fn interval(&self) -> Option<[f64; 2]> {
        let [alpha, _] = **self.alphas.as_ref()?;
        let half = self.estimate.half_width(alpha);
        let difference = self.estimate.change();
        Some([difference - half, difference + half])
    }

    /// A smaller difference would not have been found; none where nothing is claimed.
    pub fn visible(&self) -> Option<f64> {
        let [_, alpha] = **self.alphas.as_ref()?;
        Some(self.estimate.half_width(alpha))
    }
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// As it reads after, or before if it is not there any more.
    pub name: String,
    /// Whether it is of the program or the kernel.
    pub class: Class,
    /// Change of its own weight, without callees.
    pub itself: Change,
    /// Change of its weight with all that it called.
    pub total: Change,
}

/// A frame below those of its callers.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// As it reads after, or before if it is not there any more.
    pub name: Arc<str>,
    /// Class of the frame.
    pub class: Class,
    /// How many frames are below it.
    pub depth: usize,
    /// Own values of both sides, without callees, in the comparison's quantity.
    pub own: [f64; 2],
    /// The same in the profiles' unit.
    pub own_weights: [u64; 2],
    /// Of it and all that it called.
    pub change: Change,
}

/// One side.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// How many recordings it has.
    pub recordings: usize,
    /// How many windows these have together.
    pub windows: usize,
    /// How long they took together, in seconds; none where that is not known.
    pub seconds: Option<f64>,
    /// How many samples it has.
    pub samples: u64,
    /// Its weight, in the profiles' unit.
    pub weight: u64,
    /// The value of everything, in the comparison's quantity.
    pub total: f64,
    /// The part of its weight on stacks with a function that reads differently on the other side.
    pub loose: f64,
}

/// Sensitivity: the smallest change that would have been found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// The value of a function that is a tenth of everything.
    pub tenth: f64,
    /// A smaller change of that function would not have been found.
    pub least: f64,
}

/// How many things of one kind were tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tests {
    /// How many.
    pub tests: usize,
    /// How many of them are beyond noise.
    pub found: usize,
}
