//! Where the loop's instructions keep what a walk needs.
//!
//! In: the code of the loop, and of what calls it. Out: the words of a descriptor. Symbols are not needed: the loop stores its
//! next instruction in its `CallInfo` wherever it calls something, and everything that calls it has the `lua_State` as its own
//! first argument.

use crate::object::Image;
use crate::runtime::{Descriptor, function_bounds};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};
use profiler_common::runtime::lua::{MAX_SITES, at, site};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Larger functions are not decoded.
const MAX: u64 = 128 << 10;
/// Code around the loop that is searched for its callers, on either side.
const NEAR: u64 = 512 << 10;
/// Instructions in front of a call that are looked at for its first argument.
const BEFORE: usize = 6;

/// Where the loop has something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Operand {
    Register(Register),
    /// In its native frame, from rsp or rbp.
    Frame(Register, i64),
}

/// Whether a function goes on by some bits of a number, over and over, and stores its next instruction as the loop does.
pub(in crate::runtime) fn takes_codes(
    image: &Image<'_>,
    function: &Range<u64>,
    codes: u32,
) -> bool {
    /// Between the bits and the jump.
    const BETWEEN: usize = 12;
    let Some(code) = Code::read(image, function.clone()) else {
        return false;
    };
    let instructions = code.instructions();
    let places = instructions.windows(BETWEEN);
    let times = places.filter(|place| {
        let first = &place[0];
        first.mnemonic() == Mnemonic::And
            && matches!(
                first.op1_kind(),
                OpKind::Immediate8to32 | OpKind::Immediate32
            )
            && first.immediate(1) as u32 == codes
            && place[1..]
                .iter()
                .any(|instruction| instruction.flow_control() == FlowControl::IndirectBranch)
    });
    times.count() > 0
}

/// Says where the loop has its `CallInfo` and its next instruction, and if a walk does not follow the former, where it returns to and
/// where the `lua_State` is then.
pub(in crate::runtime) fn put(
    image: &Image<'_>,
    execute: &Range<u64>,
    words: &mut Descriptor,
) -> Option<()> {
    let code = Code::read(image, execute.clone())?;
    let instructions = code.instructions();
    let saved = 8 * words[at::CALL_INSTRUCTION];
    let call = call_place(&instructions, saved)?;
    let body = kept_from(&instructions, words[at::STATE_CALL], call).or_else(|| {
        let mut all = instructions.iter();
        let begin =
            all.find(|instruction| reads_instruction(instruction, saved, call, &instructions));
        begin.map(Instruction::ip)
    })?;
    words[at::BODY] = body;
    if words[at::STATE_CALL] != 0 {
        words[at::MARKED] = marked_from(&instructions, words).map_or(body, |from| from.max(body));
    }
    match call {
        Operand::Register(register) => words[at::CALL_REGISTER] = dwarf(register)?,
        Operand::Frame(base, offset) => {
            words[at::CALL_REGISTER] = dwarf(base)?;
            words[at::CALL_IN_FRAME] = 1;
            words[at::CALL_OFFSET] = offset as u64;
        }
    }
    if words[at::STATE_CALL] == 0 {
        words[at::INSTRUCTION_REGISTER] = next_instruction(&instructions, body)
            .and_then(dwarf)
            .map_or(0, |number| number + 1);
    }
    if let Operand::Register(Register::RBX | Register::RBP) | Operand::Frame(..) = call {
        return Some(());
    }
    put_sites(image, execute, &instructions, words)
}

