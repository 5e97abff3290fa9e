//! Code that no table describes and that keeps frame pointers, as that of Chromium and what is built like it.
//!
//! In: the undescribed code of a file. Out: whether it keeps frame pointers, by a sample of its functions; and the beginning of the
//! function around an address. Neither reads more than a small part of the file, however large it is.

use super::context::ENDBR64;
use super::image::{ALIGNMENT, Image, Part, is_padding, read};
use std::fs::File;
use std::ops::Range;

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

/// How far a function's beginning is looked for before an address, in bytes.
const MAX_FUNCTION_BYTES: u64 = 64 << 10;

/// The byte that fills the space between functions where it does not run.
const INT3: u8 = 0xcc;

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
        let code = read(file, gap.offset.saturating_add(into), bytes as usize);
        let address = gap.address.wrapping_add(into);
        for begin in places(address, code.len()).filter(|&at| follows_filling(&code, at)) {
            functions += 1;
            kept += usize::from(sets_up_frame(&code[begin..]));
        }
    }
    functions >= MIN_FUNCTIONS && kept * 100 >= functions * MIN_PERCENT
}

/// The beginning of the function around an address in a gap between descriptions, in code that keeps frame pointers; none if there is
/// none near before it.
pub(super) fn begin(image: &Image<'_>, file: &File, address: u64, gap: &Range<u64>) -> Option<u64> {
    let lowest = gap.start.max(address.saturating_sub(MAX_FUNCTION_BYTES));
    let mut end = address.saturating_add(1).min(gap.end);
    // The bytes before and behind a place tell whether a function begins there.
    const MARGIN: u64 = 32;
    while end > lowest {
        let start = lowest.max(end.saturating_sub(WINDOW_BYTES));
        let from = gap.start.max(start.saturating_sub(MARGIN));
        let to = gap.end.min(end.saturating_add(MARGIN));
        let code = image.bytes(file, from, usize::try_from(to - from).ok()?);
        let found = places(from, code.len()).rev().find(|&at| {
            let is_within = (start..end).contains(&from.wrapping_add(at as u64));
            is_within && (sets_up_frame(&code[at..]) || follows_filling(&code, at))
        });
        if let Some(found) = found {
            return Some(from + found as u64);
        }
        end = start;
    }
    None
}

/// The offsets in so many bytes of code, the first at this address, where a function can begin.
fn places(address: u64, bytes: usize) -> impl DoubleEndedIterator<Item = usize> {
    let first = (address.next_multiple_of(ALIGNMENT) - address) as usize;
    (first..bytes).step_by(ALIGNMENT as usize)
}

/// Whether a function sets up its frame in its first instructions: `push rbp; mov rbp, rsp`, behind `endbr64` where the processor
/// checks the targets of jumps.
fn sets_up_frame(code: &[u8]) -> bool {
    let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
    code.starts_with(b"\x55\x48\x89\xe5") || code.starts_with(b"\x55\x48\x8b\xec")
}

/// Whether at this offset something begins that stands behind the end of a function and what fills up to it.
fn follows_filling(code: &[u8], at: usize) -> bool {
    let (before, behind) = code.split_at(at);
    if behind.first().is_none_or(|&first| first == INT3) {
        return false;
    }
    let filling = before
        .iter()
        .rev()
        .take_while(|&&byte| byte == INT3)
        .count();
    match filling {
        // Instructions hold such bytes, too, but hardly two.
        2.. => true,
        1 => ends_function(&before[..before.len() - 1]),
        _ => follows_nops(before),
    }
}

/// Whether a return, and nothing but instructions that do nothing, stand at the end of these bytes. GCC fills so, also between a
/// return and a label of the same function: there a function is split in two.
fn follows_nops(before: &[u8]) -> bool {
    const RET: u8 = 0xc3;
    (1..ALIGNMENT as usize).any(|filling| {
        before.len() > filling
            && before[before.len() - filling - 1] == RET
            && is_padding(&before[before.len() - filling..], 0)
    })
}

/// Whether these bytes end with a return, a jump, or what never goes on.
fn ends_function(code: &[u8]) -> bool {
    code.ends_with(b"\xc3")
        || code.ends_with(b"\x0f\x0b")
        || code.len() >= 5 && code[code.len() - 5] == 0xe9
        || code.len() >= 2 && code[code.len() - 2] == 0xeb
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Bounded;
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

    #[test]
    fn what_functions_are_filled_up_with_ends_them() {
        assert!(follows_filling(b"\xc3\xcc\x41", 2));
        assert!(follows_filling(b"\x90\xcc\xcc\x41", 3));
        assert!(follows_filling(b"\xe9\0\0\0\0\xcc\x41", 6));
        assert!(follows_filling(b"\xc3\x66\x90\x41", 3));
        assert!(
            !follows_filling(b"\x90\xcc\x41", 2),
            "a byte of an instruction"
        );
        assert!(!follows_filling(b"\xc3\xcc\xcc", 2), "more filling");
        assert!(!follows_filling(b"\x90\x66\x90\x41", 3), "a label");
        assert!(!follows_filling(b"\x41", 0));
    }

    #[test]
    fn functions_of_a_program_that_keeps_frame_pointers_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
        let body = "volatile int v; int main(void) { return 0; }\n";
        let functions = (0..40).map(|number| {
            format!("int f{number}(int a) {{ for (int i = 0; i < a; i++) v += i * {number}; return v; }}\n")
        });
        let text: String = std::iter::once(body.to_owned()).chain(functions).collect();
        std::fs::write(&source, text).unwrap();
        let built = std::process::Command::new("gcc")
            .args([
                "-O1",
                "-fno-omit-frame-pointer",
                "-falign-functions=16",
                "-o",
            ])
            .args([&program, &source])
            .status();
        assert!(built.unwrap().success());
        let file = File::open(&program).unwrap();
        let data = Bounded::with_budget(&file, 1 << 20);
        let image = Image::read(&data).unwrap();
        let elf = crate::object::Elf::read(&file).unwrap();
        let mut seen = 0;
        elf.each_function(&file, |function| {
            let Some(at) = function.address.filter(|_| function.name.starts_with(b"f")) else {
                return;
            };
            if function.size == 0 || !function.name[1..].iter().all(u8::is_ascii_digit) {
                return;
            }
            let code = image.code_at(at.0).unwrap();
            for address in at.0..at.0 + function.size {
                assert_eq!(
                    begin(&image, &file, address, &code),
                    Some(at.0),
                    "{address:#x}"
                );
            }
            seen += 1;
        });
        assert_eq!(seen, 40);
    }
}
