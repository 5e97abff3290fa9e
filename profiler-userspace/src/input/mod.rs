//! Profiles that other tools made.
//!
//! In: the bytes of a file as they come. Out: which kind of file it is, and a [`Profile`] with what there is to say of what
//! the profile does not hold. Files may be gzipped, whatever is in them. Text is read line by line; only pprof, JSON and
//! bpftrace's maps are in memory as a whole, since what comes first in them refers to what comes last.
//! Never: opens files, or the network; what goes wrong is a value, and names the line where there are lines. Raw recordings
//! are the business of [`crate::raw_recording`].

mod bpftrace;
mod dtrace;
mod json;
mod kind;
mod numbered;
mod other;
mod parquet_file;
mod perf;
mod pprof;
mod systemtap;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod xctrace;

pub use parquet_file::{made_of, read_files};

use crate::profile::cgroup::CgroupPattern;
use crate::profile::{Profile, Unit, fold};
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::Range;
use std::time::SystemTime;

/// The most that is read of a file that must be in memory as a whole, in bytes, unpacked.
const MAX_BYTES: u64 = 1 << 30;

/// The problem with a larger one.
const TOO_LARGE: &str = "it is more than 1 GiB, and such a file is read as a whole; divide it";

/// So much of a file is looked at to tell its kind, in bytes.
const HEAD_BYTES: usize = 64 * 1024;

/// A kind of file.
#[derive(Debug)]
pub struct Kind {
    /// Its name in sentences.
    pub name: &'static str,
    /// Whether it says what its weights count. What does not is read in the unit of the files beside it.
    pub has_unit: bool,
    /// Whether it says when samples were taken, and so can be read in part, and whose hosts they are of.
    pub has_times: bool,
    /// Whether a file that begins so is one. The first kind that says yes has it.
    looks_so: LooksSo,
    read: Reader,
}

type LooksSo = fn(&Head<'_>) -> bool;

type Reader = fn(&mut dyn BufRead, &ReadOptions<'_>) -> Result<Reading, Error>;

/// A kind that tells neither.
const fn kind(name: &'static str, looks_so: LooksSo, read: Reader) -> Kind {
    Kind {
        name,
        has_unit: false,
        has_times: false,
        looks_so,
        read,
    }
}

/// All kinds. Whatever there is to know of one is in its row and its file. Folded text is what is like nothing else.
static KINDS: &[Kind] = &[
    Kind {
        has_times: true,
        ..kind("Parquet", parquet_file::looks_so, parquet_file::read).with_unit()
    },
    kind("pprof", pprof::looks_so, pprof::read).with_unit(),
    kind("bpftrace maps", bpftrace::looks_so, bpftrace::read),
    kind(
        "macOS sample output",
        |head| tree::SAMPLE.looks_so(head),
        |from, options| tree::SAMPLE.read(from, options),
    ),
    kind("perf script text", perf::looks_so, perf::read).with_unit(),
    kind("SystemTap stacks", systemtap::looks_so, systemtap::read),
    kind("DTrace stacks", dtrace::looks_so, dtrace::read),
    kind(
        "VTune CSV",
        |head| tree::VTUNE.looks_so(head),
        |from, options| tree::VTUNE.read(from, options),
    )
    .with_unit(),
    kind(
        "Visual Studio CSV",
        |head| tree::VSPROF.looks_so(head),
        |from, options| tree::VSPROF.read(from, options),
    )
    .with_unit(),
    kind(
        "GHC profile",
        |head| tree::GHCPROF.looks_so(head),
        |from, options| tree::GHCPROF.read(from, options),
    )
    .with_unit(),
    kind("xctrace XML", xctrace::looks_so, xctrace::read),
    kind(".cpuprofile", json::is_cpuprofile, json::cpuprofile).with_unit(),
    kind("speedscope's JSON", json::is_speedscope, json::speedscope).with_unit(),
    kind(
        "folded text",
        |head| !head.is_binary && other::of_rest(head).is_none(),
        folded,
    ),
];

impl Kind {
    const fn with_unit(self) -> Self {
        Self {
            has_unit: true,
            ..self
        }
    }

    fn of(head: &[u8], is_all: bool) -> Result<&'static Self, Error> {
        if let Some(is) = other::of_magic(head) {
            return Err(Error::whole(is));
        }
        if is_all && head.trim_ascii().is_empty() {
            let problem = "it is empty; did the command fail that should have written it?";
            return Err(Error::whole(problem));
        }
        let head = Head::of(head, is_all);
        if let Some(is) = other::of_text(&head) {
            return Err(Error::whole(is));
        }
        let known = KINDS.iter().find(|kind| (kind.looks_so)(&head));
        known.ok_or_else(|| match other::of_rest(&head) {
            Some(is) => Error::whole(is),
            None => Error::Unknown(None),
        })
    }
}

/// A file whose beginning was read.
pub struct File<'a> {
    /// Its kind.
    pub kind: &'static Kind,
    bytes: Box<dyn BufRead + 'a>,
}

