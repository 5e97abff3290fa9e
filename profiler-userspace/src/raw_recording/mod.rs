//! Raw recordings: a recording's stacks as a compact file, to be named later or elsewhere.
//!
//! In: a [`NormalizedProfile`] whose locations lie in [`RecordedObject`]s, or carry their names, and [`Facts`] about
//! it. Out: bytes, and from bytes the same again. A file is never trusted: reading it
//! takes bounded time and memory, and every number is checked before it is used.
//! `docs/raw-recordings.md` describes the format for other readers.

mod batches;
mod budget;
mod callees;
mod known;
mod merged;
mod pending;
mod read;
mod section;
mod tables;
mod take;
#[cfg(test)]
mod tests;
mod windows;
mod wire;
mod write;

pub use merged::Merged;
pub use read::{Missing, Read, is_one, read};
pub use windows::{WindowFilter, Windows};
pub use write::{Writer, write};

use crate::clock::shown;
use crate::object::RecordedObject;
use crate::profile::OffCpuView;
use crate::profile::normalized::NormalizedProfile;
use crate::profile::{Activity, Unit};
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::time::SystemTime;

/// Extension of the names of raw recordings, without the dot.
pub const EXTENSION: &str = "fbpf";

/// Facts about a recording beside its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The program that wrote the file.
    pub writer: String,
    /// The title that its graph would have.
    pub title: String,
    /// Name of one firing.
    pub noun: String,
    /// The event that was sampled.
    pub event: String,
    /// Unit of the weights.
    pub unit: Unit,
    /// The machine's name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's build ID; empty if it is not known.
    pub kernel_build_id: Box<[u8]>,
    /// The command line that asked for it, the program's name first.
    pub command_line: Vec<OsString>,
    /// When it began.
    pub started: SystemTime,
    /// How much time of a CPU a sample stands for, in nanoseconds; none if it does not stand for time.
    pub period_ns: Option<u64>,
    /// Activity of the threads whose stacks these are.
    pub activity: Activity,
    /// How waits are to be shown; none where there are none.
    pub off_cpu: Option<OffCpuView>,
}

/// A raw recording.
#[derive(Clone, Debug)]
pub struct RawRecording {
    /// About the recording.
    pub facts: Facts,
    /// Its samples. The kernel's locations have names.
    pub normalized: NormalizedProfile,
    /// Objects that locations lie in, by number.
    pub objects: Vec<RecordedObject>,
    /// Summary from the end of the recording: the balance, but for what naming objects adds to it.
    /// None in a file that ends early.
    pub closing: Option<String>,
}

/// Why a file is no raw recording that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something else.
    #[error("it is not a raw recording, which `flame-bpf -o NAME.fbpf` makes")]
    Foreign,
    /// A later version of the format.
    #[error(
        "its format is version {found}, and this flame-bpf reads version {known}; render it with the one that made it"
    )]
    Version {
        /// The file's.
        found: u8,
        /// Ours.
        known: u8,
    },
    /// The file contradicts itself, or says what no writer of this version does.
    #[error(
        "{what} in section {section}, so it was made by a broken or a later flame-bpf; record again"
    )]
    Nonsense {
        /// The section's number.
        section: u64,
        /// The problem.
        what: &'static str,
    },
    /// It has other windows than were asked for.
    #[error("none of its windows is of that time; they begin at {} and end at {}", shown(time.start), shown(time.end))]
    OtherTime {
        /// From the first to the last.
        time: Range<SystemTime>,
    },
    /// Nothing of it is whole.
    #[error(
        "not one sample of it is whole: it ends or is damaged at byte {at}; record again, and let the recording finish"
    )]
    Nothing {
        /// How many bytes are whole.
        at: u64,
    },
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
}
