//! Threads that left the CPU before the recording began, as the kernel half reports them.
//!
//! In: the bytes of its iteration over all tasks. Out: [`Sleeping`] threads. Pure.

use crate::process::ProcessKey;
use crate::profile::raw::{RawFrame, RawStack};
use profiler_common::abi::{
    ASLEEP_WORDS, Asleep, Fallbacks, KeptRegisters, MAX_KERNEL_FRAMES, StackEnd, ThreadState,
    comm_in,
};
use std::mem::offset_of;

const RUNNABLE: u32 = ThreadState::Runnable as u32;
const RAN: u32 = ThreadState::Ran as u32;

/// A thread that is off the CPU; with wall time, also one that is on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleeping {
    /// Its ID in the initial PID namespace.
    pub id: u32,
    /// Its process's ID, as seen in our PID namespace.
    pub tgid: u32,
    /// Its own ID, as seen in our PID namespace.
    pub tid: u32,
    /// See `SampleKey::incarnation`.
    pub incarnation: u64,
    /// The number of its cgroup.
    pub cgroup: u16,
    /// Whether it is blocked, waits for a CPU, or runs.
    pub thread_state: ThreadState,
    /// Its name.
    pub comm: [u8; 16],
    /// How `registers` are to be interpreted.
    pub kept: KeptRegisters,
    /// Instruction, stack and frame pointer and saved register of its user mode.
    pub registers: [u64; 4],
    /// Its kernel stack.
    pub kernel: Option<RawStack>,
}

impl Sleeping {
    /// Its process.
    pub fn process_key(&self) -> ProcessKey {
        ProcessKey::new(self.tgid, self.incarnation)
    }
}

/// All threads that the bytes describe.
pub(super) fn parse(bytes: &[u8]) -> Vec<Sleeping> {
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().expect("chunks are as long as asked")))
        .collect();
    let mut rest = words.as_slice();
    let mut all = Vec::new();
    while let Some((head, behind)) = rest.split_at_checked(ASLEEP_WORDS) {
        let half = |offset: usize| (head[offset / 8] >> (offset % 8 * 8)) as u32;
        let whole = |offset: usize| head[offset / 8];
        let frames = half(offset_of!(Asleep, frames)) as u16 as usize;
        let Some((addresses, next)) = behind.split_at_checked(frames) else {
            break;
        };
        let comm = offset_of!(Asleep, comm);
        all.push(Sleeping {
            id: half(offset_of!(Asleep, id)),
            tgid: half(offset_of!(Asleep, tgid)),
            tid: half(offset_of!(Asleep, tid)),
            incarnation: whole(offset_of!(Asleep, incarnation)),
            cgroup: half(offset_of!(Asleep, cgroup)) as u16,
            thread_state: match half(offset_of!(Asleep, thread_state)) {
                RUNNABLE => ThreadState::Runnable,
                RAN => ThreadState::Ran,
                _ => ThreadState::Blocked,
            },
            comm: comm_in([whole(comm), whole(comm + 8)]),
            kept: match half(offset_of!(Asleep, kept)) {
                1 => KeptRegisters::Native,
                2 => KeptRegisters::Compat,
                _ => KeptRegisters::None,
            },
            registers: [
                whole(offset_of!(Asleep, ip)),
                whole(offset_of!(Asleep, sp)),
                whole(offset_of!(Asleep, fp)),
                whole(offset_of!(Asleep, saved)),
            ],
            kernel: (!addresses.is_empty()).then(|| RawStack {
                frames: RawFrame::of_words(addresses),
                fallbacks: Fallbacks::NONE,
                check: 0,
                end: if frames == MAX_KERNEL_FRAMES {
                    StackEnd::Truncated
                } else {
                    StackEnd::Root
                },
            }),
        });
        rest = next;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u32, frames: &[u64]) -> Vec<u8> {
        let pair = |low: u64, high: u64| low | high << 32;
        let mut words = vec![
            pair(u64::from(id), frames.len() as u64),
            pair(7, 8),
            99,
            pair(2, 1),
            0x1000,
            0x2000,
            0x3000,
            0x4000,
            u64::from_ne_bytes(*b"some nam"),
            u64::from_ne_bytes(*b"e\0\0\0\0\0\0\0"),
        ];
        words.extend(frames);
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn every_record_is_read_as_it_was_written() {
        let bytes = [record(5, &[1, 2, 3]), record(6, &[])].concat();
        let all = parse(&bytes);
        assert_eq!(all.len(), 2);
        let first = &all[0];
        assert_eq!(
            (first.id, first.tgid, first.tid, first.incarnation),
            (5, 7, 8, 99)
        );
        assert_eq!(
            (first.thread_state, first.kept),
            (ThreadState::Runnable, KeptRegisters::Native)
        );
        assert_eq!(first.registers, [0x1000, 0x2000, 0x3000, 0x4000]);
        assert_eq!(&first.comm, b"some name\0\0\0\0\0\0\0");
        let frames = [1, 2, 3].map(RawFrame::Native);
        assert_eq!(*first.kernel.as_ref().unwrap().frames, frames);
        assert_eq!((all[1].id, &all[1].kernel), (6, &None));
    }

    #[test]
    fn truncated_bytes_never_panic() {
        let bytes = record(5, &[1, 2, 3]);
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length]).is_empty());
        }
    }
}
