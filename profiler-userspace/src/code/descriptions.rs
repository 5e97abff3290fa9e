//! The functions that unwind instructions describe.
//!
//! In: the index of an image's `.eh_frame`. Out: the function around an address, or the gap between two.

use crate::object::{FrameIndex, Image};
use std::ops::Range;

/// So many descriptions of no code in a row are passed over. Honest ones have some.
const MAX_EMPTY: usize = 1024;

/// The code that is described.
pub(super) struct Descriptions<'f>(Option<FrameIndex<'f>>);

impl<'f> Descriptions<'f> {
    /// An image's descriptions.
    pub(super) fn of(image: &Image<'f>) -> Self {
        Self(FrameIndex::of(image))
    }

    /// Where the function begins that covers an address; else the gap in which that lies.
    pub(super) fn around(&mut self, address: u64) -> Result<u64, Range<u64>> {
        self.code_around(address).map(|code| code.start)
    }

    /// The described code that an address lies in; else the gap in which that lies. Of overlapping descriptions, the one that
    /// begins last counts.
    pub(super) fn code_around(&mut self, address: u64) -> Result<Range<u64>, Range<u64>> {
        let Some(index) = &mut self.0 else {
            return Err(0..u64::MAX);
        };
        let count = index.count();
        let behind = index.first_from(address.saturating_add(1));
        let mut code = |number| {
            let addresses = index.frame(number)?.addresses;
            (!addresses.is_empty()).then_some(addresses)
        };
        let before = (0..behind).rev().take(MAX_EMPTY).find_map(&mut code);
        match before {
            Some(range) if range.contains(&address) => Ok(range),
            before => {
                let next = (behind..count).take(MAX_EMPTY).find_map(code);
                let begin = before.map_or(0, |range| range.end);
                Err(begin..next.map_or(u64::MAX, |next| next.start))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn an_address_lies_in_a_function_or_in_the_gap_between_two() {
        let file = File::open("/proc/self/exe").unwrap();
        let image = Image::read(&file).unwrap();
        let mut index = FrameIndex::of(&image).unwrap();
        let all = (0..index.count()).map(|number| index.frame(number).unwrap().addresses);
        let all: Vec<Range<u64>> = all.filter(|code| !code.is_empty()).collect();
        assert!(all.len() > 1000);
        let mut found = Descriptions::of(&image);
        let mut gaps = 0;
        for pair in all.windows(2).step_by(7) {
            let (code, next) = (pair[0].clone(), pair[1].start);
            assert_eq!(found.around(code.start), Ok(code.start));
            assert_eq!(found.around(code.end.min(next) - 1), Ok(code.start));
            if code.end < next {
                assert_eq!(found.around(next - 1), Err(code.end..next));
                gaps += 1;
            }
        }
        assert!(gaps > 0);
        let last = all.last().unwrap().end;
        assert_eq!(found.around(last), Err(last..u64::MAX));
        assert_eq!(Descriptions(None).around(7), Err(0..u64::MAX));
    }
}
