//! Effects of an instruction on registers and stack.
//!
//! In: a state and an instruction that is no call. Out: the state behind it. Not followed: stores through pointers that are not into
//! the frame, which in a correct program never reach what a function has saved; and where instructions go on.

use super::state::{RBP, RSP, State, Value, moved};
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};

/// Changes `state` as the instruction at place `at` does. Calls are for [`State::after_call`].
pub(super) fn follow(
    state: &mut State,
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
    at: u32,
) {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
            if !writes_counter(instruction) =>
        {
            return;
        }
        _ => {}
    }
    if !moves(state, instruction, at) {
        anything(state, instruction, factory, at);
    }
}

/// `loop` counts in rcx.
fn writes_counter(instruction: &Instruction) -> bool {
    instruction.is_loop() || instruction.is_loopcc()
}

/// Follows the instructions that move known values about; says whether this is one.
fn moves(state: &mut State, instruction: &Instruction, at: u32) -> bool {
    match instruction.code() {
        Code::Push_r64 => {
            let value = operand(state, instruction, 0);
            push(state, value, at);
        }
        Code::Push_rm64 if instruction.op0_kind() == OpKind::Memory => {
            let value = operand(state, instruction, 0);
            push(state, value, at);
        }
        Code::Pushq_imm8 | Code::Pushq_imm32 => push(state, Value::Unknown, at),
        Code::Pop_r64 => pop(state, number(instruction.op0_register()), at),
        Code::Leaveq => {
            state.set(RSP, state.register(RBP), at);
            pop(state, Some(RBP), at);
        }
        Code::Mov_r64_rm64 => set(state, instruction, operand(state, instruction, 1), at),
        Code::Mov_rm64_r64 => {
            let value = operand(state, instruction, 1);
            if instruction.op0_kind() == OpKind::Register {
                set(state, instruction, value, at);
            } else if let Value::At(base, offset) = place(state, instruction) {
                state.store(base, offset, value);
            }
        }
        Code::Lea_r64_m => set(state, instruction, place(state, instruction), at),
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 | Code::Add_RAX_imm32
            if instruction.op0_kind() == OpKind::Register =>
        {
            let bytes = instruction.immediate(1).cast_signed();
            set(
                state,
                instruction,
                moved(operand(state, instruction, 0), bytes),
                at,
            );
        }
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 | Code::Sub_RAX_imm32
            if instruction.op0_kind() == OpKind::Register =>
        {
            let bytes = instruction.immediate(1).cast_signed().saturating_neg();
            set(
                state,
                instruction,
                moved(operand(state, instruction, 0), bytes),
                at,
            );
        }
        Code::Xchg_rm64_r64 | Code::Xchg_r64_RAX if instruction.op0_kind() == OpKind::Register => {
            let values = [
                operand(state, instruction, 0),
                operand(state, instruction, 1),
            ];
            let registers = [instruction.op1_register(), instruction.op0_register()];
            for (register, value) in registers.into_iter().zip(values) {
                if let Some(register) = number(register) {
                    state.set(register, value, at);
                }
            }
        }
        _ => return false,
    }
    true
}

fn push(state: &mut State, value: Value, at: u32) {
    state.grow(-8, at);
    if let Some((base, offset)) = state.stack() {
        state.store(base, offset, value);
    }
}

fn pop(state: &mut State, into: Option<usize>, at: u32) {
    let value = state
        .stack()
        .map_or(Value::Unknown, |(base, offset)| state.word(base, offset));
    state.grow(8, at);
    if let Some(register) = into {
        state.set(register, value, at);
    }
}

/// Sets the register that is the first operand.
fn set(state: &mut State, instruction: &Instruction, value: Value, at: u32) {
    if let Some(register) = number(instruction.op0_register()) {
        state.set(register, value, at);
    }
}

/// The value of an operand of eight bytes.
fn operand(state: &State, instruction: &Instruction, operand: u32) -> Value {
    match instruction.op_kind(operand) {
        OpKind::Register => number(instruction.op_register(operand))
            .map_or(Value::Unknown, |register| state.register(register)),
        OpKind::Memory => match place(state, instruction) {
            Value::At(base, offset) => state.word(base, offset),
            _ => Value::Unknown,
        },
        _ => Value::Unknown,
    }
}

/// The address of the operand in memory, if it is in the frame.
fn place(state: &State, instruction: &Instruction) -> Value {
    let is_plain = instruction.memory_index() == Register::None
        && !matches!(instruction.segment_prefix(), Register::FS | Register::GS);
    match number(instruction.memory_base()).filter(|_| is_plain) {
        Some(base) => moved(
            state.register(base),
            instruction.memory_displacement64().cast_signed(),
        ),
        None => Value::Unknown,
    }
}

/// The number of a general register of eight bytes.
pub(super) fn number(register: Register) -> Option<usize> {
    register.is_gpr64().then(|| register.number())
}

/// The numbers of the general registers that an instruction writes, in whole or in part.
pub(super) fn written(
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
) -> impl Iterator<Item = usize> {
    let used = factory.info(instruction).used_registers();
    used.iter()
        .filter(|used| is_write(used.access()))
        .filter_map(|used| number(used.register().full_register()))
}

const fn is_write(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// Makes unknown all that any other instruction writes.
fn anything(
    state: &mut State,
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
    at: u32,
) {
    let info = factory.info(instruction);
    let is_stack = instruction.is_stack_instruction();
    for used in info.used_memory() {
        let is_plain = used.index() == Register::None
            && !matches!(used.segment(), Register::FS | Register::GS);
        let base = number(used.base()).filter(|_| is_plain && is_write(used.access()));
        let bytes = i32::try_from(used.memory_size().size()).unwrap_or(i32::MAX);
        if let Some(base) = base
            && let Value::At(base, offset) =
                moved(state.register(base), used.displacement().cast_signed())
        {
            state.overwrite(base, offset, bytes);
        }
    }
    for register in written(instruction, factory) {
        if !(is_stack && register == RSP) {
            state.set(register, Value::Unknown, at);
        }
    }
    if is_stack {
        state.grow(instruction.stack_pointer_increment().into(), at);
    }
}
