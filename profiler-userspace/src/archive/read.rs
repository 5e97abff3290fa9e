//! From bytes to a raw recording.
//!
//! In: anything. Out: an [`Archive`] of what is whole, and what is missing, or why nothing can be made of it.
//! A number that leads nowhere is an error: a file with a right checksum and a wrong number was not made by a
//! flame-bpf that is understood here. Takes no more than a fixed amount of memory, whatever a file claims.

use super::budget::Stop;
use super::section::{self, Found, Kind, MAGIC, VERSION};
use super::take::Taken;
use super::windows::{Seen, Wanted, Windows};
use super::wire::{
    self, Batch, End, FINISH, FINISH_KERNEL, FINISH_KNOWN, FINISH_RAN, FINISH_REASONS,
    FINISH_SCHEDULER, FINISH_WAKERS_ABOVE, FINISH_WAKERS_ALONE, Head,
};
use super::{Archive, Error, Facts};
use crate::profile::waits::{self, Wakers};
use crate::profile::{Unit, Window};
use prost::Message as _;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::{Duration, SystemTime};

/// The most memory that reading and naming may take, by a rough estimate, in bytes. Half a million distinct
/// samples of fifty frames each take less.
const MOST_BYTES: u64 = 1 << 30;

/// So many bytes of messages are unpacked whatever the file, and beyond them so many times what the file has: a small file takes little
/// time, and no writer packs as well.
const UNPACKED: (u64, u64) = (1 << 30, 64);

/// Why a file gave less than was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It ends early.
    CutOff,
    /// It is not what was written, from some place on.
    Damaged,
    /// It holds more than may be taken into memory.
    TooLarge,
}

/// What was read.
#[derive(Clone, Debug)]
pub struct Read {
    /// What is whole.
    pub archive: Archive,
    /// Why that is not all, if it is not.
    pub missing: Option<Missing>,
    /// How many firings were recorded, those that are missing included.
    pub recorded: u64,
    /// The windows that were taken; none of a raw recording without.
    pub windows: Option<Windows>,
}

/// Reads a raw recording, or those windows of it that have part in the time that is `wanted`.
///
/// # Errors
/// When it is none, of a later version, contradicts itself, has not one sample that is whole, or no window in
/// that time.
pub fn read(mut from: impl std::io::Read, wanted: Wanted<'_>) -> Result<Read, Error> {
    read_within(&mut from, wanted, MOST_BYTES)
}

