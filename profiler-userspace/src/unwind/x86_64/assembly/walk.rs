//! Follows one function from its beginning to wherever it leads.
//!
//! In: a place, and the state there. Out: the state before each instruction that is reached. Where two ways meet, only what
//! both know is known. Never chooses where to begin: [`flow`](super::flow) does.

use super::effect;
use super::leaves::Leaves;
use super::parts::{Parts, is_padding};
use super::registers::Registers;
use super::state::{Base, KEPT, State, Value};
use super::states::States;
use super::visited::{Reached, Visited};
use foldhash::{HashSet, HashSetExt as _};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// How often each byte of code may be decoded, on average. A tenth of this is usual.
const MAX_STEPS_PER_BYTE: usize = 4;

/// Why a way is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It cannot be as was supposed: a function returns from the middle of its frame, or runs into data.
    Contradiction,
    /// There was too much of it.
    Budget,
}

/// How sure it is that a function begins at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// A contradiction is taken for a call that never returns.
    Certain,
    /// A contradiction shows that there is no function.
    Likely,
}

/// A way that is still to be followed.
#[derive(Clone, Copy, Debug)]
struct Way {
    place: u32,
    state: u32,
    /// The instruction just before; none if this was jumped to.
    came_from: Option<u32>,
    /// The function that was called just before, which may never return.
    after_call: Option<Callee>,
}

/// Callee: an address, or the place in memory that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Callee {
    Address(u64),
    Pointer(u64),
    /// That is known when the call is made.
    Computed,
}

impl Callee {
    fn of(instruction: &Instruction) -> Self {
        if instruction.op0_kind() == OpKind::NearBranch64 {
            Self::Address(instruction.near_branch_target())
        } else if instruction.is_ip_rel_memory_operand() {
            Self::Pointer(instruction.ip_rel_memory_address())
        } else {
            Self::Computed
        }
    }
}

/// Where a function's ways were left.
#[derive(Debug, Default)]
struct Left {
    /// Places behind instructions that never go on.
    ends: Vec<u32>,
    /// Computed jumps, with the state there.
    computed: Vec<(u32, u32)>,
}

impl Left {
    const fn count(&self) -> (usize, usize) {
        (self.ends.len(), self.computed.len())
    }

    fn truncate(&mut self, (ends, computed): (usize, usize)) {
        self.ends.truncate(ends);
        self.computed.truncate(computed);
    }
}

/// Code, and what is known of it.
pub(super) struct Walk<'c> {
    pub(super) parts: Parts<'c>,
    pub(super) visited: Visited,
    pub(super) states: States,
    steps_left: usize,
    /// How sure it is that what is followed now is a function.
    trust: Trust,
    /// Where functions begin.
    pub(super) begins: BTreeSet<u32>,
    /// Where functions begin that are called and not followed yet.
    pub(super) called: Vec<u32>,
    /// Addresses of code that were taken.
    pub(super) taken: BTreeSet<u32>,
    /// Where jumps lead.
    targets: HashSet<u32>,
    /// Places behind instructions that never go on.
    pub(super) ends: BTreeSet<u32>,
    /// Jumps to what a register or memory says, with the state there.
    pub(super) computed: BTreeMap<u32, u32>,
    /// Functions that turned out never to return.
    pub(super) endless: HashSet<Callee>,
    /// Where a way behind a call came first.
    after_calls: HashSet<u32>,
    leaves: Leaves,
    factory: InstructionInfoFactory,
}

impl<'c> Walk<'c> {
    /// Follows nothing yet.
    pub(super) fn new(parts: Parts<'c>) -> Self {
        Self {
            visited: Visited::new(parts.places()),
            states: States::new(),
            steps_left: parts.places().saturating_mul(MAX_STEPS_PER_BYTE),
            trust: Trust::Certain,
            begins: BTreeSet::new(),
            called: Vec::new(),
            taken: BTreeSet::new(),
            targets: HashSet::new(),
            ends: BTreeSet::new(),
            computed: BTreeMap::new(),
            endless: HashSet::new(),
            after_calls: HashSet::new(),
            leaves: Leaves::default(),
            factory: InstructionInfoFactory::new(),
            parts,
        }
    }