/// Where the `CallInfo` is: by most of the stores of the next instruction; if they do not agree, by most of the loads and stores.
fn call_place(instructions: &[Instruction], saved: u64) -> Option<Operand> {
    let is_store = |instruction: &Instruction| {
        instruction.op0_kind() == OpKind::Memory && instruction.op1_register().is_gpr64()
    };
    let is_load = |instruction: &Instruction| {
        instruction.op1_kind() == OpKind::Memory && instruction.op0_register().is_gpr64()
    };
    let most_by = |is_it: &dyn Fn(&Instruction) -> bool| {
        let mut votes: HashMap<Operand, usize> = HashMap::new();
        for (number, instruction) in instructions.iter().enumerate() {
            let base = instruction.memory_base();
            if instruction.mnemonic() != Mnemonic::Mov
                || !is_it(instruction)
                || instruction.memory_displacement64() != saved
                || instruction.memory_index() != Register::None
                || base == Register::RSP
            {
                continue;
            }
            // Registers that calls preserve may have it for a moment only, too.
            let loaded = loaded_from(&instructions[..number], base);
            let place = loaded.or_else(|| is_kept(base).then_some(Operand::Register(base)));
            if let Some(place) = place {
                *votes.entry(place).or_default() += 1;
            }
        }
        let (place, most) = votes.iter().max_by_key(|(_, votes)| **votes)?;
        let all: usize = votes.values().sum();
        // A state stores its newest at the same place, but rarely.
        (most * 3 > all * 2).then_some(*place)
    };
    most_by(&is_store)
        .or_else(|| most_by(&|instruction| is_store(instruction) || is_load(instruction)))
}

/// From where on the loop has its `CallInfo` where it keeps that: behind the instruction that first puts it there. None if that is
/// not among those that run one after the other where the loop begins. `state_call` is as [`at::STATE_CALL`].
fn kept_from(instructions: &[Instruction], state_call: u64, call: Operand) -> Option<u64> {
    let mut info = InstructionInfoFactory::new();
    let (mut states, mut calls) = (HashSet::new(), HashSet::new());
    let (has_first, argument) = match state_call {
        0 => (&mut calls, Register::RSI),
        _ => (&mut states, Register::RDI),
    };
    has_first.insert(Operand::Register(argument));
    let first = instructions
        .iter()
        .take_while(|instruction| instruction.flow_control() == FlowControl::Next);
    for instruction in first {
        let is_move = instruction.mnemonic() == Mnemonic::Mov;
        let from = is_move.then(|| moved_from(instruction)).flatten();
        let is_of_state = is_move
            && instruction.op1_kind() == OpKind::Memory
            && instruction.memory_displacement64() == state_call
            && states.contains(&Operand::Register(instruction.memory_base()));
        let is_call =
            from.is_some_and(|from| calls.contains(&from)) || state_call != 0 && is_of_state;
        let is_state = from.is_some_and(|from| states.contains(&from));
        let mut written = Vec::new();
        if let Some(place) =
            frame_place(instruction).filter(|_| instruction.op0_kind() == OpKind::Memory)
        {
            written.push(place);
        }
        let used = info.info(instruction).used_registers().iter();
        let registers =
            used.filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead));
        written.extend(registers.map(|used| Operand::Register(used.register().full_register())));
        for place in written {
            states.remove(&place);
            calls.remove(&place);
            if is_state {
                states.insert(place);
            }
            if is_call {
                calls.insert(place);
            }
        }
        if is_call && calls.contains(&call) {
            return Some(instruction.next_ip());
        }
    }
    None
}

/// From where on the loop has marked the `CallInfo` it was called for: behind the first instruction that writes `callstatus`. None if
/// that is not among those that run one after the other where the loop begins.
fn marked_from(instructions: &[Instruction], words: &Descriptor) -> Option<u64> {
    let status = words[at::CALL_STATUS] + words[at::STATUS_SHIFT] / 8;
    let mut first = instructions
        .iter()
        .take_while(|instruction| instruction.flow_control() == FlowControl::Next);
    let marks = first.find(|instruction| {
        matches!(instruction.mnemonic(), Mnemonic::Or | Mnemonic::Mov)
            && instruction.op0_kind() == OpKind::Memory
            && instruction.memory_base() != Register::RSP
            && instruction.memory_displacement64() == status
    })?;
    Some(marks.next_ip())
}