/// [`read`], within so many bytes of memory.
pub(super) fn read_within(
    from: &mut impl std::io::Read,
    wanted: Wanted<'_>,
    most: u64,
) -> Result<Read, Error> {
    let start = section::up_to(from, MAGIC.len() + 1)?;
    let version = match start.split_last() {
        Some((version, magic)) if magic == MAGIC => *version,
        _ => return Err(Error::Foreign),
    };
    if version != VERSION {
        return Err(Error::Version {
            found: version,
            known: VERSION,
        });
    }
    let mut at = start.len() as u64;
    let nonsense = |section, what| Error::Nonsense { section, what };
    let mut taken = Taken::new(most);
    let mut head: Option<Head> = None;
    let mut windows: Option<Seen<'_>> = None;
    let mut closing = None;
    let (mut number, mut unpacked) = (0, 0);
    // Then no batch is taken any more, but what there is besides is looked at: how much is missing is to be told.
    let mut is_full = false;
    let missing = loop {
        let (kind, message) = match section::read(from, &mut at)? {
            Found::Section(kind, message) => (kind, message),
            Found::End if closing.is_some() => break None,
            Found::End | Found::CutOff => break Some(Missing::CutOff),
            Found::Damaged => break Some(Missing::Damaged),
        };
        number += 1;
        if closing.is_some() {
            return Err(nonsense(number, "there is something behind the end"));
        }
        unpacked += message.len() as u64;
        if unpacked > UNPACKED.0 + UNPACKED.1 * at {
            break Some(Missing::TooLarge);
        }
        let undecoded = |_| nonsense(number, "there is a message that cannot be decoded");
        if kind == Kind::Head as u8 && head.is_none() {
            let first = Head::decode(&*message).map_err(undecoded)?;
            windows = first.windows.then(|| Seen::new(wanted));
            head = Some(first);
        } else if kind == Kind::Window as u8
            && let (Some(head), Some(windows)) = (&head, &mut windows)
        {
            let window = wire::Window::decode(&*message).map_err(undecoded)?;
            if window.anew {
                taken.begin_anew();
            }
            taken.wanted = windows.see(since_1970(head.started_ns), window);
        } else if kind == Kind::Batch as u8 && head.is_some() {
            if windows.as_ref().is_some_and(Seen::is_empty) {
                return Err(nonsense(number, "there are samples outside windows"));
            }
            if is_full {
                continue;
            }
            let batch = Batch::decode(&*message).map_err(undecoded)?;
            match taken.take(batch) {
                Ok(()) => {}
                Err(Stop::Full) => is_full = true,
                Err(Stop::Nonsense(what)) => return Err(nonsense(number, what)),
            }
        } else if kind == Kind::End as u8 && head.is_some() {
            let end = End::decode(&*message).map_err(undecoded)?;
            if !is_full && end.samples != taken.samples {
                return Err(nonsense(number, "there is a wrong number of samples"));
            }
            closing = Some(end.closing);
        } else {
            return Err(nonsense(number, "there is a section of an unknown kind"));
        }
    };
    let missing = if is_full {
        Some(Missing::TooLarge)
    } else {
        missing
    };
    let Some(head) = head else {
        return Err(Error::Nothing { at });
    };
    let mut recorded = head.count;
    let (facts, window) = facts(head).ok_or_else(|| nonsense(1, "there is an unknown unit"))?;
    taken.located.window = window;
    let windows = match windows {
        Some(seen) => seen.found()?,
        None if wanted.is_some() => return Err(Error::NoWindows),
        None => None,
    };
    if let Some(windows) = &windows {
        recorded = windows.recorded;
        taken.located.window = windows.window();
        // Each of them says what was lost.
        closing = Some(windows.closing.clone());
    }
    if taken.sums.count == 0 && missing.is_some() {
        return Err(Error::Nothing { at });
    }
    if missing.is_none() && taken.sums.count != recorded {
        return Err(nonsense(number, "there is a wrong number of firings"));
    }
    Ok(Read {
        archive: Archive {
            facts,
            located: taken.located,
            objects: taken.objects,
            closing,
        },
        missing,
        recorded,
        windows,
    })
}

/// A time that can be told.
pub(super) fn since_1970(ns: u64) -> SystemTime {
    (SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(ns))).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn facts(head: Head) -> Option<(Facts, Window)> {
    let unit = match head.unit {
        0 => Unit::Samples,
        1 => Unit::Events(head.event.clone()),
        2 => Unit::Nanoseconds,
        _ => return None,
    };
    if head.finish & !FINISH_KNOWN != 0 {
        return None;
    }
    let has = |bit| head.finish & bit != 0;
    let facts = Facts {
        writer: head.writer,
        title: head.title,
        noun: head.noun,
        event: head.event,
        unit,
        host: head.host,
        kernel: head.kernel,
        command_line: head
            .command_line
            .into_iter()
            .map(OsString::from_vec)
            .collect(),
        started: since_1970(head.started_ns),
        finish: has(FINISH).then(|| waits::Finish {
            scheduler: has(FINISH_SCHEDULER),
            reasons: has(FINISH_REASONS),
            kernel: has(FINISH_KERNEL),
            ran: has(FINISH_RAN),
            wakers: match (has(FINISH_WAKERS_ALONE), has(FINISH_WAKERS_ABOVE)) {
                (false, false) => Wakers::None,
                (true, _) => Wakers::Alone,
                (false, true) => Wakers::Above,
            },
        }),
    };
    let window = Window {
        start: Duration::ZERO,
        end: Duration::from_nanos(head.duration_ns),
    };
    Some((facts, window))
}
