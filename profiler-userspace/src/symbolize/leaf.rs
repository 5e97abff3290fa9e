//! What a firing was, where that is known by a number and not by a place.
//!
//! In: a stack that may begin with a leaf word. Out: frames' names. Names of files come from the target, and may
//! be any bytes.

use super::demangle::visible;
use crate::profile::raw::RawStack;
use profiler_common::abi::{LeafKind, LeafWord};
use syscalls::{x86, x86_64};

/// How many of a stack's addresses are none, but tell what was sampled.
pub(super) fn words(stack: &RawStack) -> usize {
    leaf(stack).map_or(0, |leaf| (1 + leaf.name_words()).min(stack.addresses.len()))
}

fn leaf(stack: &RawStack) -> Option<LeafWord> {
    LeafWord::from_address(*stack.addresses.first()?)
}

/// The names of the frames at a stack's leaf that are no places, the outermost first.
pub(super) fn names(stack: &RawStack) -> impl Iterator<Item = String> {
    let said = leaf(stack).map(what);
    let name: Vec<u8> = stack.addresses[..words(stack)]
        .iter()
        .skip(1)
        .flat_map(|word| word.to_ne_bytes())
        .take_while(|&byte| byte != 0)
        .collect();
    let name = (!name.is_empty()).then(|| format!("[file: {}]", visible(&name)));
    said.into_iter().chain(name)
}

fn what(leaf: LeafWord) -> String {
    let number = leaf.number() as usize;
    match leaf.kind() {
        Some(LeafKind::Call) => match x86_64::Sysno::new(number) {
            Some(call) => format!("[{}]", call.name()),
            None => format!("[system call {number}]"),
        },
        Some(LeafKind::CompatCall) => match x86::Sysno::new(number) {
            Some(call) => format!("[{}, 32-bit]", call.name()),
            None => format!("[system call {number}, 32-bit]"),
        },
        Some(LeafKind::KernelLock) => format!("[{}]", lock(leaf.number())),
        Some(LeafKind::UserLock) => "[futex]".to_owned(),
        Some(LeafKind::PageIn) => "[page-in]".to_owned(),
        None => "[not known]".to_owned(),
    }
}

/// What kind of lock a thread waits for, from the flags that the kernel tells (`LCB_F_…` in
/// `include/trace/events/lock.h`).
fn lock(flags: u32) -> &'static str {
    const SPIN: u32 = 1;
    const READ: u32 = 2;
    const WRITE: u32 = 4;
    const REALTIME: u32 = 8;
    const PER_CPU: u32 = 16;
    const MUTEX: u32 = 32;
    let has = |flag| flags & flag != 0;
    let (read, write) = (has(READ), has(WRITE));
    match () {
        () if has(MUTEX) => "mutex",
        () if has(REALTIME) && read => "rt lock: read",
        () if has(REALTIME) && write => "rt lock: write",
        () if has(REALTIME) => "rt mutex",
        () if has(PER_CPU) && read => "percpu rwsem: read",
        () if has(PER_CPU) => "percpu rwsem: write",
        () if has(SPIN) && read => "rwlock: read",
        () if has(SPIN) && write => "rwlock: write",
        () if has(SPIN) => "spinlock",
        () if read => "rwsem: read",
        () if write => "rwsem: write",
        () => "semaphore",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_common::abi::StackEnd;

    fn said(leaf: LeafWord, others: &[u64]) -> (Vec<String>, usize) {
        let stack = RawStack {
            addresses: [&[leaf.0], others].concat().into(),
            end: StackEnd::Root,
            fp_fallback: false,
        };
        (names(&stack).collect(), words(&stack))
    }

    #[test]
    fn calls_and_locks_have_the_names_that_people_know() {
        for (kind, number, name) in [
            (LeafKind::Call, 0, "[read]"),
            (LeafKind::Call, 202, "[futex]"),
            (LeafKind::Call, 9999, "[system call 9999]"),
            (LeafKind::CompatCall, 3, "[read, 32-bit]"),
            (LeafKind::KernelLock, 1, "[spinlock]"),
            (LeafKind::KernelLock, 33, "[mutex]"),
            (LeafKind::KernelLock, 2, "[rwsem: read]"),
            (LeafKind::UserLock, 202, "[futex]"),
            (LeafKind::PageIn, 0, "[page-in]"),
        ] {
            assert_eq!(
                said(LeafWord::new(kind, number), &[]),
                (vec![name.to_owned()], 1)
            );
        }
    }

    #[test]
    fn a_files_name_is_a_frame_of_its_own_whatever_it_holds() {
        let read = LeafWord::new(LeafKind::Call, 0).named(2);
        let word = |text: &[u8; 8]| u64::from_ne_bytes(*text);
        let kernel = 0xffff_ffff_8100_0000;
        let (names, words) = said(
            read,
            &[word(b"a\n\xffcdefg"), word(b"h\0\0\0\0\0\0\0"), kernel],
        );
        assert_eq!((names.len(), words, &*names[0]), (2, 3, "[read]"));
        assert!(names[1].ends_with("cdefgh]"), "{names:?}");
        // Fewer words than were promised.
        assert_eq!(said(read, &[]), (vec!["[read]".to_owned()], 1));
    }

    #[test]
    fn a_stack_of_places_has_nothing_to_say() {
        let stack = RawStack {
            addresses: [0xffff_ffff_8100_0000, 8].into(),
            end: StackEnd::Root,
            fp_fallback: false,
        };
        assert_eq!((names(&stack).count(), words(&stack)), (0, 0));
    }
}
