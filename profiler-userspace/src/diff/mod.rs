//! What changed between two sides of recordings, and what of that is noise.
//!
//! In: profiles, before and after. Out: a [`Comparison`] of functions and of the tree of calls, and whether it meets a
//! condition. Never: files, and never a claim that the recordings do not bear.

pub mod stats;
