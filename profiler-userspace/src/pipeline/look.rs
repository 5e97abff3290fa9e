//! How a graph looks that nobody gave a look. Pure.
//!
//! In: what it is of, as a raw recording keeps it. Out: a palette, and what the subtitle says of its colours.

use crate::output::Palette;
use crate::probe::Wakers;
use crate::profile::Activity;
use crate::profile::OffCpuView;

/// The subtitle of a graph of all of the threads' time.
const OF_TIME: &str =
    "warm: on a CPU; cold: blocked; green: waiting for a CPU; in between: some of each";

/// The subtitle of a graph of waits and those that ended them.
const OF_WAKERS: &str =
    "cold: who waited; above --, warm and upside down: who ended that; in between: some of each";

/// A palette, and what there is to say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) palette: Palette,
    pub(crate) subtitle: Option<&'static str>,
}

/// The look that suits what is shown.
pub(crate) fn usual(activity: Activity, view: Option<OffCpuView>) -> Look {
    let wakers = view.map_or(Wakers::None, |view| view.wakers);
    let (palette, subtitle) = match (activity, wakers) {
        // Those that are shown ran.
        (_, Wakers::Alone) => (Palette::LAND, None),
        (_, Wakers::Above) => (Palette::COLD, Some(OF_WAKERS)),
        (Activity::Waiting, Wakers::None) => (Palette::COLD, None),
        (Activity::Both, Wakers::None) => (Palette::WALL, Some(OF_TIME)),
        (Activity::Running, Wakers::None) => (Palette::LAND, None),
    };
    Look { palette, subtitle }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_frames_are_cold_and_running_ones_warm() {
        let view = |wakers| {
            Some(OffCpuView {
                scheduler: false,
                reasons: false,
                kernel: true,
                ran: false,
                wakers,
            })
        };
        for (activity, view, palette, has_subtitle) in [
            (Activity::Running, None, Palette::LAND, false),
            (Activity::Waiting, None, Palette::COLD, false),
            (Activity::Waiting, view(Wakers::None), Palette::COLD, false),
            (Activity::Waiting, view(Wakers::Above), Palette::COLD, true),
            (Activity::Waiting, view(Wakers::Alone), Palette::LAND, false),
            (Activity::Both, view(Wakers::None), Palette::WALL, true),
        ] {
            let look = usual(activity, view);
            assert_eq!(
                (look.palette, look.subtitle.is_some()),
                (palette, has_subtitle),
                "{activity:?} {view:?}"
            );
        }
    }
}
