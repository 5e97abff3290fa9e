//! From a raw recording to bytes.
//!
//! In: an [`RawRecording`]. Out: its sections, in an order that packs well: stacks that share callers follow each
//! other, and everything stands before its first use.

use super::batches::{Batches, by_age};
use super::known::WrittenIds;
use super::section::{self, Kind, MAGIC, VERSION};
use super::wire::{
    End, Head, VIEW, VIEW_KERNEL, VIEW_RAN, VIEW_REASONS, VIEW_SCHEDULER, VIEW_WAKERS_ABOVE,
    VIEW_WAKERS_ALONE, Window,
};
use super::{Facts, RawRecording};
use crate::profile::Wakers;
use crate::profile::normalized::{NormalizedKey, NormalizedProfile, NormalizedStackIndex, Sums};
use crate::profile::{Activity, Unit, WindowTotals};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime};

/// The most of the command line that is kept, in bytes: longer ones name files by the thousand.
const MAX_COMMAND_LINE: usize = 64 << 10;

/// Writes a raw recording that was recorded at once, with the windows that it is divided into.
///
/// # Errors
/// When the bytes are refused.
pub fn write(raw_recording: &RawRecording, out: &mut dyn Write) -> io::Result<()> {
    begin(&head(&raw_recording.facts), out)?;
    let normalized = &raw_recording.normalized;
    let mut known = WrittenIds::default();
    let mut batches = Batches::new(raw_recording, &mut known, out);
    let mut samples = in_order(normalized);
    samples.sort_by_key(|(key, _)| key.window);
    let whole = [WindowTotals {
        window: normalized.window,
        firings: normalized.total_count(),
        ..WindowTotals::default()
    }];
    let windows = match normalized.windows.as_slice() {
        [] => &whole,
        windows => windows,
    };
    let mut rest = samples.as_slice();
    for (index, totals) in windows.iter().enumerate() {
        let is_last = index + 1 == windows.len();
        let end = rest.partition_point(|(key, _)| is_last || key.window.0 as usize <= index);
        let (of_window, behind) = rest.split_at(end);
        rest = behind;
        batches.window(&Window {
            count: of_window.iter().map(|(_, sums)| sums.count).sum(),
            ..window(raw_recording.facts.started, totals)
        })?;
        if index == 0 {
            batches.labels()?;
        }
        for (key, sums) in of_window {
            batches.sample(key, *sums)?;
        }
    }
    batches.flush()?;
    let end = End {
        closing: raw_recording.closing.clone().unwrap_or_default(),
        samples: raw_recording.normalized.samples().len() as u64,
    };
    section::write(out, Kind::End, &end)
}

fn begin(head: &Head, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&MAGIC)?;
    out.write_all(&[VERSION])?;
    section::write(out, Kind::Head, head)
}

/// About as much memory as may be taken for what is not to be written again, in bytes. It goes with the distinct
/// stacks, of which a machine that compiles has new ones without end.
const MAX_KNOWN: usize = 16 << 20;

/// Writes a raw recording window by window. Stacks that one has are not written again for the next.
#[derive(Debug, Default)]
pub struct Writer {
    known: WrittenIds,
    /// Whether a reader is to forget what stands before the next window.
    is_anew: bool,
    samples: u64,
}

impl Writer {
    /// Begins a raw recording. Its facts hold for all of it, but for when it began, which is when its first window did.
    ///
    /// # Errors
    /// When the bytes are refused.
    pub fn begin(facts: &Facts, out: &mut dyn Write) -> io::Result<Self> {
        let head = Head {
            windows: true,
            ..head(facts)
        };
        begin(&head, out)?;
        Ok(Self::default())
    }

    /// Writes the next window, of which `totals` are known. It begins when the raw recording did.
    ///
    /// # Errors
    /// When the bytes are refused. Then nothing more can be written.
    pub fn window(
        &mut self,
        raw_recording: &RawRecording,
        totals: &WindowTotals,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if self.known.bytes + self.known.callees.bytes() > MAX_KNOWN {
            self.begin_anew();
        }
        let normalized = &raw_recording.normalized;
        let window = Window {
            count: normalized.total_count(),
            closing: raw_recording.closing.clone().unwrap_or_default(),
            anew: std::mem::take(&mut self.is_anew),
            ..window(raw_recording.facts.started, totals)
        };
        section::write(out, Kind::Window, &window)?;
        let samples = normalized.samples();
        self.samples += samples.len() as u64;
        let mut batches = Batches::new(raw_recording, &mut self.known, out);
        batches.labels()?;
        for stack in by_bases(normalized, &batches.bases()) {
            batches.stack(stack)?;
        }
        // The numbers of stacks that are there already are in no order; in theirs, they take a byte each.
        let mut numbered = Vec::with_capacity(samples.len());
        for (key, sums) in samples {
            let user = batches.stack_or_none(key.user)?;
            let kernel = batches.stack_or_none(key.kernel)?;
            numbered.push((user, kernel, key, sums));
        }
        numbered.sort_by_key(|(user, kernel, key, _)| {
            (
                *user,
                *kernel,
                by_age(&key.label),
                key.thread_state,
                key.waker,
            )
        });
        for (_, _, key, sums) in numbered {
            batches.sample(key, sums)?;
        }
        batches.flush()
    }

