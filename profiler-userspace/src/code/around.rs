//! The function around an address that nothing describes, by the bytes nearby: its beginning alone, never the file's list.
//!
//! In: an address, and the code around it that is not described. Out: where its function may begin, the nearest place first, and the
//! bytes from there to where the next may. No more than 64 KiB to either side are read, however large the file is.

use super::arch::jumps::{self, Way};
use super::arch::padding::is_padding;
use super::arch::signs::{Sign, places};
use super::context;
use super::padding;
use super::undescribed::Undescribed;
use crate::object::Image;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;

/// How far a function's beginning is looked for before an address, in bytes.
const MAX_FUNCTION_BYTES: u64 = 64 << 10;

/// How much is searched at first, in bytes: most functions are shorter. Then it is twice as much each time, up to the limit.
const WINDOW_BYTES: u64 = 512;

/// The most that is searched at a time, in bytes.
const MAX_WINDOW_BYTES: u64 = 4096;

/// So many bytes before and behind a place tell whether a function begins there.
const MARGIN: u64 = 96;

/// The most padding that compilers and linkers put between functions, in bytes.
const MAX_PADDING: usize = 64;

/// At so many places before an address a function is supposed to begin, until one proves right.
const MAX_TRIES: usize = 6;

/// So many labels of a function are passed by.
const MAX_LABELS: usize = 16;

/// In so many parts of code before a place that may be a label, jumps to it are looked for; each begins where a function may.
const MAX_PARTS: usize = 4;

/// So many functions that a function calls are read with it.
const MAX_CALLEES: usize = 8;

/// So many bytes before an address are read at once: most functions begin there.
const BEFORE: u64 = 2560;

/// So many bytes behind an address are read at once: most functions end there.
const BEHIND: u64 = 1536;

/// Code of a file, of which a part was read.
struct Nearby<'i, 'f> {
    image: &'i Image<'f>,
    first: u64,
    read: Vec<u8>,
}

impl<'i, 'f> Nearby<'i, 'f> {
    /// The code around an address in a gap.
    fn of(image: &'i Image<'f>, address: u64, gap: &Range<u64>) -> Self {
        let first = gap.start.max(address.saturating_sub(BEFORE));
        let end = gap.end.min(address.saturating_add(BEHIND));
        let bytes = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
        let read = image.bytes(first, bytes);
        Self { image, first, read }
    }

    /// The bytes of a range, as far as the file has them.
    fn bytes(&self, range: &Range<u64>) -> Cow<'_, [u8]> {
        let place = |address: u64| usize::try_from(address.checked_sub(self.first)?).ok();
        let read = place(range.start)
            .zip(place(range.end))
            .and_then(|(start, end)| self.read.get(start..end));
        match read {
            Some(read) => Cow::Borrowed(read),
            None => {
                let bytes = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
                Cow::Owned(self.image.bytes(range.start, bytes))
            }
        }
    }
}

/// Where the first functions of coroutines return to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndOfStacks {
    /// The code that an address is in, as Boost says.
    In,
    /// The function that begins behind an address, as those of libco do.
    Before,
}

/// The functions around addresses of a file.
pub(crate) struct Functions<'f> {
    image: Image<'f>,
}

impl<'f> Functions<'f> {
    /// Those of a file; none if it is no file with such code.
    pub(crate) fn of(file: &'f File) -> Option<Self> {
        let image = Image::read(file).ok()?;
        Some(Self { image })
    }

    /// How stacks end at an address because the first functions of coroutines return one byte behind it; none if they do not. No
    /// call ends in the padding before a function.
    pub(crate) fn end_of_stacks(&self, address: u64, gap: &Range<u64>) -> Option<EndOfStacks> {
        let is_end = gap.end.checked_sub(1) == Some(address);
        let size = usize::try_from(gap.end.saturating_sub(gap.start));
        let size = size.ok().filter(|size| is_end && *size <= MAX_PADDING);
        let padding = size.map(|size| self.image.bytes(gap.start, size));
        let is_behind_padding =
            padding.is_some_and(|padding| !padding.is_empty() && is_padding(&padding, gap.start));
        if is_behind_padding {
            return Some(EndOfStacks::Before);
        }
        context::ends_stacks(&self.image, address).then_some(EndOfStacks::In)
    }