/// Where a move takes its value from, if that is a register or a place in the native frame.
fn moved_from(instruction: &Instruction) -> Option<Operand> {
    match instruction.op1_kind() {
        OpKind::Register => Some(Operand::Register(instruction.op1_register())),
        OpKind::Memory => frame_place(instruction),
        _ => None,
    }
}

/// The place in the native frame that an instruction is about.
fn frame_place(instruction: &Instruction) -> Option<Operand> {
    let base = instruction.memory_base();
    let is_frame = matches!(base, Register::RSP | Register::RBP)
        && instruction.memory_index() == Register::None;
    is_frame.then(|| Operand::Frame(base, instruction.memory_displacement64() as i64))
}

/// The place in the native frame that a register was loaded from last.
fn loaded_from(before: &[Instruction], register: Register) -> Option<Operand> {
    let mut info = InstructionInfoFactory::new();
    let last = before
        .iter()
        .rev()
        .take(BEFORE)
        .find(|instruction| writes(&mut info, instruction, register))?;
    frame_load(last, register)
}

fn frame_load(instruction: &Instruction, register: Register) -> Option<Operand> {
    let is_load = instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register() == register
        && instruction.op1_kind() == OpKind::Memory;
    is_load.then(|| frame_place(instruction)).flatten()
}

/// Whether it loads the next instruction by the `CallInfo` where that is kept.
fn reads_instruction(
    instruction: &Instruction,
    saved: u64,
    call: Operand,
    all: &[Instruction],
) -> bool {
    let base = instruction.memory_base();
    let is_load = instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Memory
        && instruction.memory_displacement64() == saved
        && instruction.memory_index() == Register::None;
    is_load
        && match call {
            Operand::Register(register) => base == register,
            Operand::Frame(..) => {
                let number = all.partition_point(|other| other.ip() < instruction.ip());
                loaded_from(&all[..number], base) == Some(call)
            }
        }
}

/// The register of the next instruction: of the first that is stepped over behind an address.
fn next_instruction(instructions: &[Instruction], from: u64) -> Option<Register> {
    let mut later = instructions
        .iter()
        .filter(|instruction| instruction.ip() >= from)
        .take(40);
    later.find_map(|instruction| {
        let is_step = instruction.mnemonic() == Mnemonic::Lea
            && instruction.memory_displacement64() == 4
            && instruction.memory_index() == Register::None
            && instruction.op0_register().is_gpr64();
        is_step.then(|| instruction.op0_register())
    })
}

/// Says where the loop returns to.
fn put_sites(
    image: &Image<'_>,
    execute: &Range<u64>,
    instructions: &[Instruction],
    words: &mut Descriptor,
) -> Option<()> {
    let (saves, end) = saves(instructions);
    words[at::SAVED] = end;
    // Only behind these is the state found.
    words[at::BODY] = words[at::BODY].max(end);
    words[at::SAVED_FP] = *saves.get(&Register::RBP)? as u64;
    let mut sites = Vec::new();
    let near = execute.start.saturating_sub(NEAR)..execute.end.saturating_add(NEAR);
    let functions = function_bounds::functions(image, near);
    for function in &functions {
        let Some(code) = Code::read(image, function.clone()) else {
            continue;
        };
        let instructions = code.instructions();
        let is_to = |instruction: &Instruction| {
            instruction.op0_kind() == OpKind::NearBranch64
                && instruction.near_branch_target() == execute.start
        };
        for (number, instruction) in instructions.iter().enumerate() {
            match instruction.flow_control() {
                FlowControl::Call if is_to(instruction) => {
                    sites.extend(returns(&instructions, number, &saves));
                }
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
                    if is_to(instruction) && function.start != execute.start =>
                {
                    // It returns to who called this function: by its address, which is given to who calls it.
                    sites.extend(indirect(image, &functions, function.start, &saves));
                }
                _ => {}
            }
        }
    }
    sites.sort_unstable();
    sites.dedup();
    if sites.is_empty() || sites.len() > MAX_SITES {
        return None;
    }
    words[at::SITES] = sites.len() as u64;
    words[at::FIRST_SITE..][..sites.len()].copy_from_slice(&sites);
    Some(())
}

