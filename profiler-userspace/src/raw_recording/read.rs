//! From bytes to a raw recording.
//!
//! In: anything. Out: an [`RawRecording`] of what is whole, and what is missing, or why nothing can be made of it.
//! A number that leads nowhere is an error: a file with a right checksum and a wrong number was not made by a
//! flame-bpf that is understood here. Takes no more than a fixed amount of memory, whatever a file claims.

use super::budget::Stop;
use super::pending::{Packed, PendingBatches};
use super::section::{self, Kind, MAGIC, Section, SectionRead, VERSION};
use super::take::Taken;
use super::windows::{Divided, Seen, WindowFilter, Windows};
use super::wire::{
    self, Batch, Head, VIEW, VIEW_KERNEL, VIEW_KNOWN, VIEW_RAN, VIEW_REASONS, VIEW_SCHEDULER,
    VIEW_WAKERS_ABOVE, VIEW_WAKERS_ALONE,
};
use super::{Error, Facts, RawRecording};
use crate::profile::{Activity, Unit};
use crate::profile::{OffCpuView, Wakers};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// The most memory that reading and naming may take, by a rough estimate, in bytes. Half a million distinct
/// samples of fifty frames each take less.
const MAX_BYTES: u64 = 1 << 30;

/// So many bytes of messages are unpacked whatever the file, and beyond them so many times what the file has: a small file takes little
/// time, and no writer packs as well.
const UNPACKED: (u64, u64) = (1 << 30, 64);

/// Such a part of the memory may hold batches that are not unpacked yet. What a file has before its numbers begin anew
/// packs into far less.
const PENDING: u64 = 64;

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

/// Result of reading a file.
#[derive(Clone, Debug)]
pub struct Read {
    /// The part that is whole.
    pub raw_recording: RawRecording,
    /// Why that is not all, if it is not.
    pub missing: Option<Missing>,
    /// How many firings were recorded, those that are missing included.
    pub recorded: u64,
    /// The windows that were taken.
    pub windows: Windows,
}

/// Whether what begins so is a raw recording, of whatever version.
pub fn is_one(begins: &[u8]) -> bool {
    begins.starts_with(&MAGIC[..begins.len().clamp(1, MAGIC.len())])
}

/// Reads a raw recording, or those windows of it that have part in the time that is `wanted`. Its samples are told apart by
/// at most so many windows, which takes up to as many times the memory.
///
/// # Errors
/// When it is none, of a later version, contradicts itself, has not one sample that is whole, or no window in
/// that time.
pub fn read(
    mut from: impl std::io::Read,
    wanted: WindowFilter<'_>,
    windows: usize,
) -> Result<Read, Error> {
    read_within(&mut from, (wanted, windows), MAX_BYTES)
}

/// [`read`], within so many bytes of memory.
pub(super) fn read_within(
    from: &mut impl std::io::Read,
    (wanted, windows): (WindowFilter<'_>, usize),
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
    let mut reading = Reading {
        head: None,
        windows: Seen::new(wanted, windows),
        taken: Taken::new(most),
        pending: PendingBatches::new(most / PENDING),
        closing: None,
        is_full: false,
        far: Far {
            at: start.len() as u64,
            ..Far::default()
        },
    };
    let missing = loop {
        match section::read(from)? {
            SectionRead::Section(section) => match reading.section(section) {
                Ok(()) => {}
                Err(End::Missing(missing)) => break Some(missing),
                Err(End::Error(error)) => return Err(error),
            },
            SectionRead::End if reading.closing.is_some() => break None,
            SectionRead::End | SectionRead::CutOff => break Some(Missing::CutOff),
            SectionRead::Damaged => break Some(Missing::Damaged),
        }
    };
    reading.finish(missing)
}

/// How far a file was read.
#[derive(Default)]
struct Far {
    /// Bytes of the file.
    at: u64,
    /// Sections of it.
    sections: u64,
    /// Bytes of messages that were unpacked.
    unpacked: u64,
}

impl Far {
    fn unpack(&mut self, section: &Section) -> Result<Vec<u8>, Missing> {
        self.unpacked += section.plain_bytes as u64;
        if self.unpacked > UNPACKED.0 + UNPACKED.1 * self.at {
            return Err(Missing::TooLarge);
        }
        section.unpack().ok_or(Missing::Damaged)
    }
}

/// State of reading a file.
struct Reading<'w> {
    head: Option<Head>,
    windows: Seen<'w>,
    taken: Taken,
    pending: PendingBatches,
    closing: Option<String>,
    /// Then no more batches are taken, but the other sections are still read: they say how much is missing.
    is_full: bool,
    far: Far,
}

/// Why reading ends before the file does.
enum End {
    Missing(Missing),
    Error(Error),
}

impl From<Missing> for End {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing)
    }
}

fn nonsense(section: u64, what: &'static str) -> Error {
    Error::Nonsense { section, what }
}

/// Decodes a message of the section that has this number.
fn decode<T: prost::Message + Default>(number: u64, message: &[u8]) -> Result<T, End> {
    T::decode(message).map_err(|_| {
        End::Error(nonsense(
            number,
            "there is a message that cannot be decoded",
        ))
    })
}

