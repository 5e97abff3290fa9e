//! Driving the walk: the loop around `profiler_common::walk`'s steps, and the kernel's own walker.
#![expect(unsafe_code, reason = "the kernel's walker takes a raw pointer")]

use crate::{
    memory::UserMemory,
    repeat::{Turn, repeat},
    stack::Sealed,
    task::UserRegisters,
    word::Word,
};
use aya_ebpf::{EbpfContext as _, helpers::generated::bpf_get_stack, programs::PerfEventContext};
use core::ops::ControlFlow;
use profiler_common::{
    abi::{KERNEL_SCRATCH_WORDS, MAX_KERNEL_FRAMES, MAX_USER_FRAMES, StackEnd, USER_SCRATCH_WORDS},
    walk::{Registers, Step, frame_pointer},
};

/// A user stack being walked.
struct UserWalk {
    registers: Registers,
    record: &'static [Word; USER_SCRATCH_WORDS],
    frames: u32,
    end: StackEnd,
}

impl Turn for UserWalk {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        // The limit is the loop's too; said here, the verifier knows it.
        let Some(place) = self
            .record
            .get(index as usize + 1)
            .filter(|_| index < MAX_USER_FRAMES as u32)
        else {
            self.end = StackEnd::Truncated;
            return ControlFlow::Break(());
        };
        place.store(self.registers.ip);
        self.frames = index + 1;
        match frame_pointer::step(self.registers, &UserMemory) {
            Step::Caller(caller) => {
                self.registers = caller;
                ControlFlow::Continue(())
            }
            Step::End(end) => {
                self.end = end;
                ControlFlow::Break(())
            }
        }
    }
}

/// Walks the user stack that begins at `registers` into `record`; none for a kernel thread.
#[inline(always)]
pub(crate) fn user(
    registers: UserRegisters,
    record: &'static [Word; USER_SCRATCH_WORDS],
    seed: u64,
) -> Option<Sealed<USER_SCRATCH_WORDS>> {
    let (registers, turns) = match registers {
        UserRegisters::None => return None,
        // The first frame is known; how 32-bit frames lie is not our business.
        UserRegisters::Compat(registers) => (registers, 0),
        // One turn more than there is room for frames, which notes that the stack goes on.
        UserRegisters::Native(registers) => (registers, MAX_USER_FRAMES as u32 + 1),
    };
    let mut walk = UserWalk {
        registers,
        record,
        frames: 0,
        end: StackEnd::Root,
    };
    if turns == 0 {
        record[1].store(walk.registers.ip);
        walk.frames = 1;
        walk.end = StackEnd::Compat;
    } else {
        repeat(turns, &mut walk);
    }
    Sealed::new(record, walk.frames, walk.end, seed)
}

/// Has the kernel walk its own stack into `record`; none if there is none, as in user mode.
#[inline(always)]
pub(crate) fn kernel(
    ctx: &PerfEventContext,
    record: &'static [Word; KERNEL_SCRATCH_WORDS],
    seed: u64,
) -> Option<Sealed<KERNEL_SCRATCH_WORDS>> {
    const BYTES: usize = MAX_KERNEL_FRAMES * 8;
    // SAFETY: the record has room for the header and as many words as said.
    let bytes = unsafe { bpf_get_stack(ctx.as_ptr(), record[1].as_ptr().cast(), BYTES as u32, 0) };
    if bytes <= 0 || bytes > BYTES as i64 {
        return None;
    }
    let frames = bytes as u32 / 8;
    let end = if frames as usize == MAX_KERNEL_FRAMES {
        StackEnd::Truncated
    } else {
        StackEnd::Root
    };
    Sealed::new(record, frames, end, seed)
}