    /// Follows a function from its beginning. What turns out to be none is forgotten, or where it must be one, unknown.
    ///
    /// # Errors
    /// There was too much to follow.
    pub(super) fn begin(&mut self, place: u32, state: u32, trust: Trust) -> Result<(), Refusal> {
        self.trust = trust;
        let called_before = self.called.len();
        let mut behind_calls = Vec::new();
        let mut left = Left::default();
        let way = Way {
            place,
            state,
            came_from: None,
            after_call: None,
        };
        let mut outcome = self.run(way, &mut behind_calls, &mut left);
        while outcome.is_ok()
            && let Some(way) = behind_calls.pop()
        {
            let (mark, left_before) = (self.visited.mark(), left.count());
            let queued = behind_calls.len();
            outcome = self.run(way, &mut behind_calls, &mut left);
            if outcome == Err(Refusal::Contradiction) && trust == Trust::Certain {
                self.endless.extend(way.after_call);
                self.visited.undo(mark);
                behind_calls.truncate(queued);
                left.truncate(left_before);
                outcome = Ok(());
            }
        }
        match (outcome, trust) {
            (Ok(()), _) => {
                self.ends.extend(left.ends);
                self.computed.extend(left.computed);
                if state == States::CALLED {
                    self.begins.insert(place);
                }
            }
            (Err(Refusal::Contradiction), Trust::Certain) => {
                self.visited.spoil(0, States::UNKNOWN);
            }
            (Err(_), _) => {
                self.visited.undo(0);
                for called in self.called.drain(called_before..) {
                    self.begins.remove(&called);
                }
            }
        }
        self.visited.commit();
        match outcome {
            Err(Refusal::Budget) => outcome,
            _ => Ok(()),
        }
    }

    /// Follows one way, and all jumps from it.
    fn run(
        &mut self,
        way: Way,
        behind_calls: &mut Vec<Way>,
        left: &mut Left,
    ) -> Result<(), Refusal> {
        let mut ways = vec![way];
        while let Some(way) = ways.pop() {
            self.run_straight(way, &mut ways, behind_calls, left)?;
        }
        Ok(())
    }

    /// Follows one way up to where it ends or joins another.
    fn run_straight(
        &mut self,
        way: Way,
        ways: &mut Vec<Way>,
        behind_calls: &mut Vec<Way>,
        left: &mut Left,
    ) -> Result<(), Refusal> {
        let Some((part, into)) = self.parts.at(way.place) else {
            return Ok(());
        };
        let (first, address, bytes) = (part.first, part.address, part.bytes);
        let ip = address.wrapping_add(into as u64);
        let mut decoder = Decoder::with_ip(64, &bytes[into..], ip, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut number = way.state;
        let mut state = self.states.get(number).clone();
        let mut only_padding = way.after_call.is_some();
        let mut place = way.place;
        let mut came_from = way.came_from;
        while decoder.can_decode() {
            if only_padding && number != States::CALLED && self.begins.contains(&place) {
                self.endless.extend(way.after_call);
                return Ok(());
            }
            let before = self.visited.at(place).map(Reached::state);
            let merged = match before {
                None if number != States::STARTED && self.begins.contains(&place) => {
                    self.meet(States::CALLED, number, place)
                }
                None => number,
                Some(before) if before == number => return Ok(()),
                Some(before) => {
                    if place == way.place
                        && way.after_call.is_some()
                        && self.never_returns(place, before, number)
                    {
                        self.endless.extend(way.after_call);
                        return Ok(());
                    }
                    match self.is_joint(place, came_from) {
                        true => self.meet(before, number, place),
                        // The way here is the same, and now less is known of it, or something else.
                        false => number,
                    }
                }
            };
            if before == Some(merged) {
                return Ok(());
            }
            if before.is_none() && place == way.place && way.after_call.is_some() {
                self.after_calls.insert(place);
            }
            if merged != number {
                number = merged;
                state = self.states.get(number).clone();
            }
            self.steps_left = self.steps_left.checked_sub(1).ok_or(Refusal::Budget)?;
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                return Err(Refusal::Contradiction);
            }
            if self.trust == Trust::Likely && is_unlike_functions(&instruction, &state) {
                return Err(Refusal::Contradiction);
            }
            let is_call = instruction.is_call_near() || instruction.is_call_near_indirect();
            let unwritten = match is_call {
                true => self.unwritten(&instruction, &state),
                false => Registers::default(),
            };
            if is_call {
                // Frames that have called are found by the state here.
                number = self.states.number(&state.while_calling(unwritten));
            }
            self.visited.set(place, number, instruction.len());
            only_padding &= is_padding(&instruction);
            let next = first + (decoder.ip().wrapping_sub(address)) as u32;
            let goes_on = self.leave(&instruction, &state, next, ways)?;
            if !goes_on {
                left.ends.push(next);
                if instruction.flow_control() == FlowControl::IndirectBranch
                    && !instruction.is_ip_rel_memory_operand()
                    && !state.has_restored()
                {
                    left.computed.push((place, number));
                }
                return Ok(());
            }
            if is_call {
                state.after_call(unwritten);
            } else {
                effect::follow(&mut state, &instruction, &mut self.factory, place);
            }
            if state != *self.states.get(number) {
                number = self.states.number(&state);
            }
            if is_call {
                let callee = Callee::of(&instruction);
                if self.endless.contains(&callee) || !decoder.can_decode() {
                    return Ok(());
                }
                behind_calls.push(Way {
                    place: next,
                    state: number,
                    came_from: Some(place),
                    after_call: Some(callee),
                });
                return Ok(());
            }
            if instruction.code() == Code::Lea_r64_m && instruction.is_ip_rel_memory_operand() {
                self.taken
                    .extend(self.parts.place(instruction.ip_rel_memory_address()));
            }
            came_from = Some(place);
            place = next;
        }
        Ok(())
    }

