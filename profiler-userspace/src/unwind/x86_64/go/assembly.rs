//! Rows for Go's assembly, by reading it.
//!
//! In: a function's machine code, and the sizes of its frame. Out: its rules. Sizes follow pushes and pops, and nothing
//! else that is done to the stack pointer. Where a function does more, as those do that change to another stack, its own
//! frame is found by the frame pointer, as soon as it has set that up. See `runtime/asm_amd64.s` of each version of Go.

use super::{SAVED, by_pointer, frame};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpKind, Register,
};
use profiler_common::abi::{Rule, Slot};

/// Frame that a walk goes on with from a function that has changed to another stack, if its frame
/// pointer is not its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::unwind) enum Switch {
    /// Nothing: walks end.
    Root,
    /// Its caller's frame, by frame pointer. Before Go 1.21 these functions kept no record of their own; the caller itself
    /// is missed.
    Pointer,
    /// That is not known.
    Unknown,
}

/// Which stack the stack pointer is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stack {
    /// The function's own.
    Own,
    /// Another, or its own aligned.
    Other,
    /// As before, and a function was called there: the next change leads back.
    Called,
}

/// State before an instruction.
struct State {
    stack: Stack,
    /// Where the caller's frame pointer is saved, from the CFA.
    saved: Option<i64>,
    /// Whether the frame pointer is still the caller's.
    is_caller_s: bool,
    /// Whether the frame pointer leads to the function's frame.
    is_framed: bool,
    /// Whether it ever did.
    was_framed: bool,
}

/// The rules of a function, each with the offset from which it holds. `moves_stack` tells whether sizes are all that is
/// done to the stack pointer.
pub(in crate::unwind) fn rules(
    code: &[u8],
    sizes: &[(u64, i32)],
    moves_stack: bool,
    switch: Switch,
) -> Vec<(u32, Rule)> {
    let mut rules = Vec::new();
    let mut state = State {
        stack: Stack::Own,
        saved: None,
        is_caller_s: true,
        is_framed: false,
        was_framed: false,
    };
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut instruction = Instruction::default();
    let mut sizes = Sizes(sizes);
    while decoder.can_decode() {
        let at = decoder.ip();
        let (Ok(after), Some(size)) = (u32::try_from(at), sizes.at(at)) else {
            break;
        };
        rules.push((after, state.rule(size, moves_stack, switch)));
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            // Data, or the end of what was read: from here on nothing is followed.
            let rest = if moves_stack {
                Rule::MISSING
            } else {
                frame(size, Slot::LOST)
            };
            rules.push((after, rest));
            rules.extend(sizes.rest().map(|(at, size)| match moves_stack {
                true => (at, Rule::MISSING),
                false => (at, frame(size, Slot::LOST)),
            }));
            break;
        }
        let next = sizes.at(decoder.ip()).unwrap_or(size);
        state.follow(&instruction, &mut factory, size, next);
    }
    rules
}

impl State {
    fn rule(&self, size: i32, moves_stack: bool, switch: Switch) -> Rule {
        match (self.stack, switch) {
            (Stack::Other | Stack::Called, Switch::Root) => Rule::ROOT,
            _ if moves_stack && self.is_framed => by_pointer(),
            (Stack::Own, _) => frame(size, self.slot(size)),
            (_, Switch::Pointer) if self.is_caller_s => by_pointer(),
            _ => Rule::MISSING,
        }
    }

    /// Where the caller's frame pointer is.
    fn slot(&self, size: i32) -> Slot {
        // Words below the stack pointer are gone.
        let is_there = |saved: &i64| *saved >= -8 - i64::from(size);
        match self.saved.filter(is_there) {
            Some(saved) => Slot::at(saved).unwrap_or(Slot::LOST),
            None if self.is_caller_s => Slot::SAME,
            None => Slot::LOST,
        }
    }

