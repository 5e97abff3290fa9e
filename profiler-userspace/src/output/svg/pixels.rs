//! Lengths in a picture.
//!
//! In: pixels. Out: as few characters as say enough.

/// A length, written to a hundredth without zeros at the end.
#[derive(Clone, Copy)]
pub(super) struct Pixels(pub(super) f64);

impl std::fmt::Display for Pixels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", (self.0 * 100.0).round() / 100.0)
    }
}