impl<'a> File<'a> {
    /// A file with such bytes, gzipped or not.
    ///
    /// # Errors
    /// When it cannot be read, or is of no kind that is known.
    pub fn of(bytes: impl BufRead + 'a) -> Result<Self, Error> {
        let (head, bytes) = unpacked(Box::new(bytes))?;
        let is_all = head.len() <= HEAD_BYTES;
        let kind = Kind::of(&head[..head.len().min(HEAD_BYTES)], is_all)?;
        let bytes = Box::new(Cursor::new(head).chain(bytes));
        Ok(Self { kind, bytes })
    }

    /// The profile in it.
    ///
    /// # Errors
    /// When the file is broken, has no stack, or not what is wanted of it.
    pub fn read(mut self, options: &ReadOptions<'_>) -> Result<Reading, Error> {
        let reading = (self.kind.read)(&mut self.bytes, options)?;
        if reading.profile.samples().is_empty() {
            return Err(Error::whole("there is no stack in it"));
        }
        Ok(reading)
    }
}

/// The time that is wanted of a file, by when it began.
pub type Time<'a> = &'a (dyn Fn(SystemTime) -> Range<SystemTime> + Sync);

/// Options for reading a file.
#[derive(Clone)]
pub struct ReadOptions<'a> {
    /// Unit of the weights, where the file does not say it.
    pub unit: Unit,
    /// Which of the things that the file counts; none for the one that is usual.
    pub sample_type: Option<&'a str>,
    /// The time that is wanted, where the file tells of times; none for all.
    pub time: Option<Time<'a>>,
    /// By how many windows samples are told apart at most, where the file tells of times.
    pub windows: usize,
    /// Cgroups that will be selected; none for all. Of what is in others, stacks need not be read.
    pub cgroups: &'a [CgroupPattern],
    /// Whether samples are told apart by their hosts, where the file tells of these.
    pub per_host: bool,
}

impl ReadOptions<'_> {
    /// All of a file.
    pub const ALL: Self = Self {
        unit: Unit::Samples,
        sample_type: None,
        time: None,
        windows: 1,
        cgroups: &[],
        per_host: false,
    };
}

impl ReadOptions<'_> {
    /// How many firings a weight stands for where nothing says it: as many as the weight where samples are what is
    /// counted, and else one, the least that there can have been.
    fn count(&self, weight: u64) -> u64 {
        match self.unit {
            Unit::Samples => weight,
            Unit::Events(_) | Unit::Nanoseconds => weight.min(1),
        }
    }
}

/// Result of reading a file.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The profile in it.
    pub profile: Profile,
    /// Notes on it: a label, and a line of text. May hold characters of the file.
    pub notes: Vec<(&'static str, String)>,
}

