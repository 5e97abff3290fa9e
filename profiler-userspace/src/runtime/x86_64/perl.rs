//! Functions and variables that perl's code uses.
//!
//! In: an object's file. Out: what looks like the loop, and variables that are used as perl uses some of its own.

use crate::object::Image;
use crate::runtime::function_bounds::starts;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;

/// The most code that is looked through, in bytes.
const MAX_CODE: u64 = 64 << 20;
/// Larger functions are not looked at.
const MAX: u64 = 256 << 10;
/// Bytes of the largest loop. `Perl_runops_debug` of debugging builds is larger.
const MAX_LOOP: u64 = 192;

/// In an `OP`: `op_ppaddr`.
const FUNCTION: u64 = 0x10;
/// In an interpreter: `Iop`.
const OP: u64 = 8;
/// In a `COP`: `cop_line`.
const LINE: u64 = 0x24;
/// In a `PERL_SI`: `si_cxstack`, `si_cxix`.
const CONTEXTS: u64 = 8;
const INDEX: u64 = 0x20;

/// Where `PL_op` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Op {
    /// In an interpreter, with ithreads.
    Field,
    /// A variable at an address, without.
    Variable(u64),
}

/// Functions and variables that code uses, and how often.
#[derive(Default)]
pub(in crate::runtime) struct Uses {
    /// Functions that look like the loop, and where they store the next operation.
    pub(in crate::runtime) loops: Vec<(u64, Op)>,
    /// Variables of 32 bits that a function is called with, and the function: `pthread_setspecific` gets one key.
    pub(in crate::runtime) keys: HashMap<(u64, u64), u32>,
    /// Variables, and others that they are copied to.
    pub(in crate::runtime) copies: HashSet<(u64, u64)>,
    /// Variables that point to what has its line where a `COP` has it.
    pub(in crate::runtime) lines: HashMap<u64, u32>,
    /// Variables that point to what has its newest context where a `PERL_SI` has it.
    pub(in crate::runtime) stacks: HashMap<u64, u32>,
    /// Variables whose function is called.
    pub(in crate::runtime) called: HashSet<u64>,
}

impl Uses {
    pub(in crate::runtime) fn read(image: &Image<'_>) -> Option<Self> {
        let starts = starts(image)?;
        let bytes = starts.last()?.checked_sub(*starts.first()?)?;
        if bytes > MAX_CODE {
            return None;
        }
        let mut uses = Self::default();
        let mut code = Vec::new();
        for pair in starts.windows(2) {
            let (start, bytes) = (pair[0], pair[1].saturating_sub(pair[0]));
            if bytes > MAX {
                continue;
            }
            code.resize(usize::try_from(bytes).ok()?, 0);
            if image.copy(start, &mut code).is_none() {
                continue;
            }
            let decoder = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
            let instructions: Vec<Instruction> = decoder.into_iter().collect();
            uses.add(&instructions, start..pair[1]);
        }
        Some(uses)
    }

    /// Adds those of a function.
    fn add(&mut self, instructions: &[Instruction], function: Range<u64>) {
        /// Instructions behind one that are looked at.
        const BEHIND: usize = 6;
        let is_small = function.end - function.start <= MAX_LOOP;
        for (number, instruction) in instructions.iter().enumerate() {
            let behind = &instructions[number + 1..];
            let behind = &behind[..behind.len().min(BEHIND)];
            if instruction.flow_control() == FlowControl::IndirectCall {
                self.called.extend(variable(instruction));
                if is_small
                    && instruction.op0_kind() == OpKind::Memory
                    && is_field(instruction, None, FUNCTION)
                    && let Some(op) = stored_by_loop(instruction.ip(), behind, &function)
                {
                    self.loops.push((function.start, op));
                }
            }
            if let Some((register, from)) = loaded(instruction) {
                self.add_load(register, from, behind);
            }
        }
    }