/// The registers that the loop pushes first, and how far below its caller's stack pointer each is; and the address behind.
fn saves(instructions: &[Instruction]) -> (HashMap<Register, i64>, u64) {
    let mut saves = HashMap::new();
    let mut end = instructions.first().map_or(0, Instruction::ip);
    let pushes = instructions.iter().take(24).filter(|instruction| {
        instruction.mnemonic() == Mnemonic::Push && instruction.op0_register().is_gpr64()
    });
    for (number, push) in pushes.enumerate() {
        saves.insert(push.op0_register(), -8 * (number as i64 + 2));
        end = push.next_ip();
    }
    (saves, end)
}

/// The site of a call, by where its function has its first argument.
fn returns(function: &[Instruction], number: usize, saves: &HashMap<Register, i64>) -> Option<u64> {
    let (offset, is_by_fp) = match first_argument(function, number)? {
        Operand::Register(register) => (*saves.get(&register)?, false),
        Operand::Frame(base, offset) => (offset, base == Register::RBP),
    };
    site(function[number].next_ip(), offset, is_by_fp)
}

/// Where a function keeps its first argument during a call.
fn first_argument(function: &[Instruction], call: usize) -> Option<Operand> {
    let before = &function[..call];
    // The source of the call's own first argument.
    let argument = before
        .iter()
        .rev()
        .take(BEFORE)
        .take_while(|instruction| instruction.flow_control() == FlowControl::Next)
        .find_map(|instruction| {
            let is_move = instruction.mnemonic() == Mnemonic::Mov
                && instruction.op0_register() == Register::RDI;
            if !is_move {
                return None;
            }
            frame_load(instruction, Register::RDI).or_else(|| {
                Some(instruction.op1_register())
                    .filter(|register| is_kept(*register))
                    .map(Operand::Register)
            })
        });
    // Otherwise where the function's first instructions put it.
    argument.or_else(|| {
        let mut first = before
            .iter()
            .take_while(|instruction| instruction.flow_control() != FlowControl::Call);
        first.find_map(|instruction| {
            let is_copy = instruction.mnemonic() == Mnemonic::Mov
                && instruction.op1_kind() == OpKind::Register
                && instruction.op1_register() == Register::RDI
                && is_kept(instruction.op0_register());
            is_copy.then(|| Operand::Register(instruction.op0_register()))
        })
    })
}

/// The sites of indirect calls in the function that is called next where the address of a function is made its second argument.
fn indirect(
    image: &Image<'_>,
    functions: &[Range<u64>],
    function: u64,
    saves: &HashMap<Register, i64>,
) -> Vec<u64> {
    let mut sites = Vec::new();
    let code_of = |start: u64| {
        let place = functions.binary_search_by_key(&start, |function| function.start);
        Code::read(image, functions[place.ok()?].clone())
    };
    for other in functions {
        let Some(code) = Code::read(image, other.clone()) else {
            continue;
        };
        let instructions = code.instructions();
        let given = instructions.iter().position(|instruction| {
            let is_address = instruction.mnemonic() == Mnemonic::Lea
                && instruction.is_ip_rel_memory_operand()
                && instruction.ip_rel_memory_address() == function;
            let is_number = instruction.mnemonic() == Mnemonic::Mov
                && instruction.op1_kind() == OpKind::Immediate32
                && u64::from(instruction.immediate32()) == function;
            (is_address || is_number)
                && matches!(instruction.op0_register(), Register::RSI | Register::ESI)
        });
        let Some(given) = given else { continue };
        let runner = instructions[given..].iter().find_map(|instruction| {
            let is_call = instruction.flow_control() == FlowControl::Call;
            is_call.then(|| instruction.near_branch_target())
        });
        let Some(code) = runner.and_then(code_of) else {
            continue;
        };
        let instructions = code.instructions();
        for (number, instruction) in instructions.iter().enumerate() {
            if instruction.flow_control() == FlowControl::IndirectCall {
                sites.extend(returns(&instructions, number, saves));
            }
        }
    }
    sites
}