impl Reading {
    /// Tells of lines that are not in the profile, and of a file that was cut: behind which line, and within what.
    ///
    /// # Errors
    /// When there is nothing else in the file.
    fn leave_out(
        mut self,
        odd: &text::Lines,
        what: &str,
        expected: &str,
        cut: Option<(usize, &str)>,
    ) -> Result<Self, Error> {
        if self.profile.samples().is_empty() {
            if let Some((line, text)) = odd.first() {
                return Err(Error::at(line, format!("{text} should be {expected}")));
            }
            if let Some((line, problem)) = cut {
                return Err(Error::at(line, problem));
            }
        }
        let told = odd.told(what);
        self.notes.extend(told.map(|told| ("not shown", told)));
        let told =
            cut.map(|(line, problem)| format!("what should be behind line {line}: {problem}"));
        self.notes.extend(told.map(|told| ("not shown", told)));
        Ok(self)
    }
}

impl Reading {
    /// Notes that the file holds `others` beside what is shown.
    fn note_others(&mut self, others: &[impl AsRef<str>], shown: &str) {
        if !others.is_empty() {
            let others: Vec<&str> = others.iter().map(AsRef::as_ref).collect();
            let others = others.join(", ");
            let text = format!("{others}: shown is {shown}; choose with --sample-type");
            self.notes.push(("not shown", text));
        }
    }
}

impl From<Profile> for Reading {
    fn from(profile: Profile) -> Self {
        Self {
            profile,
            notes: Vec::new(),
        }
    }
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line that is not as such lines are.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from one.
        line: usize,
        /// The problem, and what was expected.
        problem: String,
    },
    /// Folded text that is none.
    #[error(transparent)]
    Folded(#[from] fold::ParseError),
    /// Bytes that do not come.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// Something that no line is to blame for.
    #[error("{0}")]
    Whole(String),
    /// A file of no kind that is known, and why it is no folded text, which is like nothing else.
    #[error("it is no raw recording (.fbpf), and none of: {}{}", names(), no_folded(.0.as_ref()))]
    Unknown(Option<fold::ParseError>),
}

fn names() -> String {
    let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

fn no_folded(error: Option<&fold::ParseError>) -> String {
    error.map_or_else(String::new, |error| format!("; for the last, {error}"))
}

impl Error {
    /// A line, counted from one, that is not as such lines are.
    fn at(line: usize, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::Line { line, problem }
    }

    /// The problem of a file as a whole.
    fn whole(problem: impl Into<String>) -> Self {
        Self::Whole(problem.into())
    }
}

/// The beginning of a file, which decides its kind.
struct Head<'a> {
    bytes: &'a [u8],
    /// The beginning as text, without a line that is cut.
    text: Cow<'a, str>,
    /// Whether it holds characters that text does not.
    is_binary: bool,
}

impl<'a> Head<'a> {
    fn of(bytes: &'a [u8], is_all: bool) -> Self {
        let mut head = bytes;
        if !is_all && let Some(end) = head.iter().rposition(|byte| *byte == b'\n') {
            head = &head[..=end];
        }
        let is_control = |byte: &u8| *byte < b'\t' || (0x0e..0x1b).contains(byte);
        Self {
            bytes,
            text: String::from_utf8_lossy(head),
            is_binary: head.iter().any(is_control),
        }
    }
}

/// A file's beginning, a byte longer than [`HEAD_BYTES`] if there is more, and the bytes behind it: unpacked if it is gzipped,
/// and in UTF-8 without a mark in front if it is text of an editor or of PowerShell.
fn unpacked<'a>(
    mut bytes: Box<dyn BufRead + 'a>,
) -> Result<(Vec<u8>, Box<dyn BufRead + 'a>), Error> {
    let mut head = head_of(&mut bytes)?;
    if head.starts_with(b"\x1f\x8b") {
        let packed = Cursor::new(head).chain(bytes);
        bytes = Box::new(BufReader::new(Unpacking(MultiGzDecoder::new(packed))));
        head = head_of(&mut bytes)?;
    }
    if head.starts_with(b"\xef\xbb\xbf") {
        head.drain(..3);
        head.extend(head_of(&mut bytes.as_mut().take(3))?);
        return Ok((head, bytes));
    }
    let Some(unit) = utf16(&head) else {
        return Ok((head, bytes));
    };
    let pairs = Cursor::new(head).chain(bytes);
    bytes = Box::new(BufReader::new(Utf16 {
        from: pairs,
        unit,
        half: None,
        text: Cursor::default(),
    }));
    Ok((head_of(&mut bytes)?, bytes))
}