impl Reading<'_> {
    fn section(&mut self, section: Section) -> Result<(), End> {
        self.far.at += section.bytes() as u64;
        self.far.sections += 1;
        let number = self.far.sections;
        let broken = |what| Err(End::Error(nonsense(number, what)));
        if self.closing.is_some() {
            return broken("there is something behind the end");
        }
        let kind = section.kind;
        if kind == Kind::Batch as u8 && self.head.is_some() {
            return self.batch(number, section);
        }
        let message = self.far.unpack(&section)?;
        if kind == Kind::Head as u8 && self.head.is_none() {
            let head: Head = decode(number, &message)?;
            self.head = Some(head);
        } else if kind == Kind::Window as u8
            && let Some(head) = &self.head
        {
            let window: wire::Window = decode(number, &message)?;
            if window.anew {
                self.pending.pass_over();
                self.taken.begin_anew();
            }
            if self.windows.see(wire::time(head.started_ns), window) == Divided::Less {
                self.taken.normalized.halve_windows();
            }
        } else if kind == Kind::End as u8 && self.head.is_some() {
            let end: wire::End = decode(number, &message)?;
            self.pending.pass_over();
            let is_all = !self.is_full && !self.pending.passed_over;
            if is_all && end.samples != self.taken.samples {
                return broken("there is a wrong number of samples");
            }
            self.closing = Some(end.closing);
        } else {
            return broken("there is a section of an unknown kind");
        }
        Ok(())
    }

    /// Takes a batch, or keeps it until it is needed.
    fn batch(&mut self, number: u64, section: Section) -> Result<(), End> {
        if self.windows.is_empty() {
            let what = "there are samples outside windows";
            return Err(End::Error(nonsense(number, what)));
        }
        if self.is_full {
            return Ok(());
        }
        let wanted = self.windows.is_wanted();
        let has_room = self.pending.keep(Packed {
            number,
            section,
            wanted,
            windows: self.windows.before(),
        });
        if has_room && !wanted {
            return Ok(());
        }
        for Packed {
            number,
            section,
            wanted,
            windows,
        } in self.pending.take()
        {
            let batch: Batch = decode(number, &self.far.unpack(&section)?)?;
            let window = wanted.then(|| self.windows.index(windows));
            match self.taken.take(batch, window) {
                Ok(()) => {}
                Err(Stop::Full) => {
                    self.is_full = true;
                    break;
                }
                Err(Stop::Nonsense(what)) => return Err(End::Error(nonsense(number, what))),
            }
        }
        Ok(())
    }

    fn finish(self, missing: Option<Missing>) -> Result<Read, Error> {
        let Self { mut taken, far, .. } = self;
        let missing = match self.is_full {
            true => Some(Missing::TooLarge),
            false => missing,
        };
        let nothing = Error::Nothing { at: far.at };
        let Some(head) = self.head else {
            return Err(nothing);
        };
        let is_continuous = head.windows;
        let facts = facts(head).ok_or_else(|| nonsense(1, "there is an unknown unit"))?;
        let Some((windows, totals)) = self.windows.found(is_continuous)? else {
            return Err(nothing);
        };
        let recorded = windows.recorded;
        taken.normalized.window = windows.window();
        taken.normalized.windows = totals;
        let closing = match self.closing {
            Some(closing) if windows.taken == windows.all => Some(closing),
            // Each of them says what was lost.
            _ if windows.taken == 1 => Some(windows.closing.clone()),
            _ => None,
        };
        let closing = closing.filter(|closing| !closing.is_empty());
        if taken.sums.count == 0 && missing.is_some() {
            return Err(nothing);
        }
        if missing.is_none() && taken.sums.count != recorded {
            let what = "there is a wrong number of firings";
            return Err(nonsense(far.sections, what));
        }
        Ok(Read {
            raw_recording: RawRecording {
                facts,
                normalized: taken.normalized,
                objects: taken.objects,
                closing,
            },
            missing,
            recorded,
            windows,
        })
    }
}

fn facts(head: Head) -> Option<Facts> {
    let unit = match head.unit {
        0 => Unit::Samples,
        1 => Unit::Events(head.event.clone()),
        2 => Unit::Nanoseconds,
        _ => return None,
    };
    if head.off_cpu & !VIEW_KNOWN != 0 {
        return None;
    }
    let has = |bit| head.off_cpu & bit != 0;
    let facts = Facts {
        writer: head.writer,
        title: head.title,
        noun: head.noun,
        event: head.event,
        unit,
        host: head.host,
        kernel: head.kernel,
        kernel_build_id: head.kernel_build_id.into(),
        command_line: head
            .command_line
            .into_iter()
            .map(OsString::from_vec)
            .collect(),
        started: wire::time(head.started_ns),
        period_ns: Some(head.period_ns).filter(|period| *period > 0),
        activity: match head.activity {
            0 => Activity::Running,
            1 => Activity::Waiting,
            2 => Activity::Both,
            _ => return None,
        },
        off_cpu: has(VIEW).then(|| OffCpuView {
            scheduler: has(VIEW_SCHEDULER),
            reasons: has(VIEW_REASONS),
            kernel: has(VIEW_KERNEL),
            ran: has(VIEW_RAN),
            wakers: match (has(VIEW_WAKERS_ALONE), has(VIEW_WAKERS_ABOVE)) {
                (false, false) => Wakers::None,
                (true, _) => Wakers::Alone,
                (false, true) => Wakers::Above,
            },
        }),
    };
    Some(facts)
}
