//! Folded text back to a profile.
//!
//! In: what [`super::fold`] or another tool wrote, and what its weights count.
//! Out: a profile whose folded text is the same again, or which line is wrong and why.
//! Never: a line that is skipped silently; only blank lines and comments (`# `) hold no stack.
//!
//! The kind of a frame is read from what the text says of it. A line with `_[k]` in it is annotated
//! throughout. In one without, all behind a `-` is the kernel's. `_[j]` is code that a runtime made and
//! `_[i]` an inlined function, wherever they stand. A bracketed name without an offset is a mark, and
//! `[tid 1]` or `[cpu 1]` beside the process is a label.

use super::name::reads_as_number;
use super::{DELIMITER, split_suffix, visible};
use crate::profile::frames::FrameProfile;
use crate::profile::{FrameKind, FrameRef, Profile, Unit, Window, is_mark};
use foldhash::HashMap;
use std::collections::hash_map::Entry;

/// Why text is not folded stacks.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is no second word.
    #[error("line {line} has no weight: `{text}` should end in a space and a whole number")]
    NoWeight {
        /// Counted from one.
        line: usize,
        /// The line's beginning.
        text: String,
    },
    /// The last word is no number, or has a fraction, or is too large.
    #[error(
        "line {line} ends in `{weight}`, which is no weight: it should be a whole number below 2^64"
    )]
    BadWeight {
        /// Counted from one.
        line: usize,
        /// The last word's beginning.
        weight: String,
    },
    /// Two numbers end the line.
    #[error(
        "line {line} has two weights, as the difference of two profiles has; give one of these two profiles instead"
    )]
    TwoWeights {
        /// Counted from one.
        line: usize,
    },
    /// There are more stacks than memory may be taken for.
    #[error("the stacks up to line {line} take 2 GiB of memory; divide the text")]
    TooMany {
        /// Counted from one.
        line: usize,
    },
    /// All weights up to this line are 2^64 or more.
    #[error(
        "the weights up to line {line} add up to 2^64 or more; divide them all by the same number first"
    )]
    TooHeavy {
        /// Counted from one.
        line: usize,
    },
}

/// The most memory that text may take, in bytes, beside its names: a small packed file may hold a great many lines.
pub const MOST_MEMORY: u64 = 2 << 30;

/// Reads folded text, whose weights are in `unit`.
///
/// The text does not say how many firings a line stands for: it is as many as the weight where
/// samples are what is counted, and else one, the least that there can have been.
/// Invalid UTF-8 is replaced by U+FFFD, since names are whatever a program has put there.
pub fn parse(text: &[u8], unit: Unit) -> Result<Profile, ParseError> {
    let mut profile = FrameProfile::new(Profile::new(unit.clone(), Window::default()));
    let mut total = 0_u64;
    let mut kinds = Vec::new();
    let text = String::from_utf8_lossy(text);
    // Some tools write a line for each sample: what reads alike is looked at once.
    let mut known: HashMap<&str, usize> = HashMap::default();
    for (index, text) in text.split('\n').enumerate() {
        let line = index + 1;
        let text = text.trim_ascii();
        if text.is_empty() || text.starts_with("# ") || text == "#" {
            continue;
        }
        let (stack, shown) = split_weight(line, text)?;
        let weight = unit.read(shown).ok_or(ParseError::TooHeavy { line })?;
        total = total
            .checked_add(weight)
            .ok_or(ParseError::TooHeavy { line })?;
        let count = match unit {
            Unit::Samples => weight,
            Unit::Events(_) | Unit::Nanoseconds => 1,
        };
        match known.entry(stack) {
            Entry::Occupied(sample) => profile.add(*sample.get(), weight, count),
            Entry::Vacant(place) => {
                let sample = profile.push(&frames(stack, &mut kinds), weight, count);
                place.insert(sample);
            }
        }
        if profile.bytes() > MOST_MEMORY {
            return Err(ParseError::TooMany { line });
        }
    }
    Ok(profile.into_profile())
}

