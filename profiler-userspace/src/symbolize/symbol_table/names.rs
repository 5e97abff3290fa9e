//! Reads symbols' names.
//!
//! In: an open file, where its string table is, and which names are wanted. Out: for each function the name
//! to show. Reads only wanted names, those close to each other together. Never trusts that a name ends.

use super::Candidate;
use crate::object::read_into;
use rustix::fs::Advice;
use rustix::io::{ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::ops::Range;

/// The longest name read, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 16 << 10;

/// How much of a name is read at first, in bytes; nearly all fit.
const FIRST_BYTES: usize = 256;

/// How far apart names may be that are read together, in bytes: reading the gap takes no longer than another
/// system call.
const GAP_BYTES: u64 = 16 << 10;

/// How much is read at once, in bytes.
const GROUP_BYTES: u64 = 64 << 10;

/// How much all names may take, in bytes; beyond that they are cut. A hundred thousand C++ functions take
/// half of it.
const MAX_NAMES_BYTES: usize = 16 << 20;

/// A wanted name.
struct NameRequest {
    /// Its offset in the string table.
    offset: u32,
    /// The index of its function.
    of: usize,
}

/// The name to show for each function; none if it has none.
pub(super) fn choose(
    file: &File,
    names: &Range<u64>,
    functions: &[Candidate],
) -> Vec<Option<Vec<u8>>> {
    let mut best: Vec<Option<Vec<u8>>> = vec![None; functions.len()];
    let mut wanted: Vec<NameRequest> = Vec::with_capacity(functions.len());
    for (of, function) in functions.iter().enumerate() {
        let offsets = &function.names[..function.aliases];
        wanted.extend(offsets.iter().map(|&offset| NameRequest { offset, of }));
    }
    wanted.sort_unstable_by_key(|wanted| wanted.offset);
    let mut reader = Reader {
        file,
        names,
        buffer: Vec::new(),
        filled: 0,
        read_ahead: false,
    };
    let mut kept_bytes = 0;
    let mut rest = wanted.as_slice();
    while let Some(first) = rest.first() {
        let near = rest
            .windows(2)
            .take_while(|pair| u64::from(pair[1].offset - pair[0].offset) <= GAP_BYTES)
            .take_while(|pair| u64::from(pair[1].offset - first.offset) <= GROUP_BYTES);
        let (group, behind) = rest.split_at(1 + near.count());
        reader.read(group, behind);
        for wanted in group {
            let most = match kept_bytes > MAX_NAMES_BYTES {
                true => FIRST_BYTES,
                false => MAX_NAME_BYTES,
            };
            let Some(name) = reader.name(first.offset, wanted.offset, most) else {
                continue;
            };
            let known = &mut best[wanted.of];
            let old_bytes = known.as_ref().map_or(0, Vec::len);
            if known.as_ref().is_none_or(|known| rank(&name) < rank(known)) {
                kept_bytes = kept_bytes + name.len() - old_bytes;
                *known = Some(name);
            }
        }
        rest = behind;
    }
    best
}

/// The order in which names of one function are preferred. In the vDSO `__vdso_…` comes first, as it does not look
/// like the C library's function; then fewer leading underscores, as callers write it; then the shortest.
fn rank(name: &[u8]) -> (bool, usize, usize, &[u8]) {
    let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
    let is_librarys = !name.starts_with(b"__vdso_");
    (is_librarys, underscores, name.len(), name)
}

/// Reads names in groups that are close to each other.
struct Reader<'a> {
    file: &'a File,
    /// Where the string table is.
    names: &'a Range<u64>,
    /// Bytes that were read last, of which `filled` are valid.
    buffer: Vec<u8>,
    filled: usize,
    /// Whether readahead was requested for all names.
    read_ahead: bool,
}

impl Reader<'_> {
    /// Reads the names of a group.
    fn read(&mut self, group: &[NameRequest], behind: &[NameRequest]) {
        self.filled = 0;
        let Some(part) = self.part(group) else {
            return;
        };
        let wanted = usize::try_from(part.end - part.start).unwrap_or(0);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        if !self.read_ahead {
            let mut into = [IoSliceMut::new(&mut self.buffer[..wanted])];
            let read = preadv2(self.file, &mut into, part.start, ReadWriteFlags::NOWAIT);
            if read == Ok(wanted) {
                self.filled = wanted;
                return;
            }
            self.read_ahead(behind);
        }
        self.filled = read_into(self.file, &mut self.buffer[..wanted], part.start);
    }

    /// The part of the file with a group's names, complete except for long ones.
    fn part(&self, group: &[NameRequest]) -> Option<Range<u64>> {
        let start = |wanted: &NameRequest| self.names.start.checked_add(wanted.offset.into());
        let first = start(group.first()?)?;
        let end = start(group.last()?)?
            .saturating_add(FIRST_BYTES as u64)
            .min(self.names.end);
        (first < end).then_some(first..end)
    }

    /// Asks the system to read these names ahead. They are scattered: in a file that is not cached, each
    /// would be waited for.
    fn read_ahead(&mut self, wanted: &[NameRequest]) {
        self.read_ahead = true;
        let near = |one: &NameRequest, next: &NameRequest| {
            u64::from(next.offset - one.offset) <= GAP_BYTES
        };
        for part in wanted.chunk_by(near).filter_map(|group| self.part(group)) {
            let bytes = NonZeroU64::new(part.end - part.start);
            let _only_slower = rustix::fs::fadvise(self.file, part.start, bytes, Advice::WillNeed);
        }
    }

    /// The NUL-terminated name at `offset`, of the group that begins at `first`, cut at `most` bytes. None if
    /// it is no function's name.
    fn name(&self, first: u32, offset: u32, most: usize) -> Option<Vec<u8>> {
        let read = &self.buffer[..self.filled];
        let bytes = read.get(usize::try_from(offset - first).ok()?..)?;
        let here = &bytes[..bytes.len().min(most)];
        let name = match here.iter().position(|&byte| byte == 0) {
            Some(end) => here[..end].to_vec(),
            None if here.len() == most => here.to_vec(),
            None => self.long_name(offset, most)?,
        };
        // Mapping symbols of the ARM assembler, `$x` and `$d`, are no functions either.
        (!name.is_empty() && name[0] != b'$').then_some(name)
    }

    /// Reads a name that extends beyond its group.
    fn long_name(&self, offset: u32, most: usize) -> Option<Vec<u8>> {
        let start = self.names.start.checked_add(offset.into())?;
        let there = usize::try_from(self.names.end.checked_sub(start)?).unwrap_or(usize::MAX);
        let mut name = vec![0; there.min(most)];
        let read = read_into(self.file, &mut name, start);
        let end = name[..read].iter().position(|&byte| byte == 0);
        name.truncate(end.unwrap_or(read));
        name.shrink_to_fit();
        Some(name)
    }
}
