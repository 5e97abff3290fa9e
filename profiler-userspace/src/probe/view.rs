//! How graphs look that nobody gave a look.
//!
//! In: what the stacks are of; a raw recording and a profile keep that. Out: a palette, and what the subtitle says of its
//! colours. Each probe's row names its view.

use super::Wakers;
use crate::output::Palette;
use crate::profile::{Activity, Profile};

/// Kind of the stacks in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Activity of the threads.
    pub activity: Activity,
    /// How it is shown who ended their waits.
    pub wakers: Wakers,
}

/// The subtitle of a graph of all of the threads' time.
const OF_TIME: &str =
    "warm: on a CPU; cold: blocked; green: waiting for a CPU; in between: some of each";

/// The subtitle of a graph of waits and those that ended them.
const OF_WAKERS: &str =
    "cold: who waited; above --, warm and upside down: who ended that; in between: some of each";

impl View {
    /// Threads that ran.
    pub const RUNNING: Self = Self::of(Activity::Running);
    /// Threads that waited.
    pub const WAITING: Self = Self::of(Activity::Waiting);
    /// All of the threads' time.
    pub const ALL_TIME: Self = Self::of(Activity::Both);

    const fn of(activity: Activity) -> Self {
        Self {
            activity,
            wakers: Wakers::None,
        }
    }

    /// The palette that suits it.
    pub const fn palette(self) -> Palette {
        match (self.activity, self.wakers) {
            // The stacks are of wakers alone, which ran.
            (_, Wakers::Alone) => Palette::LAND,
            (_, Wakers::Above) => Palette::COLD,
            (Activity::Waiting, Wakers::None) => Palette::COLD,
            (Activity::Both, Wakers::None) => Palette::WALL,
            (Activity::Running, Wakers::None) => Palette::LAND,
        }
    }

    /// Meaning of the colours, where it is not obvious.
    pub const fn subtitle(self) -> Option<&'static str> {
        match (self.activity, self.wakers) {
            (_, Wakers::Above) => Some(OF_WAKERS),
            (Activity::Both, Wakers::None) => Some(OF_TIME),
            _ => None,
        }
    }
}

impl From<&Profile> for View {
    fn from(profile: &Profile) -> Self {
        Self {
            activity: profile.origin.activity,
            wakers: profile.off_cpu.map_or(Wakers::None, |view| view.wakers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_frames_are_cold_and_running_ones_warm() {
        let waiting = |wakers| View {
            wakers,
            ..View::WAITING
        };
        for (view, palette, has_subtitle) in [
            (View::RUNNING, Palette::LAND, false),
            (View::WAITING, Palette::COLD, false),
            (waiting(Wakers::Above), Palette::COLD, true),
            (waiting(Wakers::Alone), Palette::LAND, false),
            (View::ALL_TIME, Palette::WALL, true),
        ] {
            assert_eq!(
                (view.palette(), view.subtitle().is_some()),
                (palette, has_subtitle),
                "{view:?}"
            );
        }
    }
}
