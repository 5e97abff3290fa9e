//! Change and noise: statistics of two series of windows.
//!
//! In: numbers. Out: numbers. Never: names, files, or chance that is not the same on each run.
//!
//! Samples of one run are not independent: a thread stays in a function for milliseconds and in a request for tens of
//! them. So what is drawn at random here is a window with all its samples, or with several recordings a side the
//! recording, and never less variance is assumed than independent samples would have. [`series`] divides time,
//! [`estimate`] tests one thing, [`permutation`] tests waits, [`family`] corrects for the many things that are tested.

pub mod estimate;
pub mod family;
pub mod permutation;
pub mod series;
#[cfg(test)]
#[expect(
    clippy::print_stdout,
    reason = "how often each kind of program is called different"
)]
mod simulation;
mod student;

/// Recordings with fewer windows say nothing of how much they vary.
pub const MIN_WINDOWS: usize = 10;

/// Below so many samples on both sides together nothing is tested.
pub const MIN_SAMPLES: u64 = 10;

/// The share of false discoveries that is accepted, and one less the level of intervals.
pub const ALPHA: f64 = 0.05;
