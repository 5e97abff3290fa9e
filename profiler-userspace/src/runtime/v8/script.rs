//! Lines of scripts: which line a character of a script is in.
//!
//! In: a reference to a `Script`. Out: line numbers. A script's source is read once; V8 counts its lines itself only when somebody
//! asks for a stack trace.

use super::heap::Heap;
use crate::process::ProcessKey;
use foldhash::HashMap;
use memchr::memchr_iter;
use profiler_common::runtime::v8::{SCRIPT_ID, SCRIPT_NAME};
use std::sync::Arc;

/// In a `Script`: its source, and the number of its first line.
const SOURCE: u64 = 8;
const FIRST_LINE: u64 = 24;

/// The longest path, in characters.
const MAX_PATH: usize = 4096;
/// The most bytes of a process's scripts that are read, and of how many lines ends are kept.
const MAX_BYTES: usize = 256 << 20;
const MAX_LINES: usize = 4 << 20;
const PIECE: usize = 1 << 20;

/// Ends of lines of scripts that were read.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Scripts {
    /// Numbers are those of an isolate, of which a process may have several: so the name is needed, too.
    of: HashMap<(ProcessKey, u32, Arc<str>), Ends>,
    lines: usize,
    /// How many bytes were read of each process.
    read: HashMap<ProcessKey, usize>,
}

/// Where lines end, in characters; none if the source could not be read.
type Ends = Option<Arc<[u32]>>;

/// A script.
#[derive(Debug)]
pub(super) struct Script {
    /// Its path or URL; empty if it has none.
    pub(super) name: Arc<str>,
    first_line: u32,
    ends: Ends,
}

impl Script {
    /// The number of the line that has a character; zero if lines are not known.
    pub(super) fn line(&self, character: u32) -> u32 {
        let Some(ends) = &self.ends else { return 0 };
        let before = ends.partition_point(|end| *end < character);
        (before as u32)
            .saturating_add(self.first_line)
            .saturating_add(1)
    }
}

impl Scripts {
    /// A script, by its address. `lines`: whether these are needed; it may have none otherwise.
    pub(super) fn get(
        &mut self,
        heap: &Heap<'_>,
        process: ProcessKey,
        address: u64,
        lines: bool,
    ) -> Option<Script> {
        let script = address | 1;
        let name = heap.field(script, SCRIPT_NAME);
        let name = name.and_then(|name| heap.string(name, MAX_PATH));
        let name: Arc<str> = name.unwrap_or_default().into();
        let key = (process, heap.integer(script, SCRIPT_ID)?, Arc::clone(&name));
        let ends = match self.of.get(&key) {
            Some(known) => known.clone(),
            None if !lines => None,
            None => {
                let source = heap.field(script, SOURCE)?;
                let read = self.read.entry(process).or_default();
                let ends: Ends = ends(heap, source, read).map(Arc::from);
                let count = ends.as_ref().map_or(0, |ends| ends.len());
                if self.lines + count > MAX_LINES {
                    *self = Self {
                        read: std::mem::take(&mut self.read),
                        ..Self::default()
                    };
                }
                self.lines += count;
                self.of.insert(key, ends.clone());
                ends
            }
        };
        Some(Script {
            name,
            first_line: heap.integer(script, FIRST_LINE).unwrap_or(0),
            ends,
        })
    }
}

/// Where the lines of a source end, in characters. `read`: how many bytes were read before, and now.
fn ends(heap: &Heap<'_>, source: u64, read: &mut usize) -> Option<Vec<u32>> {
    let (address, is_narrow, characters) = heap.stored(source)?;
    let width = if is_narrow { 1 } else { 2 };
    let bytes = characters.checked_mul(width)?;
    (bytes <= MAX_BYTES.saturating_sub(*read)).then_some(())?;
    *read += bytes;
    let (mut ends, mut piece) = (Vec::new(), vec![0; PIECE.min(bytes)]);
    for start in (0..bytes).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(bytes - start)];
        heap.memory
            .copy(address.checked_add(start as u64)?, piece)?;
        let first = start / width;
        if is_narrow {
            ends.extend(memchr_iter(b'\n', piece).map(|at| (first + at) as u32));
        } else {
            let units = piece.as_chunks().0.iter().enumerate();
            let breaks = units.filter(|(_, unit)| **unit == [b'\n', 0]);
            ends.extend(breaks.map(|(at, _)| (first + at) as u32));
        }
    }
    Some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_in_lines() {
        let script = |first_line| Script {
            name: "".into(),
            first_line,
            ends: Some([3, 4, 9].into()),
        };
        let lines = [0, 3, 4, 5, 9, 10].map(|character| script(0).line(character));
        assert_eq!(lines, [1, 1, 2, 3, 3, 4]);
        assert_eq!(script(7).line(5), 10);
    }
}
