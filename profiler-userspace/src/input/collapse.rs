//! The texts of other tools that inferno collapses.
//!
//! In: text of one of these tools. Out: a profile. The door to inferno's collapsers: whatever they do to broken text,
//! panics among it, is an error here that names the line at which they were.

use super::text::{TOO_MANY, one_type};
use super::{Error, Head, MOST_BYTES, Reading, TOO_LARGE, Wanted};
use crate::profile::fold::{self, visible};
use crate::profile::{FrameProfile, Profile, Unit, Window};
use inferno::collapse::{
    Collapse, dtrace as of_dtrace, ghcprof as of_ghcprof, sample as of_sample,
};
use inferno::collapse::{vsprof as of_vsprof, vtune as of_vtune, xctrace as of_xctrace};
use std::cell::Cell;
use std::io::{self, BufRead, Read, Take};
use std::panic::{self, AssertUnwindSafe};

/// Whether inferno recognizes a beginning. It takes an empty text for a mistake of ours.
fn applies(head: &Head<'_>, mut folder: impl Collapse) -> bool {
    !head.is_binary && !head.text.is_empty() && folder.is_applicable(&head.text) == Some(true)
}

/// Whether a file is DTrace's.
pub(super) fn is_dtrace(head: &Head<'_>) -> bool {
    applies(head, of_dtrace::Folder::default())
}

/// Whether a file is of macOS's `sample`. Its end, which inferno wants to see, may be far away.
pub(super) fn is_sample(head: &Head<'_>) -> bool {
    !head.is_binary
        && head
            .text
            .lines()
            .any(|line| line.starts_with("Call graph:"))
}

/// Whether a file is VTune's.
pub(super) fn is_vtune(head: &Head<'_>) -> bool {
    applies(head, of_vtune::Folder::default())
}

/// Whether a file is Visual Studio's.
pub(super) fn is_vsprof(head: &Head<'_>) -> bool {
    applies(head, of_vsprof::Folder::default())
}

/// Whether a file is of a Haskell program.
pub(super) fn is_ghcprof(head: &Head<'_>) -> bool {
    applies(head, of_ghcprof::Folder::default())
}

/// Whether a file is of Xcode's Instruments.
pub(super) fn is_xctrace(head: &Head<'_>) -> bool {
    applies(head, of_xctrace::Folder::default())
}

pub(super) fn dtrace(from: &mut dyn BufRead, wanted: &Wanted<'_>) -> Result<Reading, Error> {
    plain(
        from,
        wanted,
        of_dtrace::Folder::default(),
        wanted.unit.clone(),
    )
}

pub(super) fn sample(from: &mut dyn BufRead, wanted: &Wanted<'_>) -> Result<Reading, Error> {
    plain(
        from,
        wanted,
        of_sample::Folder::default(),
        wanted.unit.clone(),
    )
}

pub(super) fn vtune(from: &mut dyn BufRead, wanted: &Wanted<'_>) -> Result<Reading, Error> {
    let unit = Unit::Events("ms".to_owned());
    plain(from, wanted, of_vtune::Folder::default(), unit)
}

pub(super) fn vsprof(from: &mut dyn BufRead, wanted: &Wanted<'_>) -> Result<Reading, Error> {
    let unit = Unit::Events("calls".to_owned());
    plain(from, wanted, of_vsprof::Folder::default(), unit)
}

pub(super) fn ghcprof(from: &mut dyn BufRead, wanted: &Wanted<'_>) -> Result<Reading, Error> {
    let unit = Unit::Events("‰ of time".to_owned());
    plain(from, wanted, of_ghcprof::Folder::default(), unit)
}

pub(super) fn xctrace(from: &mut dyn BufRead, wanted: &Wanted<'_>) -> Result<Reading, Error> {
    plain(
        from,
        wanted,
        of_xctrace::Folder::default(),
        wanted.unit.clone(),
    )
}

/// A profile out of what a collapser makes of the text.
fn plain(
    from: &mut dyn BufRead,
    wanted: &Wanted<'_>,
    folder: impl Collapse,
    unit: Unit,
) -> Result<Reading, Error> {
    one_type(wanted)?;
    let mut profile = FrameProfile::new(Profile::new(unit.clone(), Window::default()));
    let mut total = 0_u64;
    let of_unit = Wanted {
        unit,
        ..Wanted::ALL
    };
    for (stack, shown) in collapsed(from, folder)?.stacks() {
        let weight = of_unit.unit.read(shown);
        let sum = weight.and_then(|weight| total.checked_add(weight));
        let (Some(weight), Some(sum)) = (weight, sum) else {
            return Err(Error::Whole("its weights are 2^64 or more".to_owned()));
        };
        total = sum;
        profile.push(&fold::stack(stack), weight, of_unit.count(weight));
        if profile.bytes() > fold::MOST_MEMORY {
            return Err(Error::Whole(TOO_MANY.to_owned()));
        }
    }
    Ok(profile.into_profile().into())
}

/// Folded lines as inferno writes them.
struct Collapsed(String);

impl Collapsed {
    /// Each stack and its weight. A name may hold spaces and numbers; the last word alone is the weight.
    fn stacks(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.lines().filter_map(|line| {
            let (stack, weight) = line.rsplit_once(' ')?;
            Some((stack, weight.parse().ok()?))
        })
    }
}

fn collapsed(from: &mut dyn BufRead, mut folder: impl Collapse) -> Result<Collapsed, Error> {
    let line = Cell::new(0);
    let lines = Lines {
        from: from.take(MOST_BYTES + 1),
        line: &line,
        is_within: false,
    };
    let mut text = Vec::new();
    // The collapser is not used again, whatever state it is in.
    let done = quietly(AssertUnwindSafe(|| folder.collapse(lines, &mut text)));
    match done {
        Ok(Ok(())) => Ok(Collapsed(String::from_utf8_lossy(&text).into_owned())),
        Ok(Err(error)) => Err(Error::at(line.get().max(1), visible(&error.to_string()))),
        Err(()) => Err(Error::at(
            line.get().max(1),
            "this is not what the tool writes; is the file complete?",
        )),
    }
}

thread_local! {
    /// Whether panics of this thread are errors in what it reads.
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// Does what may panic, without a word on stderr if it does.
fn quietly<T>(read: impl FnOnce() -> T + panic::UnwindSafe) -> Result<T, ()> {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_READING.get() {
                usual(info);
            }
        }));
    });
    IS_READING.set(true);
    let done = panic::catch_unwind(read);
    IS_READING.set(false);
    done.map_err(|_| ())
}

/// Text that knows how far it was read.
struct Lines<'a, R> {
    from: Take<R>,
    /// How many lines were begun.
    line: &'a Cell<usize>,
    /// Whether the last of these has not ended.
    is_within: bool,
}

impl<R: BufRead> Read for Lines<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(to)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Lines<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.from.limit() == 0 {
            return Err(io::Error::other(TOO_LARGE));
        }
        self.from.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        let read = self.from.fill_buf().unwrap_or_default();
        let read = &read[..bytes.min(read.len())];
        let ends = read.iter().filter(|byte| **byte == b'\n').count();
        let begun = match read.last() {
            None => return,
            Some(last) => ends + usize::from(*last != b'\n'),
        };
        let known = usize::from(self.is_within);
        self.is_within = read.last() != Some(&b'\n');
        self.line.set(self.line.get() + begun - known.min(begun));
        self.from.consume(bytes);
    }
}
