//! Code that no table describes and that keeps frame pointers, as that of Chromium and what is built like it.
//!
//! In: the undescribed code of a file. Out: whether it keeps frame pointers, by a sample of its functions, which is a small part of
//! the file, however large that is.

use super::arch::padding::ALIGNMENT;
use super::arch::signs::{follows_filling, places, sets_up_frame};
use crate::object::Part;
use crate::object::image::read_at;
use std::fs::File;

/// Less undescribed code than this is read itself, in bytes: that says more than a frame pointer.
const MIN_BYTES: u64 = 4 << 20;

/// In so many places a sample of the code is taken.
const WINDOWS: u64 = 256;

/// How much is read in each place, in bytes; of all places a megabyte at most.
const WINDOW_BYTES: u64 = 4096;

/// Fewer functions than this are no evidence.
const MIN_FUNCTIONS: usize = 32;

/// So many of a hundred functions set up a frame pointer where code keeps them. 96 of Chromium's do, 86 of libraries built with
/// it, none of codecs' and of what compilers make by default; leaves need none.
const MIN_PERCENT: usize = 60;

/// Whether undescribed code keeps frame pointers.
pub(super) fn keeps_frame_pointers(file: &File, gaps: &[Part]) -> bool {
    let total: u64 = gaps.iter().map(|gap| gap.bytes).sum();
    if total < MIN_BYTES {
        return false;
    }
    let (mut functions, mut kept) = (0, 0);
    let mut gaps = gaps.iter();
    let mut before = 0;
    let mut gap = gaps.next();
    for window in 0..WINDOWS {
        let wanted = total / WINDOWS * window;
        while let Some(passed) = gap.filter(|gap| wanted - before >= gap.bytes) {
            before += passed.bytes;
            gap = gaps.next();
        }
        let Some(gap) = gap else { break };
        let into = (wanted - before).next_multiple_of(ALIGNMENT);
        let bytes = gap.bytes.saturating_sub(into).min(WINDOW_BYTES);
        let code = read_at(file, gap.offset.saturating_add(into), bytes as usize);
        let address = gap.address.wrapping_add(into);
        for begin in places(address, code.len()).filter(|&at| follows_filling(&code, at)) {
            functions += 1;
            kept += usize::from(sets_up_frame(&code[begin..]));
        }
    }
    functions >= MIN_FUNCTIONS && kept * 100 >= functions * MIN_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::arch::signs::INT3;
    use std::io::Write as _;

    /// A function of this many bytes, filled up to a multiple of 16.
    fn function(first: &[u8], bytes: usize, filling: u8) -> Vec<u8> {
        let mut code = first.to_vec();
        code.resize(bytes - 1, 0x90);
        code.push(0xc3);
        code.resize(bytes.next_multiple_of(16), filling);
        code
    }

    fn verdict(functions: impl Iterator<Item = Vec<u8>>, bytes: usize) -> bool {
        let mut code: Vec<u8> = functions.flatten().take(bytes).collect();
        code.resize(bytes, INT3);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&code).unwrap();
        let gap = |offset: usize, bytes: usize| Part {
            address: 0x1000 + offset as u64,
            offset: offset as u64,
            bytes: bytes as u64,
        };
        keeps_frame_pointers(&file, &[gap(0, 4096), gap(8192, bytes - 8192)])
    }

    const KEEPS: &[u8] = b"\x55\x48\x89\xe5";
    const KEEPS_NONE: &[u8] = b"\x41\x57\x41\x56\x53";

    #[test]
    fn a_sample_tells_whether_code_keeps_frame_pointers() {
        let all = |first: &'static [u8], filling| {
            (0..).map(move |number| function(first, 50 + number % 300, filling))
        };
        assert!(verdict(all(KEEPS, INT3), 6 << 20));
        assert!(!verdict(all(KEEPS_NONE, INT3), 6 << 20));
        assert!(verdict(all(KEEPS, 0x90), 6 << 20));
        assert!(!verdict(all(KEEPS_NONE, 0x90), 6 << 20));
        assert!(!verdict(all(KEEPS, INT3), 1 << 20), "it is read itself");
        let some = |every: usize| {
            (0..).map(move |number: usize| {
                let keeps = !number.is_multiple_of(every);
                function(
                    if keeps { KEEPS } else { KEEPS_NONE },
                    50 + number % 300,
                    INT3,
                )
            })
        };
        assert!(verdict(some(5), 6 << 20), "one in five is a leaf");
        assert!(!verdict(some(2), 6 << 20));
        assert!(!verdict(std::iter::repeat_n(vec![0; 64], 100_000), 6 << 20));
    }
}