    /// Forgets what the file has.
    pub(super) fn begin_anew(&mut self) {
        self.known = WrittenIds::default();
        self.is_anew = true;
    }

    /// Ends the raw recording.
    ///
    /// # Errors
    /// When the bytes are refused.
    pub fn end(self, closing: String, out: &mut dyn Write) -> io::Result<()> {
        let end = End {
            closing,
            samples: self.samples,
        };
        section::write(out, Kind::End, &end)
    }
}

/// A window of a recording that `began` then, but for its samples.
fn window(began: SystemTime, totals: &WindowTotals) -> Window {
    let WindowTotals {
        window,
        firings,
        filtered,
        lost,
        busy_ns,
    } = *totals;
    Window {
        started_ns: since_1970(began).saturating_add(nanoseconds(window.start)),
        duration_ns: nanoseconds(window.length()),
        firings,
        filtered,
        lost,
        busy_ns,
        ..Window::default()
    }
}

/// The samples in an order in which stacks with the same callers follow each other.
fn in_order(normalized: &NormalizedProfile) -> Vec<(&NormalizedKey, Sums)> {
    let mut samples: Vec<(&NormalizedKey, Sums)> = normalized.samples().collect();
    let ranks = ranks(normalized);
    let rank = |index: Option<NormalizedStackIndex>| index.map(|index| ranks[index.0 as usize]);
    samples.sort_unstable_by_key(|(key, _)| {
        let (user, kernel) = (rank(key.user), rank(key.kernel));
        (
            user,
            kernel,
            by_age(&key.label),
            key.thread_state,
            key.waker,
        )
    });
    samples
}

/// The stacks in an order in which those that continue the same stack of the file follow each other.
fn by_bases(normalized: &NormalizedProfile, bases: &[Option<u32>]) -> Vec<NormalizedStackIndex> {
    let ranks = ranks(normalized);
    let mut order: Vec<u32> = (0..ranks.len() as u32).collect();
    order.sort_unstable_by_key(|index| (bases[*index as usize], ranks[*index as usize]));
    order.into_iter().map(NormalizedStackIndex).collect()
}

/// Facts of a raw recording that are known before anything is recorded.
fn head(facts: &Facts) -> Head {
    let (unit, event) = match &facts.unit {
        Unit::Samples => (0, &facts.event),
        Unit::Events(name) => (1, name),
        Unit::Nanoseconds => (2, &facts.event),
    };
    let mut left = MAX_COMMAND_LINE;
    let command_line = facts.command_line.iter().map_while(|word| {
        left = left.checked_sub(word.len() + 1)?;
        Some(word.as_bytes().to_vec())
    });
    let off_cpu = facts.off_cpu.map_or(0, |view| {
        let bits = [
            (view.scheduler, VIEW_SCHEDULER),
            (view.reasons, VIEW_REASONS),
            (view.kernel, VIEW_KERNEL),
            (view.ran, VIEW_RAN),
            (view.wakers == Wakers::Alone, VIEW_WAKERS_ALONE),
            (view.wakers == Wakers::Above, VIEW_WAKERS_ABOVE),
        ];
        bits.into_iter()
            .filter(|(is_so, _)| *is_so)
            .fold(VIEW, |all, (_, bit)| all | bit)
    });
    Head {
        writer: facts.writer.clone(),
        title: facts.title.clone(),
        noun: facts.noun.clone(),
        event: event.clone(),
        unit,
        host: facts.host.clone(),
        kernel: facts.kernel.clone(),
        kernel_build_id: facts.kernel_build_id.to_vec(),
        command_line: command_line.collect(),
        started_ns: since_1970(facts.started),
        off_cpu,
        windows: false,
        period_ns: facts.period_ns.unwrap_or(0),
        activity: match facts.activity {
            Activity::Running => 0,
            Activity::Waiting => 1,
            Activity::Both => 2,
        },
    }
}

fn since_1970(time: SystemTime) -> u64 {
    nanoseconds(
        time.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Each stack's place in an order in which those with the same callers follow each other.
fn ranks(normalized: &NormalizedProfile) -> Vec<u32> {
    let stacks = normalized.stacks();
    let mut order: Vec<u32> = (0..stacks.len() as u32).collect();
    let from_root = |index: &u32| stacks[*index as usize].locations.iter().rev();
    order.sort_unstable_by(|one, other| from_root(one).cmp(from_root(other)).then(one.cmp(other)));
    let mut ranks = vec![0; order.len()];
    for (rank, index) in order.into_iter().enumerate() {
        ranks[index as usize] = rank as u32;
    }
    ranks
}
