//! Rules for x86-64.
//!
//! In: the state after unwind instructions. Out: the [`Rule`] that expresses it, or that no rule does. All
//! that user space knows of the machine is here; see the System V ABI, AMD64 supplement, section 3.6.

pub(super) mod assembly;
pub(super) mod go;
pub(super) mod registers;
pub(super) mod set_up;

pub(super) use registers::RETURN_ADDRESS;

use super::expression::Expression;
use super::program::{Saved, State};
use profiler_common::abi::{Origin, Rule, RuleKind, Slot};
use profiler_common::walk::x86_64::{
    CFA_AT_ENTRY, FP as RBP, FP_FROM_STORED_SP, SAVED_FROM_STORED_SP, SP as RSP,
};
use registers::{BX, FP, RA, SP};

/// The DWARF numbers of this machine's registers.
pub(super) const NAMES: [&str; 16] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// The instruction pointer, as instructions call it.
pub(super) const INSTRUCTION_POINTER: &str = "rip";

/// The rule of code that handlers of signals return to: there the stack pointer is at the saved registers, `ucontext_t`, of
/// which rsp is at this offset (`struct sigcontext_64` in Linux's `arch/x86/include/uapi/asm/sigcontext.h`).
pub(super) const SIGNAL_RETURN: Rule = Rule::new(RuleKind::Signal, RSP, 160);

/// The rule for this state. `signal` is whether the description is marked as a signal frame.
pub(super) fn rule(state: &State, signal: bool) -> Rule {
    unusual_return(state, signal)
        .unwrap_or_else(|| usual(state))
        .unwrap_or(Rule::UNSUPPORTED)
}

/// The state of functions that keep their return address where calls put it: the CFA is so many bytes above a register, and rbp
/// and rbx are saved so many words below it, or not.
fn usual_state(base: u8, bytes: u32, fp: Option<u16>, bx: Option<u16>) -> State {
    let saved = |words: Option<u16>| {
        words.map_or(Saved::Same, |words| Saved::Offset(-8 * i64::from(words)))
    };
    let mut state = State {
        base: base.into(),
        offset: bytes.into(),
        ..State::EMPTY
    };
    state.saved[FP] = saved(fp);
    state.saved[BX] = saved(bx);
    state.saved[RA] = Saved::Offset(-8);
    state
}

/// The rule for such a state.
pub(super) fn usual_rule(base: u8, bytes: u32, fp: Option<u16>, bx: Option<u16>) -> Rule {
    rule(&usual_state(base, bytes, fp, bx), false)
}

/// Whether this is the state of such functions at their first instruction.
pub(super) fn begins_as_usual(state: &State) -> bool {
    *state == usual_state(RSP, CFA_AT_ENTRY as u32, None, None)
}

/// The rule if the return address is not in the word below the CFA; an inner none if no rule expresses it.
#[expect(
    clippy::option_option,
    reason = "not unusual, or unusual without a rule"
)]
fn unusual_return(state: &State, signal: bool) -> Option<Option<Rule>> {
    match (state.saved[RA], state.saved[SP]) {
        (Saved::Undefined, _) => Some(Some(Rule::ROOT)),
        (Saved::Offset(-8), Saved::Same) if !signal => None,
        (Saved::Register(register), sp) => Some(in_register(state, register, sp)),
        _ => Some(stored(state, signal)),
    }
}

/// The return address in a register, as around system calls that return twice; possibly the stack pointer
/// too, as for a long jump.
fn in_register(state: &State, register: u16, sp: Saved) -> Option<Rule> {
    let (base, offset) = match (sp, state.expression) {
        (Saved::Same, None) => (state.base, state.offset),
        (Saved::Register(sp), _) => (sp, 0),
        _ => return None,
    };
    let (base, register) = (number(base)?, number(register)?);
    let rule = Rule::fitting_halves(RuleKind::InRegister, base, offset, register.into())?;
    Some(with_slots(rule, state))
}

/// All registers in memory, as the kernel saves them for a signal handler.
fn stored(state: &State, signal: bool) -> Option<Rule> {
    let (ra, fp, bx, sp) = (
        place(state, state.saved[RA])?,
        place(state, state.saved[FP])?,
        place(state, state.saved[BX])?,
        match (state.expression, state.saved[SP]) {
            // The CFA is the saved stack pointer.
            (
                Some(Expression::Memory {
                    register,
                    offset,
                    addend: 0,
                }),
                Saved::Same,
            ) => (register, offset),
            (_, saved) => place(state, saved)?,
        },
    );
    let beside = |bytes| (sp.0, sp.1.checked_add(bytes).unwrap_or(sp.1));
    if ra != beside(8) || fp != beside(FP_FROM_STORED_SP) || bx != beside(SAVED_FROM_STORED_SP) {
        return None;
    }
    let how = if signal {
        RuleKind::Signal
    } else {
        RuleKind::Switch
    };
    Rule::fitting(how, number(sp.0)?, sp.1)
}