fn head_of(bytes: &mut dyn BufRead) -> Result<Vec<u8>, Error> {
    let mut head = Vec::new();
    bytes.take(HEAD_BYTES as u64 + 1).read_to_end(&mut head)?;
    Ok(head)
}

/// All bytes from here on.
///
/// # Errors
/// The problem, when they are more than `most`.
fn whole(from: &mut dyn BufRead, most: u64, problem: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(Error::whole(problem)),
        false => Ok(bytes),
    }
}

/// A gzipped file, whose errors say so.
struct Unpacking<R>(R);

impl<R: Read> Read for Unpacking<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to).map_err(|error| {
            io::Error::other(format!(
                "it begins as a gzipped file, and cannot be unpacked: {error}"
            ))
        })
    }
}

/// How a text of two bytes for each letter orders these; none if it is not such a text.
fn utf16(head: &[u8]) -> Option<fn([u8; 2]) -> u16> {
    // Without a mark: letters, each with a zero beside it.
    let is_text = |at: usize| {
        let pairs = head.get(..32).map(|head| head.chunks_exact(2));
        pairs.is_some_and(|mut pairs| {
            pairs.all(|pair| pair[1 - at] == 0 && matches!(pair[at], b'\t'..=b'~'))
        })
    };
    match () {
        () if head.starts_with(b"\xff\xfe") || is_text(0) => Some(u16::from_le_bytes),
        () if head.starts_with(b"\xfe\xff") || is_text(1) => Some(u16::from_be_bytes),
        () => None,
    }
}

/// Text of two bytes for each letter, as UTF-8.
struct Utf16<R> {
    from: R,
    unit: fn([u8; 2]) -> u16,
    /// The first half of a letter, the other of which has not come.
    half: Option<u16>,
    /// A part of the text.
    text: Cursor<Vec<u8>>,
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.text.position() == self.text.get_ref().len() as u64 {
            let mut part = Vec::new();
            let limited = &mut self.from.by_ref().take(HEAD_BYTES as u64);
            limited.read_to_end(&mut part)?;
            let pairs = part.chunks_exact(2);
            let pairs = pairs.map(|pair| (self.unit)([pair[0], pair[1]]));
            let units = self.half.take().into_iter().chain(pairs);
            let mut units: Vec<u16> = units.filter(|unit| *unit != 0xfeff).collect();
            if !part.is_empty() {
                self.half = units.pop_if(|unit| (0xd800..0xdc00).contains(unit));
            } else if units.is_empty() {
                return Ok(0);
            }
            let letters = char::decode_utf16(units);
            let letters = letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
            self.text = Cursor::new(letters.collect::<String>().into_bytes());
        }
        self.text.read(to)
    }
}

fn folded(from: &mut dyn BufRead, options: &ReadOptions<'_>) -> Result<Reading, Error> {
    text::one_type(options)?;
    let parsed = fold::parse_lines(from, options.unit.clone())?;
    // A few lines that happen to end in a number do not make a text folded.
    let is_folded = parsed.read > parsed.skipped;
    let mut reading = Reading::from(parsed.profile);
    if let Some(error) = parsed.first_skipped {
        if !is_folded {
            return Err(match error {
                fold::ParseError::TwoWeights { .. } => error.into(),
                error => Error::Unknown(Some(error)),
            });
        }
        let text = format!("{} lines that hold no stack; {error}", parsed.skipped);
        reading.notes.push(("not shown", text));
    }
    if parsed.is_rounded {
        let text =
            "weights are rounded in their last decimals, which changes no share by a billionth";
        reading.notes.push(("note", text.to_owned()));
    }
    Ok(reading)
}
