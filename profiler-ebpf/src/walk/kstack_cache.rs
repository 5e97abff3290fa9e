//! The cache of kernel stacks: a thread that waits where it, or another, has waited before has the same kernel stack, which
//! need not be walked again.
//!
//! In: the words of the running task's kernel stack, from the tracepoint's arguments towards the root. Out:
//! which of the recently walked stacks it is, if any. Never: a stack that the kernel's walker would not have
//! found.
//!
//! For each walked stack the cache stores in which word each return address was found. If the same words hold the same
//! addresses again, it is the same stack: the tracepoint's own frames never change, and the distance to the next return
//! address depends only on the code returned to, which is the same as long as all addresses before are. (This holds for
//! code with frames of known size, which is all code between a system call and the scheduler. The exception is the frame
//! that [`randomize_kstack_offset`] stretches: the entry code returns to a word below the registers it saved, so that word
//! is counted from there.) A return address with a second copy on the stack, left from an earlier call, could be found in
//! the wrong place: such stacks are not cached. Neither are those of preempted threads, which an interrupt may have stopped
//! anywhere.
//!
//! [`randomize_kstack_offset`]: https://docs.kernel.org/admin-guide/kernel-parameters.html

use crate::{
    platform::{
        config::config,
        loops::{Turn, repeat},
        maps::{KERNEL_STACKS, SCRATCH},
        memory,
        subprog::subprog,
        word::Word,
    },
    task,
    walk::kstack_scratch::{CACHED_FRAMES, CACHED_STACKS, KernelStack, KernelStacks, STACK_WORDS},
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{Header, KERNEL_SCRATCH_WORDS, Live, StackEnd, StackPosition},
    intern::Hash,
};

/// In a record's first word, a stack from the cache; not a valid [`Header`].
pub(crate) const KNOWN_STACK: u64 = 1 << 63;

/// Stacks are searched in a set chosen by the system call. The number of sets, a power of two.
const SETS: usize = CACHED_STACKS / WAYS;

/// Stacks in a set. A power of two.
const WAYS: usize = 4;

/// One of so many stacks that were not found is inserted: inserting costs half as much again as walking, and not all stacks
/// come back.
const INSERTED: u32 = 4;

/// The bits of an address of the kernel's that are the same in all of them, in whose place it is noted in
/// which word the address lies.
const COMMON: u64 = 0xffff << 48;

/// In which word the return address to the code that came into the kernel lies, wherever that is.
const ENTRY: u64 = 0;

/// The "word" of an address that lies in none: that of the tracepoint's own frames.
const OWN: u64 = STACK_WORDS as u64 - 1;

/// At most so many frames are the tracepoint's own: the program, and what runs it.
const OWN_FRAMES: usize = 3;

/// Records where the tracepoint's arguments are, on the kernel stack of the running task.
#[inline(always)]
pub(crate) fn begin(arguments: *mut core::ffi::c_void) {
    if let Some(kept) = KERNEL_STACKS.get(task::cpu()) {
        // Through memory, where a pointer becomes a number.
        kept.address.store(arguments as u64);
    }
}

subprog! {
/// Whether the cache has the running task's kernel stack, which is then the [`chosen`] one.
pub(crate) fn lookup_kernel_stack() -> bool {
    let Some(kept) = KERNEL_STACKS.get(task::cpu()) else {
        return false;
    };
    let address = kept.address.load();
    kept.words.store(0);
    let (registers, call) = task::way_in(&kept.address);
    // One word less than lies below the registers: that word is the first.
    let below = registers.wrapping_sub(address).wrapping_sub(8);
    if below > MAX {
        // Another stack, or none.
        return false;
    }
    let words = below.min(STACK_BYTES) / 8;
    if memory::copy_stack(&kept.stack, address, words * 8).is_none() {
        return false;
    }
    let entry: u64 = memory::kernel(registers.wrapping_sub(8));
    kept.stack[ENTRY as usize].store(entry);
    kept.words.store(words);
    let hash = Hash::new(config!(seed)).with(call).with(entry);
    let first = (hash.tag() as usize & (SETS - 1)) * WAYS;
    for way in 0..WAYS {
        let place = first + way;
        if let Some(stack) = kept.known.get(black_box(place))
            && is_this(kept, stack)
        {
            kept.chosen.store(place as u64);
            return true;
        }
    }
    let turn = kept.turn.load().wrapping_add(1);
    kept.turn.store(turn);
    kept.chosen.store(first as u64 + turn % WAYS as u64);
    false
}
}

/// The size of kernel stacks is smaller (`THREAD_SIZE`).
const MAX: u64 = 64 << 10;

/// How much of a stack is looked at; the last word is none.
const STACK_BYTES: u64 = (STACK_WORDS as u64 - 1) * 8;

/// Whether all return addresses are in their words.
#[inline(always)]
fn is_this(kept: &KernelStacks, stack: &KernelStack) -> bool {
    let frames = Header(stack.header.load()).words();
    let words = kept.words.load();
    for (index, noted) in stack.frames.iter().enumerate() {
        if index >= frames {
            return index > 0;
        }
        let noted = noted.load();
        let place = noted >> 48;
        if place == OWN {
            continue;
        }
        let Some(word) = kept.stack.get(black_box(place as usize)) else {
            return false;
        };
        if place >= words || word.load() != noted | COMMON {
            return false;
        }
    }
    true
}