/// The address where a register is saved: a register plus an offset.
fn place(state: &State, saved: Saved) -> Option<(u16, i64)> {
    match (saved, state.expression) {
        (Saved::At(Expression::Place { register, offset }), _) => Some((register, offset)),
        (Saved::Offset(offset), None) => Some((state.base, state.offset.checked_add(offset)?)),
        _ => None,
    }
}

/// The return address in the word below the CFA.
fn usual(state: &State) -> Option<Rule> {
    let rule = match state.expression {
        None => Rule::fitting(RuleKind::Offset, number(state.base)?, state.offset),
        Some(Expression::Memory {
            register,
            offset,
            addend,
        }) => Rule::fitting_halves(RuleKind::Memory, number(register)?, offset, addend),
        Some(Expression::IndexedMemory {
            register,
            offset,
            index,
            addend,
        }) => {
            let high = addend.checked_mul(16)? | i64::from(number(index)?);
            Rule::fitting_halves(RuleKind::IndexedMemory, number(register)?, offset, high)
        }
        Some(Expression::Linkage {
            register,
            offset,
            threshold,
        }) => {
            let threshold = threshold.try_into().ok()?;
            Rule::fitting_halves(RuleKind::Linkage, number(register)?, offset, threshold)
        }
        Some(Expression::Place { register, offset }) => {
            Rule::fitting(RuleKind::Offset, number(register)?, offset)
        }
        Some(Expression::Other) => return None,
    };
    Some(with_slots(rule?, state))
}

/// Adds where rbp and rbx are saved. Both are relative to one origin, rbp's; a slot relative to another is
/// lost.
fn with_slots(rule: Rule, state: &State) -> Rule {
    let (fp_origin, fp) = slot(state.saved[FP]);
    let (bx_origin, bx) = slot(state.saved[BX]);
    let origin = fp_origin.or(bx_origin).unwrap_or(Origin::Cfa);
    let bx = if bx_origin.is_some_and(|other| other != origin) {
        Slot::LOST
    } else {
        bx
    };
    rule.with_slots(origin, fp, bx)
}

/// The slot of one register, and its origin if that matters.
fn slot(saved: Saved) -> (Option<Origin>, Slot) {
    let at =
        |origin, bytes| Slot::at(bytes).map_or((None, Slot::LOST), |slot| (Some(origin), slot));
    match saved {
        Saved::Same => (None, Slot::SAME),
        Saved::Offset(bytes) => at(Origin::Cfa, bytes),
        Saved::At(Expression::Place { register, offset }) => match u8::try_from(register) {
            Ok(RBP) => at(Origin::FramePointer, offset),
            Ok(RSP) => at(Origin::StackPointer, offset),
            _ => (None, Slot::LOST),
        },
        Saved::Register(register) => match number(register) {
            Some(number) => (Some(Origin::Register), Slot(number.into())),
            None => (None, Slot::LOST),
        },
        Saved::Undefined | Saved::At(_) | Saved::Computed => (None, Slot::LOST),
    }
}

/// The rules of a procedure linkage table without a description, each with its start. The kind of table is
/// recognized by its first instructions; an unknown kind gets no rules. See the System V ABI, AMD64
/// supplement, section 5.2, and GNU ld's `elf_x86_64_lazy_plt_entry` in `bfd/elf64-x86-64.c`.
pub(super) fn linkage(table: &[u8]) -> Vec<(u32, Rule)> {
    const JUMP: [u8; 2] = [0xff, 0x25];
    const PUSH: [u8; 2] = [0xff, 0x35];
    const PUSH_NUMBER: u8 = 0x68;
    const BRANCH_TARGET: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let jumps = |entry: &[u8]| {
        let entry = entry.strip_prefix(&BRANCH_TARGET).unwrap_or(entry);
        entry
            .strip_prefix(&[0xf2])
            .unwrap_or(entry)
            .starts_with(&JUMP)
    };
    let called = |bytes| Rule::new(RuleKind::Offset, RSP, bytes);
    // Entries jump, push their number, and jump to the head of the table.
    let entry = |entry: &[u8]| {
        let targeted = entry.starts_with(&BRANCH_TARGET) && entry.get(4) == Some(&PUSH_NUMBER);
        if targeted {
            Some(Rule::halves(RuleKind::Linkage, RSP, 8, 9))
        } else if jumps(entry) && entry.get(6) == Some(&PUSH_NUMBER) {
            Some(Rule::halves(RuleKind::Linkage, RSP, 8, 11))
        } else {
            None
        }
    };
    if table.starts_with(&PUSH) {
        let entry = table.get(16..).and_then(entry);
        entry.map_or_else(Vec::new, |entry| {
            vec![(0, called(16)), (6, called(24)), (16, entry)]
        })
    } else if jumps(table) {
        // No lazy binding: nothing is pushed.
        vec![(0, called(8))]
    } else {
        Vec::new()
    }
}

/// The number of a general register.
fn number(register: u16) -> Option<u8> {
    u8::try_from(register).ok().filter(|number| *number < 16)
}

#[cfg(test)]
mod tests;
