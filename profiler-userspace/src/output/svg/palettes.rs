//! The palettes of inferno.
//!
//! In: nothing. Out: their names. Never: our own palettes, which are `colors`.

use inferno::flamegraph::Palette;

/// The names, as FlameGraph has them.
pub(in crate::output) fn names() -> impl Iterator<Item = &'static str> {
    Palette::VARIANTS.iter().copied()
}