    /// The registers that a called function leaves as they were, if the frame can be found only by a scratch register.
    fn unwritten(&mut self, call: &Instruction, state: &State) -> Registers {
        if !state.needs_scratch_register() || call.op0_kind() != OpKind::NearBranch64 {
            return Registers::default();
        }
        let Some(place) = self.parts.place(call.near_branch_target()) else {
            return Registers::default();
        };
        let (factory, steps) = (&mut self.factory, &mut self.steps_left);
        self.leaves.unwritten(&self.parts, place, factory, steps)
    }

    /// Whether more than one way leads to a place: jumps, or besides the instruction that this way came from another one.
    fn is_joint(&self, place: u32, came_from: Option<u32>) -> bool {
        /// The longest instruction of the machine, in bytes.
        const LONGEST: u32 = 15;
        let leads_here = |other: u32| {
            Some(other) != came_from
                && self
                    .visited
                    .at(other)
                    .is_some_and(|reached| other + reached.bytes() == place)
        };
        came_from.is_none()
            || self.targets.contains(&place)
            || self.begins.contains(&place)
            || (place.saturating_sub(LONGEST)..place).any(leads_here)
    }

    /// Whether a way behind a call contradicts what is known from jumps: both know where the frame is, and differ.
    fn never_returns(&self, place: u32, before: u32, number: u32) -> bool {
        let [known, new] = [before, number].map(|number| self.states.get(number).stack());
        matches!((known, new), (Some((Base::Cfa, known)), Some((Base::Cfa, new))) if known != new)
            && !self.after_calls.contains(&place)
    }

    fn meet(&mut self, one: u32, other: u32, place: u32) -> u32 {
        let met = self.states.get(one).meet(self.states.get(other), place);
        self.states.number(&met)
    }

    /// Where an instruction leads besides to the next; says whether it leads to that.
    fn leave(
        &mut self,
        instruction: &Instruction,
        state: &State,
        next: u32,
        ways: &mut Vec<Way>,
    ) -> Result<bool, Refusal> {
        let target = || match instruction.op0_kind() {
            OpKind::NearBranch64 => self.parts.place(instruction.near_branch_target()),
            _ => None,
        };
        match instruction.flow_control() {
            FlowControl::Return => {
                match state.stack() {
                    Some((Base::Cfa, offset)) if offset != -8 && state.keeps_return() => {
                        return Err(Refusal::Contradiction);
                    }
                    _ => {}
                }
                Ok(false)
            }
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                if let Some(target) = target() {
                    self.targets.insert(target);
                    let state = self.states.number(state);
                    ways.push(Way {
                        place: target,
                        state,
                        came_from: None,
                        after_call: None,
                    });
                }
                Ok(instruction.flow_control() == FlowControl::ConditionalBranch)
            }
            // The return address is gone: this was no call.
            FlowControl::IndirectBranch => match state.stack() {
                Some((Base::Cfa, -7..)) => Err(Refusal::Contradiction),
                _ => Ok(false),
            },
            FlowControl::Call => {
                if let Some(target) = target().filter(|&target| target != next)
                    && self.begins.insert(target)
                {
                    self.called.push(target);
                }
                Ok(true)
            }
            FlowControl::Exception | FlowControl::Interrupt => Ok(!matches!(
                instruction.mnemonic(),
                Mnemonic::Ud2 | Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Int3
            )),
            _ => Ok(instruction.mnemonic() != Mnemonic::Hlt),
        }
    }
}

/// Whether no function does this, in this state, that another may call by its address (System V ABI, AMD64 supplement,
/// sections 3.2.1 and 3.2.2): then a label of a computed jump was taken for one. Direct calls tell nothing: assembly
/// calls its own helpers with any stack.
fn is_unlike_functions(instruction: &Instruction, state: &State) -> bool {
    let changes_kept =
        |&register: &usize| state.register(register) != Value::Caller(register as u8);
    // Callee-saved registers hold the caller's values, which no function uses as addresses.
    let base = effect::number(instruction.memory_base());
    base.is_some_and(|base| matches!(state.register(base), Value::Caller(_)))
        || match instruction.flow_control() {
            FlowControl::IndirectCall => {
                matches!(state.stack(), Some((Base::Cfa, offset)) if offset % 16 != 0)
            }
            FlowControl::Return | FlowControl::IndirectBranch => {
                state.stack() == Some((Base::Cfa, -8)) && KEPT.iter().any(changes_kept)
            }
            _ => false,
        }
}