    /// The functions that an address may lie in, the likeliest first. `gap`: the code around it that is not described, or less.
    pub(crate) fn around(
        &self,
        address: u64,
        gap: &Range<u64>,
    ) -> impl Iterator<Item = Undescribed> {
        let section = self.image.code_at(address).unwrap_or(address..address);
        let gap = gap.start.max(section.start)..gap.end.min(section.end);
        let code = Nearby::of(&self.image, address, &gap);
        let end = end(&code, address, &gap);
        // Another function ends where the gap begins.
        let first = padding::skip(&self.image, gap.start);
        let is_near = first <= address && address - first < MAX_FUNCTION_BYTES;
        let mut next = Some(address);
        let mut tries = 0..MAX_TRIES;
        let mut first = is_near.then_some((first, Sign::Jump));
        let mut doubtful = VecDeque::new();
        std::iter::from_fn(move || {
            let found = { tries.next().and(next) }
                .and_then(|next| beginning(&code, next, &gap, Sign::Jump, end, &mut doubtful));
            next = found.and_then(|(begin, _)| begin.checked_sub(1));
            let found = found.or_else(|| first.take());
            let (begin, sign) = found.or_else(|| doubtful.pop_front())?;
            let mut function = Undescribed::default();
            match sign {
                Sign::Certain => function.certain.push(begin),
                Sign::Return | Sign::Jump => function.likely.push(begin),
            }
            let bytes = code.bytes(&(begin..end)).into_owned();
            function.parts.push((begin, bytes));
            Some(function)
        })
    }

    /// A function together with those that it calls in the code around it: helpers in assembly keep to no convention, and what they
    /// leave in registers only they say. None if it calls none.
    pub(crate) fn with_callees(&self, function: &Undescribed) -> Option<Undescribed> {
        let (begin, bytes) = function.parts.first()?;
        let section = self.image.code_at(*begin)?;
        let mut together = Undescribed {
            parts: function.parts.clone(),
            certain: function.certain.clone(),
            likely: function.likely.clone(),
            started: None,
        };
        let mut callees = jumps::callees(bytes, *begin);
        callees.sort_unstable();
        callees.dedup();
        callees.retain(|callee| section.contains(callee));
        for callee in callees.into_iter().take(MAX_CALLEES) {
            let ends = |(part, bytes): &(u64, Vec<u8>)| part.saturating_add(bytes.len() as u64);
            let next = together.parts.partition_point(|part| part.0 <= callee);
            if next > 0 && callee < ends(&together.parts[next - 1]) {
                continue;
            }
            let code = Nearby::of(&self.image, callee, &section);
            let end = end(&code, callee, &section);
            let end = together.parts.get(next).map_or(end, |part| end.min(part.0));
            let bytes = code.bytes(&(callee..end)).into_owned();
            together.parts.insert(next, (callee, bytes));
            together.certain.push(callee);
        }
        (together.parts.len() > 1).then_some(together)
    }
}

/// The beginning of the function around an address in a gap between descriptions; none if there is none near before it.
pub(super) fn begin(image: &Image<'_>, address: u64, gap: &Range<u64>) -> Option<u64> {
    let code = Nearby::of(image, address, gap);
    let end = end(&code, address, gap);
    let passed = &mut VecDeque::new();
    beginning(&code, address, gap, Sign::Return, end, passed).map(|(begin, _)| begin)
}

/// As [`nearest`], but no label of a function that goes on to this end. `doubtful` takes those that are labels unless two functions
/// share an end.
fn beginning(
    code: &Nearby<'_, '_>,
    address: u64,
    gap: &Range<u64>,
    least: Sign,
    end: u64,
    doubtful: &mut VecDeque<(u64, Sign)>,
) -> Option<(u64, Sign)> {
    let mut found = nearest(code, address, gap, least)?;
    for _ in 0..MAX_LABELS {
        if found.1 == Sign::Certain {
            break;
        }
        match way_to_label(code, found.0, gap, end) {
            None => break,
            Some(Way::Jump) => doubtful.push_back(found),
            Some(Way::Branch) => {}
        }
        found = nearest(code, found.0 - 1, gap, least)?;
    }
    Some(found)
}

