//! The rule that a state amounts to.
//!
//! In: a state. Out: a [`Rule`]; [`Rule::MISSING`] where the way to the caller is not known.

use super::state::{Base, KEPT, RBP, RBX, RSP, State, Value};
use crate::unwind::expression::Expression;
use crate::unwind::program::{self, Saved};
use crate::unwind::x86_64::{self, registers};
use profiler_common::abi::Rule;

/// DWARF's numbers of the registers, by those of instructions (System V ABI, AMD64 supplement, figure 3.36).
const DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// The registers by which frames are found, the best first: the walk knows the first three in every frame, those that
/// functions keep in most of the first two frames, the others in the first.
const BASES: [usize; 8] = [RSP, RBP, RBX, 12, 13, 14, 15, 0];

/// The rule at an instruction with this state before it.
pub(super) fn rule(state: &State) -> Rule {
    if state.is_root {
        return Rule::ROOT;
    }
    let Some(cfa) = cfa(state).filter(|_| state.keeps_return()) else {
        return Rule::MISSING;
    };
    let mut described = program::State {
        base: 0,
        offset: 0,
        expression: None,
        ..program::State::EMPTY
    };
    match cfa {
        Cfa::From(register, offset) => {
            described.base = DWARF[register];
            described.offset = offset;
        }
        Cfa::Stored(register, offset, addend) => {
            described.expression = Some(Expression::Memory {
                register: DWARF[register],
                offset,
                addend,
            });
        }
    }
    for register in [RBX, RBP] {
        if let Some(place) = registers::followed(DWARF[register]) {
            described.saved[place] = saved(state, register);
        }
    }
    let place = registers::followed(registers::RETURN_ADDRESS);
    if let Some(place) = place {
        described.saved[place] = Saved::Offset(-8);
    }
    match x86_64::rule(&described, false) {
        Rule::UNSUPPORTED => Rule::MISSING,
        rule => rule.from_code(),
    }
}

/// Where the frame is.
enum Cfa {
    /// So many bytes from a register.
    From(usize, i64),
    /// So many bytes from the address that is stored so many bytes from a register.
    Stored(usize, i64, i64),
}

fn cfa(state: &State) -> Option<Cfa> {
    let from = |register: usize| match state.register(register) {
        Value::At(Base::Cfa, offset) => Some(Cfa::From(register, -i64::from(offset))),
        _ => None,
    };
    // Above the return address nothing is the function's.
    if let Some((Base::Cfa, offset)) = state.stack()
        && offset > -8
    {
        return None;
    }
    // Code made by compilers that keep frame pointers may call functions that take their arguments off the stack, as
    // those of V8's own do: then the stack pointer is not where it seems.
    if state.register(RBP) == Value::At(Base::Cfa, -16)
        && state.word(Base::Cfa, -16) == Value::Caller(RBP as u8)
    {
        return from(RBP);
    }
    let others = (0..16).filter(|register| !BASES.contains(register));
    BASES[..3]
        .iter()
        .find_map(|&register| from(register))
        .or_else(|| stored(state, RSP))
        .or_else(|| stored(state, RBP))
        .or_else(|| BASES[3..].iter().copied().chain(others).find_map(from))
}

/// An address in the frame that is stored at or above where a register points to.
fn stored(state: &State, register: usize) -> Option<Cfa> {
    let Value::At(base, offset) = state.register(register) else {
        return None;
    };
    state.words().find_map(|&(of, place, value)| match value {
        Value::At(Base::Cfa, cfa) if of == base => {
            let place = i64::from(place) - i64::from(offset);
            (register != RSP || place >= 0).then(|| Cfa::Stored(register, place, -i64::from(cfa)))
        }
        _ => None,
    })
}

/// Where the caller's register is. A function that has saved one may call others that do not keep it, as those
/// inside OpenSSL's `ecp_nistz256_point_add`; so what was saved comes first.
fn saved(state: &State, register: usize) -> Saved {
    let wanted = Value::Caller(register as u8);
    // The first that was stored is nearest to the return address; others are copies.
    let saved = state
        .words()
        .rev()
        .filter(|(base, _, value)| *value == wanted && *base == Base::Cfa);
    let in_frame = saved.map(|slot| slot.1).next();
    let is_own = |offset: &i32| match state.stack() {
        Some((Base::Cfa, stack)) => *offset >= stack,
        _ => true,
    };
    let is_same = state.register(register) == wanted;
    if is_same && !in_frame.is_some_and(|offset| is_own(&offset)) {
        return Saved::Same;
    }
    let in_frame = in_frame.map(|offset| Saved::Offset(offset.into()));
    let elsewhere = || {
        let (base, stack) = state.stack()?;
        state.words().find_map(|&(of, offset, value)| {
            (value == wanted && of == base).then(|| {
                Saved::At(Expression::Place {
                    register: DWARF[RSP],
                    offset: i64::from(offset) - i64::from(stack),
                })
            })
        })
    };
    let in_register = || {
        let mut others = KEPT.into_iter().chain(0..16);
        others
            .find(|&other| state.register(other) == wanted)
            .map(|other| Saved::Register(DWARF[other]))
    };
    in_frame
        .or_else(elsewhere)
        .or_else(in_register)
        .unwrap_or(Saved::Undefined)
}
