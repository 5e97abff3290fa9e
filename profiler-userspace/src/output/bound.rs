//! Files of not more than so many bytes.
//!
//! In: how to make one of so many parts. Out: the one of the most parts that fits. Never: a part that is left out without a
//! word; that is the maker's.

use super::{Error, Style};

/// How to see frames that are not in a file one by one. The script of graphs says the same.
pub(super) const HOW_TO_KEEP: &str =
    "not in this file; --focus FUNCTION has them, or --minwidth 0 all";

/// As many parts are there however large they are.
const FEWEST: usize = 100;

/// The bound of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// About so many bytes: browsers show them at once, and tickets take them.
    pub(super) bytes: usize,
    /// So many parts are tried at first, which is as many as that often holds.
    pub(super) parts: usize,
}

impl Bound {
    /// The file that `make` makes of at most so many parts; it says how many bytes that takes, and how many parts there are.
    /// Where the style wants all, it is made of all.
    pub(super) fn fit<T>(
        self,
        style: &Style,
        make: impl Fn(usize) -> Result<(T, usize, usize), Error>,
    ) -> Result<T, Error> {
        if style.minwidth.is_zero() {
            return make(usize::MAX).map(|(file, ..)| file);
        }
        let mut most = self.parts;
        loop {
            let (file, bytes, parts) = make(most)?;
            let parts = parts.min(most);
            if bytes <= self.bytes || parts <= FEWEST {
                return Ok(file);
            }
            let excess = bytes as f64 / self.bytes as f64;
            // Somewhat fewer than fit if all take as much.
            most = ((parts as f64 / excess * 0.9) as usize).clamp(FEWEST, parts - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::MinWidth;

    const BOUND: Bound = Bound {
        bytes: 10_000,
        parts: 5_000,
    };

    fn parts(each: usize, all: usize, minwidth: f64) -> usize {
        let style = Style {
            minwidth: MinWidth::Pixels(minwidth),
            ..Style::default()
        };
        let make = |most: usize| {
            let parts = all.min(most);
            Ok((parts, parts * each, all))
        };
        BOUND.fit(&style, make).expect("nothing fails")
    }

    #[test]
    fn as_many_parts_as_fit_are_there() {
        assert_eq!(parts(2, 5_000, 0.5), 5_000);
        let fewer = parts(10, 1_000_000, 0.5);
        assert!((800..=1_000).contains(&fewer), "{fewer}");
        // Fewer are no file at all.
        assert_eq!(parts(1_000, 1_000_000, 0.5), FEWEST);
        assert_eq!(parts(1_000, 50, 0.5), 50);
        assert_eq!(parts(10, 1_000_000, 0.0), 1_000_000);
    }
}
