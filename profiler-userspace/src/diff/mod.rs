//! Changes between two sides of recordings, and which of them are noise.
//!
//! In: profiles, before and after. Out: a [`Comparison`] of functions and of the tree of calls, and whether it meets a
//! [`Condition`]. Never: files, and never a claim that the recordings do not bear.
//!
//! [`matching`] says which frame is which in another build, [`entries`] makes one tree of both sides, of whose
//! parts [`rows`] tells the weights; a [`family`] of them is tested with [`stats`], [`shift`] finds what only moved.

mod compare;
mod comparison;
mod condition;
mod entries;
mod family;
mod matching;
mod model;
mod nodes;
mod rows;
mod shift;
pub mod stats;
#[cfg(test)]
mod tests;
mod whole;

pub use compare::{CompareError, compare};
pub use comparison::Comparison;
pub use condition::{Answer, Condition, Outcome, ParseError};
pub use matching::Class;
pub use model::{Change, DiffOptions, Function, Node, Quantity, Side, Sight, Tests, Verdict};
pub use nodes::Nodes;
pub use whole::Whole;