    /// Applies an instruction; `size` is that of the frame before it, `next` that behind.
    fn follow(
        &mut self,
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
        size: i32,
        next: i32,
    ) {
        // The offset of the stack pointer from the CFA.
        let top = -8 - i64::from(size);
        if self.is_caller_s && self.stack == Stack::Own {
            self.saved = saves_pointer(instruction, top).or(self.saved);
        }
        let does_to_stack = writes(instruction, factory, Register::RSP)
            && !instruction.is_stack_instruction()
            && grown(instruction) != Some(i64::from(next) - i64::from(size));
        self.stack = match (self.stack, instruction.flow_control()) {
            // Code behind a return is reached by a jump from the function's middle.
            (_, FlowControl::Return) => Stack::Own,
            (Stack::Other, FlowControl::Call | FlowControl::IndirectCall) => Stack::Called,
            (Stack::Called, _) if does_to_stack => Stack::Own,
            _ if does_to_stack => Stack::Other,
            (stack, _) => stack,
        };
        let moves = instruction.flow_control() == FlowControl::Next
            && writes(instruction, factory, Register::RSP);
        if size > 0 && next == 0 && !moves {
            // Code behind this is reached by a jump from before the frame was made: the way to
            // `runtime.morestack`.
            self.is_framed = false;
            self.is_caller_s = true;
        } else if instruction.flow_control() == FlowControl::Return && next > 0 {
            self.is_framed = self.was_framed;
            self.is_caller_s &= !self.is_framed;
        } else if writes(instruction, factory, Register::RBP) {
            let is_saved = |place| self.saved.is_some() && place == self.saved;
            self.is_caller_s = is_saved(loaded(instruction, top));
            self.is_framed = is_saved(Some(SAVED)) && pointed(instruction, top) == Some(SAVED);
            self.was_framed |= self.is_framed;
        }
    }
}

/// Where an instruction saves the frame pointer, from the CFA.
fn saves_pointer(instruction: &Instruction, top: i64) -> Option<i64> {
    match (instruction.code(), instruction.op0_register()) {
        (Code::Push_r64, Register::RBP) => Some(top - 8),
        (Code::Mov_rm64_r64, _) if instruction.op1_register() == Register::RBP => {
            on_stack(instruction).map(|into| top + into)
        }
        _ => None,
    }
}

/// From where an instruction loads the frame pointer, which it writes.
fn loaded(instruction: &Instruction, top: i64) -> Option<i64> {
    match instruction.code() {
        Code::Pop_r64 => Some(top),
        Code::Mov_r64_rm64 => on_stack(instruction).map(|into| top + into),
        _ => None,
    }
}

/// The place on the stack that the frame pointer points to after an instruction, which writes it.
fn pointed(instruction: &Instruction, top: i64) -> Option<i64> {
    match instruction.code() {
        Code::Mov_rm64_r64 | Code::Mov_r64_rm64 => {
            (instruction.op1_register() == Register::RSP).then_some(top)
        }
        Code::Lea_r64_m => on_stack(instruction).map(|into| top + into),
        _ => None,
    }
}

/// The distance from the stack pointer of an operand in memory.
fn on_stack(instruction: &Instruction) -> Option<i64> {
    let is_there = (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory)
        && instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None;
    is_there.then(|| instruction.memory_displacement64().cast_signed())
}

/// How much larger the frame is after an instruction that changes the stack pointer by a constant.
fn grown(instruction: &Instruction) -> Option<i64> {
    let immediate = || {
        let kind = instruction.op1_kind();
        let kinds = [OpKind::Immediate8to64, OpKind::Immediate32to64];
        let bytes = kinds.contains(&kind).then(|| instruction.immediate(1));
        bytes.map(u64::cast_signed)
    };
    match instruction.mnemonic() {
        Mnemonic::Sub => immediate(),
        Mnemonic::Add => immediate().and_then(i64::checked_neg),
        Mnemonic::Lea => on_stack(instruction).and_then(i64::checked_neg),
        _ => None,
    }
}

/// Whether an instruction writes a register or a part of it.
fn writes(
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
    register: Register,
) -> bool {
    let used = factory.info(instruction).used_registers();
    used.iter().any(|used| {
        use iced_x86::OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
        used.register().full_register() == register
            && matches!(used.access(), Write | CondWrite | ReadWrite | ReadCondWrite)
    })
}

/// The sizes of a frame, from one instruction to the next.
struct Sizes<'s>(&'s [(u64, i32)]);

impl Sizes<'_> {
    /// The size at an offset, which must not be less than the last time.
    fn at(&mut self, offset: u64) -> Option<i32> {
        while let [(end, _), rest @ ..] = self.0
            && *end <= offset
        {
            self.0 = rest;
        }
        self.0.first().map(|(_, size)| *size)
    }

    /// The sizes behind the last offset asked for, each with the offset from which it holds.
    fn rest(&self) -> impl Iterator<Item = (u32, i32)> {
        let pairs = self.0.windows(2);
        pairs.filter_map(|pair| match pair {
            [(start, _), (_, size)] => Some((u32::try_from(*start).ok()?, *size)),
            _ => None,
        })
    }
}
