//! The kernel half's events, from bytes.
//!
//! In: records of the ring buffer. Out: [`KernelEvent`]s. Pure but for the reading of the queue itself; a record that
//! makes no sense is none.

use aya::maps::{MapData, RingBuf};
use profiler_common::abi::{CodeKey, MAPPED_WORDS, Mapped, Notice, NoticeKind};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};

/// The bytes of the queue of notices for a machine with so many CPUs: what they can tell at once while user
/// space takes a tenth of a second to come. A power of two.
pub(super) fn queue_bytes(cpus: u32) -> u32 {
    const EACH: u32 = 32 << 10;
    const MOST: u32 = 1 << 20;
    cpus.saturating_mul(EACH)
        .clamp(4 * EACH, MOST)
        .next_power_of_two()
}

/// What the kernel half reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent {
    /// A process was sampled that had not been seen before, or not lately.
    NewProcess(ProcessOf),
    /// A live side has become half full.
    HalfFull,
    /// A walk of this process came to code without a table, at this address.
    UnknownCode(ProcessOf, u64),
    /// What lies at an address that was sampled.
    Mapping(MappingEvent),
}

/// The process that an event is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessOf {
    /// Its ID, as seen in our PID namespace.
    pub tgid: u32,
    /// Its incarnation; see `profiler_common::abi::SampleKey`.
    pub incarnation: u64,
}

/// An executable mapping, as it was when an address in it was sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingEvent {
    /// Whose.
    pub process: ProcessOf,
    /// Where it lay.
    pub range: Range<u64>,
    /// The offset of its first byte in the file; zero if there is no file.
    pub offset: u64,
    /// What the kernel half knows the file by.
    pub code: CodeKey,
    /// Where the file lies: its names from the last to the first. Empty if that was reported before.
    pub names: Vec<Box<[u8]>>,
}

/// The queue of what the kernel half reports.
pub(super) struct Events {
    queue: RingBuf<MapData>,
}

impl Events {
    /// The events in this ring buffer.
    pub(super) fn new(queue: RingBuf<MapData>) -> Self {
        Self { queue }
    }

    /// The next event, if there is one.
    pub(super) fn next(&mut self) -> Option<KernelEvent> {
        loop {
            let record = self.queue.next()?;
            if let Some(event) = parse(&record) {
                return Some(event);
            }
        }
    }

    /// A file descriptor that becomes readable when there is an event.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

fn parse(record: &[u8]) -> Option<KernelEvent> {
    let word = |place: usize| -> Option<u64> {
        let bytes = record.get(place * 8..place * 8 + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let first = word(0)?;
    let notice = Notice {
        kind: first as u32,
        tgid: (first >> 32) as u32,
        incarnation: word(1)?,
        address: word(2)?,
    };
    let process = ProcessOf {
        tgid: notice.tgid,
        incarnation: notice.incarnation,
    };
    match NoticeKind::from_code(notice.kind)? {
        NoticeKind::NewProcess => return Some(KernelEvent::NewProcess(process)),
        NoticeKind::HalfFull => return Some(KernelEvent::HalfFull),
        NoticeKind::UnknownCode => {
            return Some(KernelEvent::UnknownCode(process, notice.address));
        }
        NoticeKind::Mapped => {}
    }
    let mapped = Mapped {
        notice,
        end: word(3)?,
        offset: word(4)?,
        code: CodeKey {
            device: word(5)?,
            inode: word(6)?,
            modified: word(7)?,
        },
    };
    let path = record.get(MAPPED_WORDS * 8..)?;
    let names = path.split_inclusive(|&byte| byte == 0);
    let names = names.filter_map(|name| Some(name.strip_suffix(b"\0")?.into()));
    (notice.address < mapped.end).then(|| {
        KernelEvent::Mapping(MappingEvent {
            process,
            range: notice.address..mapped.end,
            offset: mapped.offset,
            code: mapped.code,
            names: names.collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(words: &[u64], path: &[u8]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        words.chain(path.iter().copied()).collect()
    }

    #[test]
    fn a_mapping_is_read_with_its_path() {
        let words = [3 | 7 << 32, 11, 0x1000, 0x3000, 0x2000, 5, 6, 8];
        let Some(KernelEvent::Mapping(seen)) = parse(&record(&words, b"cat\0bin\0cut short"))
        else {
            panic!()
        };
        assert_eq!((seen.process.tgid, seen.process.incarnation), (7, 11));
        assert_eq!((seen.range, seen.offset), (0x1000..0x3000, 0x2000));
        assert_eq!(seen.code.inode, 6);
        assert_eq!(
            seen.names,
            [b"cat".as_slice().into(), b"bin".as_slice().into()]
        );
    }

    #[test]
    fn an_event_is_read_and_nonsense_is_rejected() {
        assert_eq!(parse(&record(&[1, 0, 0], b"")), Some(KernelEvent::HalfFull));
        let process = ProcessOf {
            tgid: 7,
            incarnation: 11,
        };
        assert_eq!(
            parse(&record(&[2 | 7 << 32, 11, 0x1000], b"")),
            Some(KernelEvent::UnknownCode(process, 0x1000))
        );
        assert_eq!(parse(&record(&[9, 0, 0], b"")), None);
        assert_eq!(parse(&record(&[3, 0, 0], b"")), None);
        assert_eq!(parse(&record(&[3, 0, 9, 9, 0, 0, 0, 0], b"")), None);
        assert_eq!(parse(b"short"), None);
    }

    #[test]
    fn a_queue_size_is_valid_for_the_kernel() {
        for cpus in [1, 2, 5, 64, 300, 1 << 20] {
            let bytes = queue_bytes(cpus);
            assert!(bytes.is_power_of_two() && (128 << 10..=1 << 20).contains(&bytes));
        }
    }
}
