//! The jitdump: a header, then a record for each piece of code that was made or moved.
//!
//! In: an open file and addresses. Out: the last name for each, and the code itself. Reading ends at the first invalid record,
//! which may be one that is half-written.

use super::{Latest, MAX_FILE_BYTES, MAX_NAME_BYTES, Names};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom, Take};
use std::ops::Range;
use std::rc::Rc;

/// The magic number, as its writer reads it.
const MAGIC: u32 = 0x4a69_5444;

/// Code was made.
const CODE_LOAD: u32 = 0;

/// Code was moved.
const CODE_MOVE: u32 = 1;

/// The header of each record: kind, size and time.
const PREFIX_BYTES: u32 = 16;

/// Bytes in front of the name of code that was made.
const LOAD_BYTES: u32 = 40;

/// The record of code that was moved.
const MOVE_BYTES: u32 = 48;

/// The byte order of the whole file.
#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

/// A record.
enum Record {
    Load {
        start: u64,
        size: u64,
        number: u64,
        name: Rc<[u8]>,
        /// Of the process that made it.
        pid: u32,
        /// Where in the file the code is, if the record has room for it.
        at: Option<u64>,
    },
    Move {
        start: u64,
        size: u64,
        number: u64,
    },
    Other,
}

/// Reads the dump as far as it is written.
pub(super) fn read(file: &File, names: &mut Names<'_>) {
    names.note_length(file);
    each(file, |record| match record {
        Record::Load {
            start, size, name, ..
        } => names.define(start, size, || Latest::Named(name)),
        Record::Move {
            start,
            size,
            number,
        } => names.define(start, size, || Latest::Moved(number)),
        Record::Other => true,
    });
    let moved = |latest: &Option<Latest>| match latest {
        Some(Latest::Moved(number)) => Some(*number),
        _ => None,
    };
    let wanted: HashSet<u64> = names.of.iter().filter_map(moved).collect();
    if wanted.is_empty() {
        return;
    }
    let mut known = HashMap::new();
    each(file, |record| {
        if let Record::Load { number, name, .. } = record
            && wanted.contains(&number)
        {
            known.insert(number, name);
        }
        true
    });
    for latest in &mut names.of {
        if let Some(number) = moved(latest) {
            *latest = known.get(&number).cloned().map(Latest::Named);
        }
    }
}

/// Where in the dump the code is that a process made in these ranges of addresses, by range: of several the last.
pub(super) fn places(file: &File, of: u32, ranges: &[Range<u64>]) -> Vec<(Range<u64>, u64)> {
    let mut places = BTreeMap::new();
    each(file, |record| {
        if let Record::Load {
            start,
            size,
            pid,
            at: Some(at),
            ..
        } = record
        {
            let range = start..start.saturating_add(size);
            if pid == of && ranges.contains(&range) {
                places.insert((range.start, range.end), at);
            }
        }
        true
    });
    let place = |((start, end), at)| (start..end, at);
    places.into_iter().map(place).collect()
}

/// Calls `visit` for each record until it returns `false` or the file is invalid.
fn each(mut file: &File, visit: impl FnMut(Record) -> bool) -> Option<()> {
    file.seek(SeekFrom::Start(0)).ok()?;
    walk(
        BufReader::with_capacity(128 << 10, file.take(MAX_FILE_BYTES)),
        visit,
    )
}

fn walk(mut dump: impl Read, mut visit: impl FnMut(Record) -> bool) -> Option<()> {
    let magic = array::<4>(&mut dump)?;
    let order = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
        (MAGIC, _) => Order::Little,
        (_, MAGIC) => Order::Big,
        _ => return None,
    };
    let _version = order.word(array(&mut dump)?);
    let header = order.word(array(&mut dump)?);
    skip(&mut dump, u64::from(header.checked_sub(12)?))?;
    let mut end = u64::from(header);
    loop {
        let kind = order.word(array(&mut dump)?);
        let size = order.word(array(&mut dump)?);
        skip(&mut dump, 8)?;
        end += u64::from(size);
        let size = size.checked_sub(PREFIX_BYTES)?;
        let mut body = (&mut dump).take(u64::from(size));
        let record = match kind {
            CODE_LOAD if size >= LOAD_BYTES => load(order, &mut body, end)?,
            CODE_MOVE if size >= MOVE_BYTES => moved(order, &mut body)?,
            _ => Record::Other,
        };
        let rest = body.limit();
        skip(&mut dump, rest)?;
        if !visit(record) {
            return None;
        }
    }
}

/// `end`: where in the file the record does, as does the code.
fn load(order: Order, body: &mut Take<impl Read>, end: u64) -> Option<Record> {
    let pid = order.word(array(body)?);
    // Skips the thread, and a duplicate of the address.
    skip(body, 12)?;
    let start = order.double(array(body)?);
    let size = order.double(array(body)?);
    let number = order.double(array(body)?);
    let mut name = Vec::new();
    let mut byte = [0];
    // Reads come from a buffer, so a byte at a time is fine.
    while name.len() < MAX_NAME_BYTES && body.read(&mut byte).ok()? == 1 && byte[0] != 0 {
        name.push(byte[0]);
    }
    if name.is_empty() {
        return Some(Record::Other);
    }
    Some(Record::Load {
        start,
        size,
        number,
        name: name.into(),
        pid,
        at: (size <= body.limit()).then(|| end - size),
    })
}

fn moved(order: Order, body: &mut impl Read) -> Option<Record> {
    // As above, with the old address.
    skip(body, 24)?;
    Some(Record::Move {
        start: order.double(array(body)?),
        size: order.double(array(body)?),
        number: order.double(array(body)?),
    })
}

fn array<const N: usize>(from: &mut impl Read) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn skip(from: &mut impl Read, bytes: u64) -> Option<()> {
    let skipped = std::io::copy(&mut from.take(bytes), &mut std::io::sink()).ok()?;
    (skipped == bytes).then_some(())
}

impl Order {
    fn word(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    fn double(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}
