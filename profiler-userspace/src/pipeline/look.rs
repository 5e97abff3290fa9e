//! How a graph looks that nobody gave a look. Pure.
//!
//! In: what it is of, as a raw recording keeps it. Out: a palette, and what the subtitle says of its colours.

use crate::output::Palette;
use crate::probe::Wakers;
use crate::profile::waits::Finish;

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

/// The look that suits what is shown: `noun` is what one firing is called.
pub(crate) fn usual(noun: &str, finish: Option<Finish>) -> Look {
    let wakers = finish.map_or(Wakers::None, |finish| finish.wakers);
    let (palette, subtitle) = match (noun, wakers) {
        // Those that are shown ran.
        (_, Wakers::Alone) => (Palette::LAND, None),
        (_, Wakers::Above) => (Palette::COLD, Some(OF_WAKERS)),
        ("wait", Wakers::None) => (Palette::COLD, None),
        ("span", Wakers::None) => (Palette::WALL, Some(OF_TIME)),
        (_, Wakers::None) => (Palette::LAND, None),
    };
    Look { palette, subtitle }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waited_is_cold_and_what_ran_is_not() {
        let finish = |wakers| {
            Some(Finish {
                scheduler: false,
                reasons: false,
                kernel: true,
                ran: false,
                wakers,
            })
        };
        for (noun, finish, palette, has_subtitle) in [
            ("sample", None, Palette::LAND, false),
            ("wait", None, Palette::COLD, false),
            ("wait", finish(Wakers::None), Palette::COLD, false),
            ("wait", finish(Wakers::Above), Palette::COLD, true),
            ("wait", finish(Wakers::Alone), Palette::LAND, false),
            ("span", finish(Wakers::None), Palette::WALL, true),
        ] {
            let look = usual(noun, finish);
            assert_eq!(
                (look.palette, look.subtitle.is_some()),
                (palette, has_subtitle),
                "{noun} {finish:?}"
            );
        }
    }
}