    fn add_load(&mut self, register: Register, from: u64, behind: &[Instruction]) {
        if register == Register::EDI {
            let mut next = behind.iter().take(3);
            if let Some(call) = next.find(|next| next.mnemonic() == Mnemonic::Call) {
                let function = variable(call).unwrap_or_else(|| call.near_branch_target());
                count(&mut self.keys, (from, function));
            }
            return;
        }
        let copied = behind
            .iter()
            .take(3)
            .find(|next| next.mnemonic() == Mnemonic::Mov && next.op1_register() == register);
        if let Some(to) = copied.and_then(variable) {
            self.copies.insert((from, to));
        }
        let uses = |at: u64| {
            let is_it = |next: &Instruction| {
                is_field(next, Some(register), at) && next.op1_kind() == OpKind::Memory
            };
            behind.iter().any(is_it)
        };
        if uses(LINE) {
            count(&mut self.lines, from);
        }
        if uses(CONTEXTS) && uses(INDEX) {
            count(&mut self.stacks, from);
        }
    }
}

/// Where a loop stores the next operation, behind whose call of an operation there are these instructions. None of what is no
/// loop.
fn stored_by_loop(call: u64, behind: &[Instruction], function: &Range<u64>) -> Option<Op> {
    let store = behind.iter().find(|next| {
        next.mnemonic() == Mnemonic::Mov
            && next.op0_kind() == OpKind::Memory
            && next.op1_register() == Register::RAX
    })?;
    let is_tested = behind.iter().any(|next| {
        next.mnemonic() == Mnemonic::Test
            && (next.op0_register(), next.op1_register()) == (Register::RAX, Register::RAX)
    });
    let repeats = behind.iter().any(|next| {
        next.mnemonic() == Mnemonic::Jne
            && (function.start..=call).contains(&next.near_branch_target())
    });
    if !is_tested || !repeats {
        return None;
    }
    match variable(store) {
        Some(op) => Some(Op::Variable(op)),
        None => is_field(store, None, OP).then_some(Op::Field),
    }
}

/// The register and the variable's address, if it loads a variable.
fn loaded(instruction: &Instruction) -> Option<(Register, u64)> {
    let is_load = instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Memory;
    is_load.then(|| Some((instruction.op0_register(), variable(instruction)?)))?
}

/// The address of the variable that an instruction uses, if it uses one: by its distance, or in programs that lie at fixed
/// addresses by these.
fn variable(instruction: &Instruction) -> Option<u64> {
    let is_fixed = instruction.memory_base() == Register::None
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None
        && instruction.op_kinds().any(|kind| kind == OpKind::Memory);
    (is_fixed || instruction.is_ip_rel_memory_operand())
        .then(|| instruction.memory_displacement64())
}

/// Whether it uses what lies so far behind the address in a register, if that is given.
fn is_field(instruction: &Instruction, base: Option<Register>, at: u64) -> bool {
    let register = instruction.memory_base();
    register.is_gpr64()
        && base.is_none_or(|base| base == register)
        && instruction.memory_index() == Register::None
        && instruction.memory_displacement64() == at
}

fn count<K: Eq + Hash>(all: &mut HashMap<K, u32>, key: K) {
    *all.entry(key).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_told_by_what_it_does_with_what_was_returned() {
        let stored = |code: &[u8]| {
            let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
            let instructions: Vec<Instruction> = decoder.into_iter().collect();
            let mut uses = Uses::default();
            uses.add(&instructions, 0x1000..0x1000 + code.len() as u64);
            uses.loops
        };
        // `call *0x10(%rax)`, `mov %rax,0x8(%rbx)`, `test %rax,%rax`, `jne`, `ret`.
        let interpreter = b"\xff\x50\x10\x48\x89\x43\x08\x48\x85\xc0\x75\xf4\xc3";
        assert_eq!(stored(interpreter), [(0x1000, Op::Field)]);
        // It stores in a variable, 0x100 behind the store.
        let variable = b"\xff\x50\x10\x48\x89\x05\x00\x01\x00\x00\x48\x85\xc0\x75\xf1\xc3";
        assert_eq!(stored(variable), [(0x1000, Op::Variable(0x110a))]);
        // It jumps on, stores elsewhere, or calls another function of the object.
        let ends = b"\xff\x50\x10\x48\x89\x43\x08\x48\x85\xc0\x75\x01\xc3";
        assert_eq!(stored(ends), []);
        let elsewhere = b"\xff\x50\x10\x48\x89\x43\x18\x48\x85\xc0\x75\xf4\xc3";
        assert_eq!(stored(elsewhere), []);
        let other = b"\xff\x50\x18\x48\x89\x43\x08\x48\x85\xc0\x75\xf4\xc3";
        assert_eq!(stored(other), []);
    }
}
