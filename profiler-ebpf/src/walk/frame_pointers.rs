//! Walks a user stack by frame pointers alone.

use crate::{
    platform::{
        loops::{PLAIN_FRAMES, Turn, repeat_anywhere},
        maps::Scratch,
        subprog::subprog,
    },
    walk::{rules, stack_memory::StackMemory},
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{MAX_USER_FRAMES, Rule, StackEnd},
    walk::{Registers, Step, frame_pointer},
};

/// The walk; its few registers need no place in memory.
struct PointerWalk {
    scratch: &'static Scratch,
    registers: Registers,
    /// How many frames there are already.
    before: u32,
}

impl Turn for PointerWalk {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let walk = &self.scratch.walk;
        let index = self.before + index;
        let Some(place) = self.scratch.user.get(1 + black_box(index as usize)) else {
            return ControlFlow::Break(());
        };
        if index >= MAX_USER_FRAMES as u32 {
            return ControlFlow::Break(());
        }
        place.store(self.registers.ip);
        walk.words.store(u64::from(index) + 1);
        match frame_pointer::step(self.registers, &StackMemory(&walk.stack)) {
            Step::Caller(registers) => {
                self.registers = registers;
                ControlFlow::Continue(())
            }
            Step::End(why) => {
                walk.end.store(why as u64);
                ControlFlow::Break(())
            }
        }
    }
}

subprog! {
    /// Walks the stack whose first frame is in the scratch memory.
    pub(crate) fn walk_frame_pointers(cpu_slot: u32) {
        if let Some(scratch) = Scratch::of(cpu_slot) {
            walk(cpu_slot, scratch);
        }
    }
}

#[inline(always)]
fn walk(cpu_slot: u32, scratch: &'static Scratch) {
    let walk = &scratch.walk;
    if walk.is_at_entry() {
        // The function has not made its frame yet.
        scratch.user[1].store(walk.frame().ip);
        walk.words.store(1);
        if let ControlFlow::Break(end) = rules::follow_rule(cpu_slot, Rule::ENTRY) {
            return walk.end.store(end);
        }
    }
    // From memory, so that the verifier treats both ways here as one.
    let before = walk.words.load() as u32;
    let Some(registers) = walk.frame().registers(&StackMemory(&walk.stack)) else {
        return walk.end.store(StackEnd::NoFramePointer as u64);
    };
    let mut walk = PointerWalk {
        scratch,
        registers,
        before,
    };
    // One turn more than there is room for frames, to see whether the stack goes on.
    repeat_anywhere(MAX_USER_FRAMES as u32 + 1, PLAIN_FRAMES, &mut walk);
}
