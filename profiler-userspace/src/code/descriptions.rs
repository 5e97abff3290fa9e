//! The functions that unwind instructions describe.
//!
//! In: `.eh_frame`. Out: where each description's code begins and ends. See the Linux Standard Base 5.0, core,
//! section 10.6. Reads each byte a bounded number of times, whatever the section holds.

use super::MAX_TABLES_BYTES;
use crate::object::Image;
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EndianSlice, LittleEndian,
    UnwindOffset, UnwindSection as _,
};
use object::LittleEndian as Little;
use std::collections::HashMap;
use std::ops::Range;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The most shared entries that are read; see `unwind::eh_frame`.
const MAX_COMMONS: usize = 1 << 17;

/// The code that is described: disjoint ranges, ascending.
#[derive(Debug, Default)]
pub(super) struct Descriptions(Vec<Range<u64>>);

impl Descriptions {
    /// Reads an object's descriptions.
    pub(super) fn read(image: &Image<'_>) -> Self {
        image
            .section(b".eh_frame")
            .and_then(|section| {
                Some((
                    section.sh_addr.get(Little),
                    image.contents(section, MAX_TABLES_BYTES)?,
                ))
            })
            .map_or_else(Self::default, |(address, bytes)| {
                Self::parse(address, &bytes)
            })
    }

    fn parse(address: u64, bytes: &[u8]) -> Self {
        let section = EhFrame::from(EndianSlice::new(bytes, LittleEndian));
        let bases = BaseAddresses::default().set_eh_frame(address);
        let mut commons = Commons {
            known: HashMap::new(),
            budget: bytes.len(),
        };
        let mut found = Vec::new();
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let Some(common) = commons.get(&section, &bases, partial.cie_offset()) else {
                continue;
            };
            let Ok(described) = partial.parse(|_, _, _| Ok(common.clone())) else {
                continue;
            };
            let begin = described.initial_address();
            if let Some(end) = begin
                .checked_add(described.len())
                .filter(|&end| end > begin)
            {
                found.push(begin..end);
            }
        }
        Self::of(found)
    }

    /// Of overlapping descriptions, the one that begins last counts, as in all that bisect the section's index.
    fn of(mut found: Vec<Range<u64>>) -> Self {
        found.sort_by_key(|range| (range.start, range.end));
        found.dedup_by_key(|range| range.start);
        for next in 1..found.len() {
            let begin = found[next].start;
            let before = &mut found[next - 1];
            before.end = before.end.min(begin);
        }
        Self(found)
    }

    /// Where the function begins that covers an address; else the gap in which that lies.
    pub(super) fn around(&self, address: u64) -> Result<u64, Range<u64>> {
        let behind = self.0.partition_point(|range| range.start <= address);
        let before = self.0[..behind].last();
        match before.filter(|range| range.contains(&address)) {
            Some(range) => Ok(range.start),
            None => {
                let begin = before.map_or(0, |range| range.end);
                Err(begin..self.0.get(behind).map_or(u64::MAX, |next| next.start))
            }
        }
    }
}

/// Shared entries, each read once.
struct Commons<'a> {
    known: HashMap<usize, Option<CommonInformationEntry<Slice<'a>>>>,
    /// How many bytes of them may still be read; hostile ones could overlap.
    budget: usize,
}

impl<'a> Commons<'a> {
    fn get(
        &mut self,
        section: &EhFrame<Slice<'a>>,
        bases: &BaseAddresses,
        offset: gimli::EhFrameOffset,
    ) -> Option<CommonInformationEntry<Slice<'a>>> {
        let place = UnwindOffset::into(offset);
        if self.known.len() == MAX_COMMONS && !self.known.contains_key(&place) {
            return None;
        }
        let budget = &mut self.budget;
        let known = self.known.entry(place).or_insert_with(|| {
            let entry = section.cie_from_offset(bases, offset).ok()?;
            *budget = budget.checked_sub(entry.entry_len())?;
            Some(entry)
        });
        known.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_lies_in_a_function_or_in_the_gap_between_two() {
        let found = Descriptions::of(vec![0x30..0x40, 0x10..0x20, 0x38..0x50, 0x10..0x18]);
        assert_eq!(found.around(0x17), Ok(0x10));
        assert_eq!(found.around(0x37), Ok(0x30));
        assert_eq!(found.around(0x38), Ok(0x38));
        assert_eq!(found.around(0x25), Err(0x18..0x30));
        assert_eq!(found.around(0x5), Err(0..0x10));
        assert_eq!(found.around(0x50), Err(0x50..u64::MAX));
        assert_eq!(Descriptions::default().around(7), Err(0..u64::MAX));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300), address: u64,
        ) {
            let found = Descriptions::parse(address, &bytes);
            prop_assert!(found.0.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }
}