/// Whether functions leave a register as it was.
fn is_kept(register: Register) -> bool {
    matches!(
        register,
        Register::RBX
            | Register::RBP
            | Register::R12
            | Register::R13
            | Register::R14
            | Register::R15
    )
}

fn writes(
    info: &mut InstructionInfoFactory,
    instruction: &Instruction,
    register: Register,
) -> bool {
    let used = info.info(instruction).used_registers();
    used.iter().any(|used| {
        used.register().full_register() == register
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
    })
}

/// The DWARF number of a register (System V ABI, AMD64 supplement, figure 3.36).
fn dwarf(register: Register) -> Option<u64> {
    const FIRST: [u64; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    let number = register.number();
    let number = FIRST.get(number).copied().unwrap_or(number as u64);
    register.is_gpr64().then_some(number)
}

/// The code of a function.
struct Code {
    bytes: Vec<u8>,
    address: u64,
}

impl Code {
    fn read(image: &Image<'_>, function: Range<u64>) -> Option<Self> {
        let bytes = function.end.checked_sub(function.start)?;
        let mut code = vec![0; usize::try_from(bytes).ok().filter(|_| bytes <= MAX)?];
        image.copy(function.start, &mut code)?;
        Some(Self {
            bytes: code,
            address: function.start,
        })
    }

    fn instructions(&self) -> Vec<Instruction> {
        let decoder = Decoder::with_ip(64, &self.bytes, self.address, DecoderOptions::NONE);
        decoder.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[&[u8]]) -> Vec<Instruction> {
        let code = Code {
            bytes: bytes.concat(),
            address: 0x1000,
        };
        code.instructions()
    }

    const STORE_BY_R14: &[u8] = &[0x49, 0x89, 0x5e, 0x20];
    const STORE_BY_R12: &[u8] = &[0x49, 0x89, 0x44, 0x24, 0x20];
    const STORE_BY_RAX: &[u8] = &[0x48, 0x89, 0x58, 0x20];
    const LOAD_RAX: &[u8] = &[0x48, 0x8b, 0x44, 0x24, 0x10];
    const RDI_TO_RBX: &[u8] = &[0x48, 0x89, 0xfb];
    const RBP_TO_RDI: &[u8] = &[0x48, 0x89, 0xef];
    const FRAME_TO_RDI: &[u8] = &[0x48, 0x8b, 0x7c, 0x24, 0x08];
    const NOTHING: &[u8] = &[0x90];
    const CALL: &[u8] = &[0xe8, 0, 0, 0, 0];

    #[test]
    fn the_call_is_where_most_stores_go_by() {
        let three = decode(&[STORE_BY_R14, STORE_BY_R14, STORE_BY_R14, STORE_BY_R12]);
        assert_eq!(
            call_place(&three, 0x20),
            Some(Operand::Register(Register::R14))
        );
        assert_eq!(call_place(&three, 0x28), None);
        let as_many = decode(&[STORE_BY_R14, STORE_BY_R12]);
        assert_eq!(call_place(&as_many, 0x20), None);
        let in_frame = decode(&[LOAD_RAX, NOTHING, STORE_BY_RAX]);
        assert_eq!(
            call_place(&in_frame, 0x20),
            Some(Operand::Frame(Register::RSP, 0x10))
        );
        assert_eq!(call_place(&decode(&[STORE_BY_RAX]), 0x20), None);
    }

    #[test]
    fn a_register_that_was_just_loaded_from_the_frame_is_not_where_the_call_is_kept() {
        const LOAD_RBX: &[u8] = &[0x48, 0x8b, 0x5c, 0x24, 0x10];
        const STORE_BY_RBX: &[u8] = &[0x48, 0x89, 0x43, 0x20];
        let instructions = decode(&[LOAD_RBX, STORE_BY_RBX]);
        assert_eq!(
            call_place(&instructions, 0x20),
            Some(Operand::Frame(Register::RSP, 0x10))
        );
    }

    #[test]
    fn loads_count_where_stores_do_not_agree() {
        const LOAD_BY_R14: &[u8] = &[0x49, 0x8b, 0x46, 0x20];
        let instructions = decode(&[STORE_BY_R14, STORE_BY_R12, LOAD_BY_R14, LOAD_BY_R14]);
        assert_eq!(
            call_place(&instructions, 0x20),
            Some(Operand::Register(Register::R14))
        );
    }

    #[test]
    fn the_call_is_kept_from_where_the_argument_is_first_moved_there() {
        const RSI_TO_R11: &[u8] = &[0x49, 0x89, 0xf3];
        const R11_TO_FRAME: &[u8] = &[0x4c, 0x89, 0x5c, 0x24, 0x08];
        const RSI_TO_R14: &[u8] = &[0x49, 0x89, 0xf6];
        const STATE_S_TO_RAX: &[u8] = &[0x48, 0x8b, 0x47, 0x20];
        const RAX_TO_RBX: &[u8] = &[0x48, 0x89, 0xc3];
        let frame = Operand::Frame(Register::RSP, 8);
        let by_frame = decode(&[RSI_TO_R11, NOTHING, R11_TO_FRAME, NOTHING]);
        assert_eq!(kept_from(&by_frame, 0, frame), Some(0x1009));
        let r14 = Operand::Register(Register::R14);
        assert_eq!(kept_from(&decode(&[RSI_TO_R14]), 0, r14), Some(0x1003));
        let rbx = Operand::Register(Register::RBX);
        let by_state = decode(&[STATE_S_TO_RAX, RAX_TO_RBX]);
        assert_eq!(kept_from(&by_state, 0x20, rbx), Some(0x1007));
        assert_eq!(kept_from(&by_state, 0x28, rbx), None);
        // Behind a call the argument is gone.
        assert_eq!(kept_from(&decode(&[CALL, RSI_TO_R14]), 0, r14), None);
    }

    #[test]
    fn what_the_loop_pushes_is_below_its_return_address() {
        let instructions = decode(&[&[0x41, 0x57], &[0x41, 0x56], RDI_TO_RBX, &[0x55], NOTHING]);
        let (saves, end) = saves(&instructions);
        assert_eq!(end, 0x1008);
        let saved = [Register::R15, Register::R14, Register::RBP].map(|register| saves[&register]);
        assert_eq!(saved, [-16, -24, -32]);
    }

    #[test]
    fn the_state_is_where_the_first_argument_comes_from() {
        let place = |bytes: &[&[u8]]| {
            let instructions = decode(&[bytes, &[CALL]].concat());
            first_argument(&instructions, instructions.len() - 1)
        };
        let rbx = Some(Operand::Register(Register::RBX));
        assert_eq!(place(&[RDI_TO_RBX, NOTHING]), rbx);
        assert_eq!(
            place(&[RDI_TO_RBX, RBP_TO_RDI]),
            Some(Operand::Register(Register::RBP))
        );
        assert_eq!(
            place(&[RDI_TO_RBX, FRAME_TO_RDI]),
            Some(Operand::Frame(Register::RSP, 8))
        );
        // Behind a call it is whatever that left.
        assert_eq!(place(&[RBP_TO_RDI, CALL]), None);
        assert_eq!(place(&[RDI_TO_RBX, CALL, NOTHING]), rbx);
    }

    #[test]
    fn registers_have_the_numbers_of_dwarf() {
        let numbers = [Register::RDI, Register::RBP, Register::R14].map(dwarf);
        assert_eq!(numbers, [Some(5), Some(6), Some(14)]);
        assert_eq!(dwarf(Register::EAX), None);
    }
}
