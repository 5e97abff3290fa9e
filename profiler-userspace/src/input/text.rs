//! Parts that readers of text share.
//!
//! In: parts of lines. Out: excerpts that errors can quote, stacks of frames, sums that do not overflow.

use super::{Error, ReadOptions, Reading};
use crate::profile::fold::{self, MAX_MEMORY, visible};
use crate::profile::{AsFrame, FrameProfile, Labels, Profile, SourceFrame, Unit, Window};
use std::borrow::Cow;

/// The error for more stacks than fit in [`MAX_MEMORY`].
pub(super) const TOO_MANY: &str = "the stacks up to here take 2 GiB of memory; divide the file";

/// The longest Rust name that is read, in bytes. Generic arguments take a few thousand.
const MAX_MANGLED: usize = 16 << 10;

/// So much of hostile text as an error can quote.
pub(super) fn excerpt(text: &str) -> String {
    format!("`{}`", fold::excerpt(text.trim()))
}

/// Lines that tell nothing of a profile: how many, and which is the first.
#[derive(Default)]
pub(super) struct Lines {
    count: u64,
    first: Option<(usize, String)>,
}

impl Lines {
    /// Counts one.
    pub(super) fn add(&mut self, line: usize, text: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| (line, excerpt(text)));
    }

    /// The first one's number, and how it begins.
    pub(super) fn first(&self) -> Option<(usize, &str)> {
        self.first.as_ref().map(|(line, text)| (*line, &**text))
    }

    /// A sentence about them, if there are any.
    pub(super) fn told(&self, what: &str) -> Option<String> {
        let (line, text) = self.first()?;
        Some(format!(
            "{} {what}; the first is line {line}: {text}",
            self.count
        ))
    }
}

/// Refuses a choice among types where there is but one.
pub(super) fn one_type(options: &ReadOptions<'_>) -> Result<(), Error> {
    match options.sample_type {
        None => Ok(()),
        Some(_) => Err(Error::whole(
            "it counts one thing alone; leave --sample-type out",
        )),
    }
}

/// Refuses a type that is not there.
pub(super) fn no_such_type<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known: Vec<_> = known.map(visible).collect();
    Error::Whole(format!(
        "it does not count {}; --sample-type may be one of: {}",
        visible(name),
        known.join(", ")
    ))
}

/// Adds stacks to a profile as long as their weights can be summed.
pub(super) struct Summed {
    pub(super) frames: FrameProfile,
    total: u64,
}

impl Summed {
    /// Adds to an empty profile of such weights.
    pub(super) fn new(unit: Unit) -> Self {
        let profile = Profile::new(unit, Window::default());
        Self {
            frames: FrameProfile::new(profile),
            total: 0,
        }
    }

    /// The profile that was made.
    pub(super) fn into_reading(self) -> Reading {
        self.frames.into_profile().into()
    }

    /// Adds a stack that no line tells of, unless it weighs nothing.
    pub(super) fn push_whole(
        &mut self,
        stack: &[SourceFrame<'_>],
        (weight, count): (u64, u64),
    ) -> Result<(), Error> {
        if weight > 0 {
            self.add(weight).map_err(Error::whole)?;
            self.frames.push_of(Labels::default(), stack, weight, count);
        }
        Ok(())
    }

    /// Adds a stack that a line tells of, with its labels in front.
    pub(super) fn push(
        &mut self,
        line: usize,
        stack: &[impl AsFrame],
        (weight, count): (u64, u64),
    ) -> Result<(), Error> {
        self.add(weight)
            .map_err(|problem| Error::at(line, problem))?;
        self.frames.push(stack, weight, count);
        Ok(())
    }

    /// Adds a stack of an owner that is told beside it, and returns the place of its sample.
    pub(super) fn push_of(
        &mut self,
        line: usize,
        labels: Labels,
        stack: &[SourceFrame<'_>],
        (weight, count): (u64, u64),
    ) -> Result<usize, Error> {
        self.add(weight)
            .map_err(|problem| Error::at(line, problem))?;
        Ok(self.frames.push_of(labels, stack, weight, count))
    }

    fn add(&mut self, weight: u64) -> Result<(), &'static str> {
        let total = self.total.checked_add(weight);
        self.total = total.ok_or("the weights up to here are 2^64 or more")?;
        match self.frames.bytes() > MAX_MEMORY {
            true => Err(TOO_MANY),
            false => Ok(()),
        }
    }
}

/// The address that a word is, such as `0x1f`.
pub(super) fn address(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// A name without the offset behind it: `main+12`, `main+0x1f`, `main+0xb/0x10`.
pub(super) fn without_offset(name: &str) -> &str {
    let is_number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
    };
    match name.rsplit_once('+') {
        Some((stem, offset)) if !stem.is_empty() && offset.split('/').all(is_number) => stem,
        _ => name,
    }
}

/// A Rust name that macOS and DTrace have taken apart at its lengths, but not read: `_$LT$a..B$GT$::f::h0123456789abcdef`.
/// All other names stay as they are.
pub(super) fn rust_name(name: &str) -> Cow<'_, str> {
    let is_hash = |part: &str| {
        let hex = part.strip_prefix('h').unwrap_or_default();
        hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let ends_so = name.rsplit_once("::").is_some_and(|(_, end)| is_hash(end));
    if !ends_so || name.len() > MAX_MANGLED {
        return Cow::Borrowed(name);
    }
    // As the compiler wrote it.
    let parts = name.split("::");
    let parts: String = parts.map(|part| format!("{}{part}", part.len())).collect();
    match rustc_demangle::try_demangle(&format!("_ZN{parts}E")) {
        Ok(demangled) => Cow::Owned(format!("{demangled:#}")),
        Err(_) => Cow::Borrowed(name),
    }
}
