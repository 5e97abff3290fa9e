//! Large `.eh_frame` sections, read where walks come to.
//!
//! In: the section's [`FrameIndex`]. Out: which code is described, and later the descriptions of some of it.

use super::eh_frame;
use super::found::{UnwindFindings, part_at};
use crate::object::FrameIndex;
use std::ops::Range;

/// Where two descriptions begin this far apart, the first says where its code ends. Nearer ones have nothing between them that would
/// be worth the time.
const FAR: u64 = 64 << 10;

/// The code that is described, in runs: disjoint, ascending, each in one part of `code`. None if the index is not in order.
pub(super) fn described(
    index: &mut FrameIndex<'_>,
    code: &[Range<u64>],
) -> Option<Vec<Range<u64>>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    let count = index.count();
    let mut next = (count > 0).then(|| index.begin(0))??;
    for at in 0..count {
        let begin = next;
        let has_next = at + 1 < count;
        next = if has_next {
            index.begin(at + 1)?
        } else {
            u64::MAX
        };
        if next < begin {
            return None;
        }
        let Some(part) = part_at(code, begin) else {
            continue;
        };
        let is_near = next - begin < FAR && next <= part.end;
        let end = if is_near {
            Some(next)
        } else {
            let frame = index.frame(at);
            frame.and_then(|frame| begin.checked_add(frame.addresses.end - frame.addresses.start))
        };
        let Some(end) = end.map(|end| end.min(part.end)).filter(|end| *end > begin) else {
            continue;
        };
        match runs.last_mut() {
            Some(last) if last.end >= begin && part.contains(&last.start) => {
                last.end = last.end.max(end);
            }
            _ => runs.push(begin..end),
        }
    }
    Some(runs)
}

/// The descriptions of some code.
pub(super) fn read(
    index: &mut FrameIndex<'_>,
    wanted: &[Range<u64>],
    code: &[Range<u64>],
) -> UnwindFindings {
    let mut found = UnwindFindings::default();
    let mut offsets = Vec::new();
    for range in wanted {
        // The one before may reach into it.
        let first = index.first_from(range.start).saturating_sub(1);
        for at in first..index.first_from(range.end) {
            match index.offset(at) {
                Some(offset) => offsets.push(offset),
                None => found.statistics.broken += 1,
            }
        }
    }
    // As they are in the file: linkers sort code by how hot it is.
    offsets.sort_unstable();
    let (mut bytes, mut copies) = (Vec::new(), Vec::new());
    // Honest descriptions are in the section once each; hostile entries could lead to a long one again and again.
    let mut left = index.section_bytes();
    for offset in offsets {
        match index.copy(offset, left, &mut bytes) {
            Some(part) => {
                left -= part.len();
                copies.push((offset, part));
            }
            None => found.statistics.broken += 1,
        }
    }
    let (section, bases) = index.section();
    let mut others = eh_frame::read_copies(&section, bases, (&bytes, copies), code, &mut found);
    others.retain(|&offset| {
        let is_read = index.read(offset).is_some();
        found.statistics.broken += u32::from(!is_read);
        is_read
    });
    let (section, bases) = index.section();
    eh_frame::read_some(&section, bases, &others, code, &mut found);
    found.sort();
    found
}

#[cfg(test)]
mod tests;