/// The surest way in which code before a place, up to where the function before it begins for certain, leads to it or across it.
fn way_to_label(code: &Nearby<'_, '_>, place: u64, gap: &Range<u64>, end: u64) -> Option<Way> {
    let mut behind = place;
    let mut surest = None;
    for _ in 0..MAX_PARTS {
        let before = behind.checked_sub(1)?;
        let Some((begin, sign)) = nearest(code, before, gap, Sign::Jump) else {
            break;
        };
        let way = jumps::way_into(&code.bytes(&(begin..behind)), begin, &(place..end));
        surest = surest.max(way);
        if sign == Sign::Certain || surest == Some(Way::Branch) {
            break;
        }
        behind = begin;
    }
    surest
}

/// The nearest place before an address where a function seems to begin, by no less than this sign.
fn nearest(
    code: &Nearby<'_, '_>,
    address: u64,
    gap: &Range<u64>,
    least: Sign,
) -> Option<(u64, Sign)> {
    let lowest = gap.start.max(address.saturating_sub(MAX_FUNCTION_BYTES));
    let mut end = address.saturating_add(1).min(gap.end);
    let mut window = WINDOW_BYTES;
    while end > lowest {
        let start = lowest.max(end.saturating_sub(window));
        window = MAX_WINDOW_BYTES.min(window * 2);
        let from = gap.start.max(start.saturating_sub(MARGIN));
        let to = gap.end.min(end.saturating_add(MARGIN));
        let bytes = code.bytes(&(from..to));
        let mut places = places(from, bytes.len()).rev();
        let found = places.find_map(|at| {
            let is_within = (start..end).contains(&from.wrapping_add(at as u64));
            let sign = Sign::at(&bytes, at).filter(|&sign| is_within && sign <= least)?;
            Some((from + at as u64, sign))
        });
        if found.is_some() {
            return found;
        }
        end = start;
    }
    None
}

/// Where the function around an address ends at the latest: where another begins, or so far behind it that none does.
fn end(code: &Nearby<'_, '_>, address: u64, gap: &Range<u64>) -> u64 {
    let highest = gap.end.min(address.saturating_add(MAX_FUNCTION_BYTES));
    let mut start = address.saturating_add(1);
    let mut window = WINDOW_BYTES;
    while start < highest {
        let end = highest.min(start.saturating_add(window));
        window = MAX_WINDOW_BYTES.min(window * 2);
        let from = gap.start.max(start.saturating_sub(MARGIN));
        let to = gap.end.min(end.saturating_add(MARGIN));
        let bytes = code.bytes(&(from..to));
        let found = places(from, bytes.len()).find(|&at| {
            let is_within = (start..end).contains(&from.wrapping_add(at as u64));
            is_within && Sign::at(&bytes, at).is_some_and(|sign| sign <= Sign::Return)
        });
        if let Some(found) = found {
            return from + found as u64;
        }
        start = end;
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for the beginning at each address of functions of this body, compiled with these options.
    fn check(body: &str, options: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
        let functions = (0..40).map(|number| {
            format!(
                "int f{number}(int a) {{ {} }}\n",
                body.replace("NUMBER", &number.to_string())
            )
        });
        let main = "volatile int v; int main(void) { return 0; }\n";
        let text: String = std::iter::once(main.to_owned()).chain(functions).collect();
        std::fs::write(&source, text).unwrap();
        let built = std::process::Command::new("gcc")
            .args(["-O1", "-falign-functions=16"])
            .args(options)
            .arg("-o")
            .args([&program, &source])
            .status();
        assert!(built.unwrap().success());
        let file = File::open(&program).unwrap();
        let image = Image::read(&file).unwrap();
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
                assert_eq!(begin(&image, address, &code), Some(at.0), "{address:#x}");
            }
            seen += 1;
        });
        assert_eq!(seen, 40);
    }

    #[test]
    fn functions_of_a_program_that_keeps_frame_pointers_are_found() {
        check(
            "for (int i = 0; i < a; i++) v += i * NUMBER; return v;",
            &["-fno-omit-frame-pointer"],
        );
    }

    #[test]
    fn labels_behind_a_return_are_no_beginnings() {
        check(
            "if (a > NUMBER) { v += a; return v; } if (v == a) { v = NUMBER; return 1; } v -= a; return a;",
            &[
                "-falign-labels=16",
                "-falign-jumps=16",
                "-falign-functions=64",
            ],
        );
    }
}
