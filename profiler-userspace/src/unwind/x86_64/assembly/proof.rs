//! The proof that rows read from code are right: real objects with unwind instructions are read as if they had none,
//! and at each instruction the state is compared with the rule that the compiler's instructions amount to.

#![expect(
    clippy::print_stdout,
    reason = "the proof says what it compared, and what it could not"
)]

use super::rule::rule;
use super::state::{Base, RBP, RBX, RSP, State, Value};
use crate::code::Undescribed;
use crate::object::{ElfAddress, Image};
use crate::unwind::proof::objects;
use crate::unwind::show::describe;
use crate::unwind::{Error, UnwindTable};
use profiler_common::abi::{Origin, Rule, RuleKind, Slot};
use std::fs::File;
use std::path::Path;
use std::time::Instant;

/// The registers of instructions by DWARF's numbers.
const REGISTERS: [usize; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// The code of one object that there is time for, in bytes.
const MAX_BYTES: usize = if cfg!(debug_assertions) {
    200_000
} else {
    3_000_000
};

/// How many of the differences of one object are printed.
const SHOWN: usize = 5;

/// How often each thing happened, in instructions.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// The code was followed there, and the compiler has a rule.
    followed: u64,
    /// And we have one.
    compared: u64,
    /// It leads to another caller.
    wrong: u64,
    /// It leads to the same caller, but to another frame pointer or rbx of the caller.
    wrong_slots: u64,
    /// The compiler's rule starts from a register of which nothing is known.
    undecided: u64,
}

/// Whether the state has the frame where the rule has it; none if that is not to be decided.
fn agrees(state: &State, rule: Rule, ip: u64) -> Option<bool> {
    let base = state.register(REGISTERS[usize::from(rule.base())]);
    let Value::At(of, offset) = base else {
        return None;
    };
    let is_cfa = |value, offset| match value {
        Value::At(Base::Cfa, cfa) => Some(i64::from(cfa) + offset == 0),
        _ => None,
    };
    match rule.how() {
        RuleKind::Offset => is_cfa(base, rule.operand()),
        RuleKind::Memory => {
            let place = i64::from(offset) + rule.low();
            is_cfa(state.word(of, i32::try_from(place).unwrap()), rule.high())
        }
        RuleKind::Linkage => {
            let pushed = if ip & 15 >= rule.high() as u64 { 8 } else { 0 };
            is_cfa(base, rule.low() + pushed)
        }
        _ => Some(false),
    }
}

/// Whether the state has the caller's register where the rule has it.
fn keeps(state: &State, rule: Rule, slot: Slot, register: usize) -> bool {
    let wanted = Value::Caller(register as u8);
    if slot == Slot::LOST {
        return true;
    }
    if slot == Slot::SAME {
        return state.register(register) == wanted;
    }
    let from = |value| match value {
        Value::At(base, offset) => {
            let place = i64::from(offset) + slot.bytes();
            state.word(base, i32::try_from(place).unwrap()) == wanted
        }
        _ => false,
    };
    match rule.origin() {
        Origin::Cfa => from(Value::At(Base::Cfa, 0)),
        Origin::FramePointer => from(state.register(RBP)),
        Origin::StackPointer => from(state.register(RSP)),
        Origin::Register => state.register(REGISTERS[usize::from(slot.0 as u16 & 15)]) == wanted,
    }
}

/// Compares one object; none if there is a reason not to.
fn compare(path: &Path) -> Option<Tally> {
    let file = File::open(path).ok()?;
    let table = match UnwindTable::parse(std::fs::read(path).ok()?.as_slice()) {
        Err(Error::NotElf) => return None,
        table => table.ok().filter(|table| !table.is_empty())?,
    };
    let code = Undescribed::read(&Image::read(&file).ok()?, &[])?;
    let bytes: usize = code.parts.iter().map(|part| part.1.len()).sum();
    if bytes > MAX_BYTES {
        return None;
    }
    let began = Instant::now();
    let walk = super::flow::follow(&code);
    let took = began.elapsed();
    let mut tally = Tally::default();
    let mut shown = 0;
    for (place, reached) in walk.visited.each() {
        let (part, into) = walk.parts.at(place).unwrap();
        let address = part.address + into as u64;
        let theirs = table.rule_at(ElfAddress(address)).unwrap_or(Rule::MISSING);
        if matches!(theirs.how(), RuleKind::Missing | RuleKind::Unsupported) {
            continue;
        }
        tally.followed += 1;
        let state = walk.states.get(reached.state());
        let ours = rule(state);
        if ours == Rule::MISSING {
            continue;
        }
        tally.compared += 1;
        let agreed = match (theirs.how(), ours.how()) {
            (RuleKind::Root, RuleKind::Root) => continue,
            (RuleKind::Root, _) | (_, RuleKind::Root) => Some(false),
            _ => agrees(state, theirs, address),
        };
        let kept = (ours.fp() == Slot::LOST || keeps(state, theirs, theirs.fp(), RBP))
            && (ours.saved() == Slot::LOST || keeps(state, theirs, theirs.saved(), RBX));
        match agreed {
            None => tally.undecided += 1,
            Some(false) => tally.wrong += 1,
            Some(true) => tally.wrong_slots += u64::from(!kept),
        }
        if (agreed == Some(false) || agreed == Some(true) && !kept) && shown < SHOWN {
            shown += 1;
            println!(
                "{}: {address:#x}: {}; the compiler says {}",
                path.display(),
                describe(ours),
                describe(theirs)
            );
        }
    }
    println!(
        "{:9} of {:9} instructions compared: {:6} wrong, {:6} with wrong slots, {:6} undecided; {:7.1} ms for {:6} KiB: {}",
        tally.compared,
        tally.followed,
        tally.wrong,
        tally.wrong_slots,
        tally.undecided,
        took.as_secs_f64() * 1e3,
        bytes >> 10,
        path.display(),
    );
    Some(tally)
}

#[test]
fn rows_read_from_code_agree_with_the_compilers() {
    let mut sum = Tally::default();
    for path in objects::candidates() {
        if let Some(tally) = compare(&path) {
            sum.followed += tally.followed;
            sum.compared += tally.compared;
            sum.wrong += tally.wrong;
            sum.wrong_slots += tally.wrong_slots;
            sum.undecided += tally.undecided;
        }
    }
    println!("{sum:?}");
    assert!(sum.compared > 1000, "this machine has no programs");
    assert!(
        sum.compared * 100 >= sum.followed * 95,
        "much of the code is not followed: {sum:?}"
    );
    for different in [sum.wrong, sum.wrong_slots, sum.undecided] {
        assert!(
            different * 1000 <= sum.compared,
            "one in a thousand is not as the compiler says: {sum:?}"
        );
    }
}
