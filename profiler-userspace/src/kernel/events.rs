//! The kernel half's events, from bytes.
//!
//! In: records of the ring buffer. Out: [`KernelEvent`]s. Pure but for the reading of the queue itself; a record that
//! makes no sense is none.

use crate::process::{CopiedText, FunctionEvent, MappingEvent, ProcessKey};
use aya::maps::{MapData, RingBuf};
use profiler_common::abi::{
    CodeKey, CopiedString, FUNCTION_EVENT_WORDS, FrameWord, KernelEventKind, KernelEventRecord,
    MAPPING_EVENT_WORDS, MappingEventRecord, MappingKey, comm_in,
};
use std::os::fd::{AsFd as _, BorrowedFd};

/// The bytes of the queue of events for a machine with so many CPUs: what they can report while user space takes a
/// tenth of a second to read it. A power of two.
pub(super) fn queue_bytes(cpus: u32) -> u32 {
    const EACH: u32 = 32 << 10;
    const MAX: u32 = 1 << 20;
    cpus.saturating_mul(EACH)
        .clamp(4 * EACH, MAX)
        .next_power_of_two()
}

/// A kernel event: a report of the kernel half.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent {
    /// A process was sampled that had not been seen before, or not lately.
    NewProcess(ProcessKey),
    /// A live side has become half full.
    HalfFull,
    /// A walk of this process came to code without a table, at this address.
    UnknownCode(ProcessKey, u64),
    /// A walk of this process came to an address in code that the table of its file leaves out.
    UndescribedCode(ProcessKey, u64),
    /// A walk of this process came to an address in code that its file describes, where that was not read yet.
    UnreadCode(ProcessKey, u64),
    /// The mapping at a sampled address.
    Mapping(MappingEvent),
    /// Name and place of an interpreter's function that was sampled.
    Function(FunctionEvent),
    /// A cgroup that was sampled.
    Cgroup(CgroupEvent),
}

/// A cgroup, when it was first sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupEvent {
    /// Its number.
    pub number: u16,
    /// Its ID.
    pub id: u64,
    /// Names from its directory up to the root's, which is empty.
    pub names: Vec<Box<[u8]>>,
    /// Whether some of them are missing.
    pub is_cut: bool,
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
    let event = KernelEventRecord {
        kind: first as u32,
        tgid: (first >> 32) as u32,
        incarnation: word(1)?,
        address: word(2)?,
    };
    let process_key = ProcessKey::new(event.tgid, event.incarnation);
    match KernelEventKind::from_code(event.kind)? {
        KernelEventKind::NewProcess => return Some(KernelEvent::NewProcess(process_key)),
        KernelEventKind::HalfFull => return Some(KernelEvent::HalfFull),
        KernelEventKind::UnknownCode => {
            return Some(KernelEvent::UnknownCode(process_key, event.address));
        }
        KernelEventKind::UndescribedCode => {
            return Some(KernelEvent::UndescribedCode(process_key, event.address));
        }
        KernelEventKind::UnreadCode => {
            return Some(KernelEvent::UnreadCode(process_key, event.address));
        }
        KernelEventKind::Function => {
            return function(&event, process_key, record, word).map(KernelEvent::Function);
        }
        KernelEventKind::Cgroup => {
            return Some(KernelEvent::Cgroup(CgroupEvent {
                number: u16::try_from(event.tgid).ok()?,
                id: event.incarnation,
                names: names(record)?,
                is_cut: event.address != 0,
            }));
        }
        KernelEventKind::Mapping => {}
    }
    let mapped = MappingEventRecord {
        event,
        end: word(3)?,
        offset: word(4)?,
        code: CodeKey {
            device: word(5)?,
            inode: word(6)?,
            modified: word(7)?,
        },
        mapping_key: MappingKey(word(8)?),
        leader: comm_in([word(9)?, word(10)?]),
    };
    let names = names(record)?;
    (event.address < mapped.end).then_some(KernelEvent::Mapping(MappingEvent {
        process_key,
        range: event.address..mapped.end,
        offset: mapped.offset,
        code: mapped.code,
        mapping_key: mapped.mapping_key,
        leader: mapped.leader,
        names,
    }))
}

/// The names behind the record of a mapping or a cgroup, without one that is cut short.
fn names(record: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let names = record.get(MAPPING_EVENT_WORDS * 8..)?;
    let names = names.split_inclusive(|&byte| byte == 0);
    Some(
        names
            .filter_map(|name| Some(name.strip_suffix(b"\0")?.into()))
            .collect(),
    )
}