subprog! {
/// Inserts the stack that was not found and was walked into the scratch memory of the CPU slot, if possible.
pub(crate) fn insert_kernel_stack(cpu_slot: u32) {
    let _other_stack = insert(cpu_slot);
}
}

#[inline(always)]
fn insert(cpu_slot: u32) -> Option<()> {
    if !task::random().is_multiple_of(INSERTED) {
        return None;
    }
    let kept = KERNEL_STACKS.get(task::cpu())?;
    let walked = &SCRATCH.get(cpu_slot)?.kernel;
    let header = Header(walked[0].load());
    let frames = header.words();
    if frames > CACHED_FRAMES || header.end() != Some(StackEnd::Root) {
        return None;
    }
    for found in &kept.found {
        found.store(0);
    }
    kept.ambiguous.store(0);
    repeat(STACK_WORDS as u32, &mut Search { kept, walked });
    kept.last.store(0);
    repeat(frames as u32, &mut IndexAddresses { kept, walked });
    // With only the tracepoint's own frames, every stack would match.
    if kept.ambiguous.load() != 0 || kept.last.load() == 0 {
        return None;
    }
    let stack = kept
        .known
        .get(kept.chosen.load() as usize & (CACHED_STACKS - 1))?;
    for (place, found) in stack.frames.iter().zip(&kept.found) {
        place.store(found.load());
    }
    stack.stored.store(0);
    stack.header.store(header.0);
    Some(())
}

/// Stands for the word [`ENTRY`] while words are looked for: zero is "not found".
const FOUND_ENTRY: u64 = OWN;

/// Searches the return addresses of a walked stack, one word of the stack a turn.
struct Search {
    kept: &'static KernelStacks,
    walked: &'static [Word; KERNEL_SCRATCH_WORDS],
}

impl Turn for Search {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let Self { kept, walked } = self;
        if u64::from(index) >= kept.words.load() {
            return ControlFlow::Break(());
        }
        let Some(word) = kept.stack.get(black_box(index as usize)) else {
            return ControlFlow::Break(());
        };
        let word = word.load();
        if word < COMMON {
            return ControlFlow::Continue(());
        }
        let place = if u64::from(index) == ENTRY {
            FOUND_ENTRY
        } else {
            u64::from(index)
        };
        for (found, address) in kept.found.iter().zip(&walked[1..]) {
            if address.load() == word {
                if found.load() != 0 {
                    kept.ambiguous.store(1);
                }
                found.store(place);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Stores in which word each return address is, one frame a turn. All state between turns is in memory, where the verifier
/// does not track it.
struct IndexAddresses {
    kept: &'static KernelStacks,
    walked: &'static [Word; KERNEL_SCRATCH_WORDS],
}

impl Turn for IndexAddresses {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let Self { kept, walked } = self;
        let index = black_box(index as usize);
        let (Some(found), Some(address)) = (kept.found.get(index), walked.get(1 + index)) else {
            return ControlFlow::Break(());
        };
        let (address, last) = (address.load(), kept.last.load());
        let frames = Header(walked[0].load()).words();
        let place = match found.load() {
            0 if last == 0 && index < OWN_FRAMES => OWN,
            // Behind all others.
            FOUND_ENTRY if index + 1 == frames => ENTRY,
            place if place > last && place < FOUND_ENTRY => {
                kept.last.store(place);
                place
            }
            _ => {
                kept.ambiguous.store(1);
                0
            }
        };
        if address < COMMON {
            kept.ambiguous.store(1);
        }
        found.store(address & !COMMON | place << 48);
        ControlFlow::Continue(())
    }
}

/// The stack that [`lookup_kernel_stack`] last found on this CPU.
#[inline(always)]
pub(crate) fn chosen() -> Option<&'static KernelStack> {
    let kept = KERNEL_STACKS.get(task::cpu())?;
    kept.known
        .get(kept.chosen.load() as usize & (CACHED_STACKS - 1))
}

impl KernelStack {
    /// Its position, if it is stored in the live epoch.
    #[inline(always)]
    pub(crate) fn position(&self, live: Live) -> Option<StackPosition> {
        let stored = self.stored.load();
        (stored >> 32 == epoch(live)).then_some(StackPosition(stored as u32))
    }

    /// Sets its position in the live epoch.
    #[inline(always)]
    pub(crate) fn set_position(&self, live: Live, position: StackPosition) {
        self.stored.store(epoch(live) << 32 | u64::from(position.0));
    }

    /// Copies its frames into a record, as they were walked, and returns their header.
    #[inline(always)]
    pub(crate) fn restore(&self, record: &'static [Word; KERNEL_SCRATCH_WORDS]) -> Header {
        for (place, noted) in record[1..].iter().zip(&self.frames) {
            place.store(noted.load() | COMMON);
        }
        Header(self.header.load())
    }
}

/// Not zero, which is not stored.
#[inline(always)]
fn epoch(live: Live) -> u64 {
    u64::from(live.epoch()) + 1
}