fn split_weight(line: usize, text: &str) -> Result<(&str, u64), ParseError> {
    let Some((stack, word)) = text.rsplit_once([' ', '\t']) else {
        return Err(ParseError::NoWeight {
            line,
            text: excerpt(text),
        });
    };
    let number = word.bytes().all(|byte| byte.is_ascii_digit());
    let Some(weight) = number.then(|| word.parse().ok()).flatten() else {
        return Err(ParseError::BadWeight {
            line,
            weight: excerpt(word),
        });
    };
    let stack = stack.trim_ascii_end();
    match stack.rsplit_once([' ', '\t']) {
        Some((_, first)) if reads_as_number(first) => Err(ParseError::TwoWeights { line }),
        _ => Ok((stack, weight)),
    }
}

/// So much of hostile text as an error can quote.
fn excerpt(text: &str) -> String {
    const CHARS: usize = 40;
    let shown = visible(text);
    match shown.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    }
}

/// The frames of a stack as it stands in a line, without its weight.
pub(crate) fn stack(text: &str) -> Vec<FrameRef<'_>> {
    frames(text, &mut Vec::new())
}

fn frames<'a>(stack: &'a str, kinds: &mut Vec<FrameKind>) -> Vec<FrameRef<'a>> {
    let names: Vec<&str> = stack.split(';').collect();
    let border = names
        .iter()
        .position(|&name| name == DELIMITER)
        .filter(|&at| at > 0 && at + 1 < names.len());
    guess_kinds(&names, border, kinds);
    let frames = names
        .iter()
        .zip(&*kinds)
        .enumerate()
        .filter(|&(at, _)| Some(at) != border);
    frames
        .map(|(_, (&name, &kind))| {
            let stem = split_suffix(name).filter(|(_, suffixed)| *suffixed == kind);
            let name = stem.map_or(name, |(stem, _)| stem);
            FrameRef { name, kind }
        })
        .collect()
}

/// Fills `kinds` with one kind per name; that of the border itself means nothing.
fn guess_kinds(names: &[&str], border: Option<usize>, kinds: &mut Vec<FrameKind>) {
    // All that says more of a frame than its name ends so, and few names do.
    let is_special = |name: &str| name.as_bytes().last() == Some(&b']');
    let suffixed = |name: &str| split_suffix(name).map(|(_, kind)| kind);
    let is_kernel = |name: &str| suffixed(name) == Some(FrameKind::Kernel);
    let annotated = names.iter().any(|name| is_kernel(name));
    kinds.clear();
    let mut process_seen = false;
    let mut beside_process = true;
    for (at, name) in names.iter().enumerate() {
        let special = is_special(name);
        let kernel = if annotated {
            is_kernel(name)
        } else {
            border.is_some_and(|border| at > border) && !(special && is_mark(name))
        };
        let kind = if kernel {
            FrameKind::Kernel
        } else if special && beside_process && is_label(name) {
            FrameKind::Label
        } else if let Some(kind) = suffixed(name).filter(|kind| *kind != FrameKind::Kernel) {
            kind
        } else if !process_seen && beside_process {
            process_seen = true;
            FrameKind::Process
        } else if special && is_mark(name) {
            FrameKind::Mark
        } else {
            FrameKind::User
        };
        beside_process &= matches!(kind, FrameKind::Label | FrameKind::Process);
        kinds.push(kind);
    }
    let Some(border) = border else { return };
    // The border stands right behind the last user frame, and only before something of the kernel's.
    if !kinds[border - 1].is_user() {
        kinds[border - 1] = FrameKind::User;
    }
    let kernel_part = &mut kinds[border + 1..];
    if !kernel_part.contains(&FrameKind::Kernel) {
        kernel_part.fill(FrameKind::Kernel);
    }
}

fn is_label(name: &str) -> bool {
    let digits = |start| {
        name.strip_prefix(start)
            .and_then(|rest| rest.strip_suffix(']'))
    };
    digits("[tid ")
        .or_else(|| digits("[cpu "))
        .is_some_and(|number| number.parse::<u32>().is_ok())
}