/// The fields of a [`FunctionEventRecord`](profiler_common::abi::FunctionEventRecord), and its strings.
fn function(
    event: &KernelEventRecord,
    process_key: ProcessKey,
    record: &[u8],
    word: impl Fn(usize) -> Option<u64>,
) -> Option<FunctionEvent> {
    let [bias, extra, who, first, last] = [word(3)?, word(4)?, word(5)?, word(6)?, word(7)?];
    let mut rest = record.get(FUNCTION_EVENT_WORDS * 8..)?;
    let mut next = |copied: u64| -> Option<CopiedText> {
        let copied = CopiedString(copied as u32);
        let (bytes, behind) = rest.split_at_checked(copied.bytes())?;
        rest = behind;
        Some(CopiedText {
            bytes: bytes.into(),
            encoding: copied.encoding(),
            lacks_beginning: copied.0 & CopiedString::NO_BEGINNING != 0,
            lacks_end: copied.0 & CopiedString::NO_END != 0,
        })
    };
    Some(FunctionEvent {
        process_key,
        function: FrameWord(event.address),
        check: who as u32,
        descriptor: (who >> 32) as u32,
        bias,
        extra,
        first_line: first as u32,
        owner: next(first >> 32)?,
        name: next(last)?,
        file: next(last >> 32)?,
        caller: Some(FrameWord(word(8)?)).filter(|caller| caller.0 != 0),
        call: FrameWord(word(9)?),
        position: FrameWord(word(10)?),
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
        let words = [
            3 | 7 << 32,
            11,
            0x1000,
            0x3000,
            0x2000,
            5,
            6,
            8,
            9,
            u64::from_ne_bytes(*b"a leader"),
            0,
        ];
        let Some(KernelEvent::Mapping(seen)) = parse(&record(&words, b"cat\0bin\0cut short"))
        else {
            panic!()
        };
        assert_eq!(
            (seen.process_key.tgid, seen.process_key.incarnation),
            (7, 11)
        );
        assert_eq!((seen.range, seen.offset), (0x1000..0x3000, 0x2000));
        assert_eq!((seen.code.inode, seen.mapping_key), (6, MappingKey(9)));
        assert_eq!(&seen.leader, b"a leader\0\0\0\0\0\0\0\0");
        assert_eq!(
            seen.names,
            [b"cat".as_slice().into(), b"bin".as_slice().into()]
        );
    }

    #[test]
    fn a_function_is_read_with_its_strings() {
        let string = |bytes, missing| u64::from(CopiedString::new(bytes, 1, missing).0);
        let words = [
            4 | 7 << 32,
            11,
            0x40 << 56 | 0x1000,
            0x5000,
            0,
            0xabc | 3 << 32,
            12 | string(0, 0) << 32,
            string(4, 0) | string(2, CopiedString::NO_BEGINNING) << 32,
            0x40 << 56 | 0x2000,
            0x60 << 56 | 17,
            0x60 << 56 | 18,
        ];
        let Some(KernelEvent::Function(seen)) = parse(&record(&words, b"workpy")) else {
            panic!()
        };
        assert_eq!((seen.check, seen.descriptor, seen.bias), (0xabc, 3, 0x5000));
        assert_eq!(seen.caller.map(|it| it.function_address()), Some(0x2000));
        assert_eq!((seen.call.number(), seen.position.number()), (17, 18));
        assert_eq!((seen.first_line, &*seen.owner.bytes), (12, &b""[..]));
        assert_eq!(
            (&*seen.name.bytes, &*seen.file.bytes),
            (&b"work"[..], &b"py"[..])
        );
        assert!(seen.file.lacks_beginning && !seen.file.lacks_end);
        // Fewer bytes than the strings have.
        assert_eq!(parse(&record(&words, b"work")), None);
    }

    #[test]
    fn a_cgroup_is_read_with_its_path() {
        let words = [7 | 5 << 32, 4711, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let Some(KernelEvent::Cgroup(seen)) = parse(&record(&words, b"b\0a\0\0")) else {
            panic!()
        };
        assert_eq!((seen.number, seen.id, seen.is_cut), (5, 4711, false));
        let names: Vec<&[u8]> = seen.names.iter().map(|name| &**name).collect();
        assert_eq!(names, [&b"b"[..], b"a", b""]);
    }

    #[test]
    fn an_event_is_read_and_nonsense_is_rejected() {
        assert_eq!(parse(&record(&[1, 0, 0], b"")), Some(KernelEvent::HalfFull));
        let process_key = ProcessKey::new(7, 11);
        assert_eq!(
            parse(&record(&[2 | 7 << 32, 11, 0x1000], b"")),
            Some(KernelEvent::UnknownCode(process_key, 0x1000))
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
