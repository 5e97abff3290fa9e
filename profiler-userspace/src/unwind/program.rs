//! Runs the unwind instructions of one description.
//!
//! In: instructions, one at a time. Out: the [`State`] after each. Knows nothing of the machine:
//! [`registers`](super::arch::registers) says which registers are followed. See DWARF 5, section 6.4.2.

use super::arch::registers::{FOLLOWED, followed};
use super::expression::Expression;
use gimli::{CallFrameInstruction, EndianSlice, LittleEndian, Register, UnwindSection};

/// How many states may be pushed (`DW_CFA_remember_state`); compilers push one.
const MAX_DEPTH: usize = 64;

/// Where a caller's register is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved {
    /// Unspecified, or unchanged by the callee.
    Same,
    /// Lost.
    Undefined,
    /// At this offset from the CFA, in bytes.
    Offset(i64),
    /// In another register.
    Register(u16),
    /// At the address an expression gives.
    At(Expression),
    /// It is the value of an expression.
    Computed,
}

/// State from one address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The register that the CFA is relative to.
    pub(super) base: u16,
    /// The CFA's offset from it, in bytes.
    pub(super) offset: i64,
    /// The expression for the CFA, if it is given by one.
    pub(super) expression: Option<Expression>,
    /// The followed registers, in the order of [`FOLLOWED`].
    pub(super) saved: [Saved; FOLLOWED],
}

impl State {
    /// The state before any instruction.
    pub(super) const EMPTY: Self = Self {
        base: u16::MAX,
        offset: 0,
        expression: None,
        saved: [Saved::Same; FOLLOWED],
    };
}

/// The factors and addresses that a description's instructions use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors {
    pub(super) code: u64,
    pub(super) stack: i64,
    pub(super) encoding: gimli::Encoding,
}

/// The effect of an instruction.
pub(super) enum Effect {
    /// It changed the state.
    State,
    /// Later changes hold from so many bytes further on.
    Advance(u64),
    /// Later changes hold from this address on.
    Jump(u64),
}

/// Invalid instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// The current state, and the pushed ones.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) state: State,
    initial: State,
    aside: Vec<State>,
    /// Whether the state may have changed since [`changed`](Self::changed) was last called.
    changed: bool,
}

impl Program {
    /// Begins with nothing known.
    pub(super) const fn new() -> Self {
        Self {
            state: State::EMPTY,
            initial: State::EMPTY,
            aside: Vec::new(),
            changed: true,
        }
    }

    /// Resets to the state before a description's first instruction.
    pub(super) fn begin(&mut self, initial: &State) {
        self.state = *initial;
        self.initial = *initial;
        self.aside.clear();
        self.changed = true;
    }

    /// The state, if it may have changed since the last call. Most instructions concern registers that are
    /// not followed, and comparing states costs more than running instructions.
    #[inline]
    pub(super) fn changed(&mut self) -> Option<&State> {
        std::mem::take(&mut self.changed).then_some(&self.state)
    }

    /// Runs one instruction.
    #[inline]
    pub(super) fn run<'a, S>(
        &mut self,
        instruction: &CallFrameInstruction<usize>,
        factors: &Factors,
        section: &S,
    ) -> Result<Effect, Nonsense>
    where
        S: UnwindSection<EndianSlice<'a, LittleEndian>>,
    {
        use CallFrameInstruction as I;
        let stack = |units: i64| units.wrapping_mul(factors.stack);
        let read = |expression: gimli::UnwindExpression<usize>| {
            let expression = expression.get(section).map_err(|_| Nonsense)?;
            Ok(Expression::read(expression, factors.encoding))
        };
        match *instruction {
            I::AdvanceLoc { delta } => {
                return Ok(Effect::Advance(u64::from(delta).wrapping_mul(factors.code)));
            }
            I::SetLoc { address } => return Ok(Effect::Jump(address)),
            I::DefCfa { register, offset } => self.cfa(register, offset.cast_signed()),
            I::DefCfaSf {
                register,
                factored_offset,
            } => self.cfa(register, stack(factored_offset)),
            // As in GCC's unwinder, a register ends an expression and an offset does not
            // (`libgcc/unwind-dw2.c`, `execute_cfa_program`).
            I::DefCfaRegister { register } => self.cfa(register, self.state.offset),
            I::DefCfaOffset { offset } => self.change().offset = offset.cast_signed(),
            I::DefCfaOffsetSf { factored_offset } => self.change().offset = stack(factored_offset),
            I::DefCfaExpression { expression } => {
                self.change().expression = Some(read(expression)?);
            }
            I::Offset {
                register,
                factored_offset,
            } => self.save(
                register,
                Saved::Offset(stack(factored_offset.cast_signed())),
            ),
            I::OffsetExtendedSf {
                register,
                factored_offset,
            } => self.save(register, Saved::Offset(stack(factored_offset))),
            I::Undefined { register } => self.save(register, Saved::Undefined),
            I::SameValue { register } => self.save(register, Saved::Same),
            I::Register {
                dest_register,
                src_register,
            } => self.save(dest_register, Saved::Register(src_register.0)),
            I::Expression {
                register,
                expression,
            } => {
                if followed(register.0).is_some() {
                    self.save(register, Saved::At(read(expression)?));
                }
            }
            I::ValOffset { register, .. }
            | I::ValOffsetSf { register, .. }
            | I::ValExpression { register, .. } => self.save(register, Saved::Computed),
            I::Restore { register } => {
                if let Some(place) = followed(register.0) {
                    let initial = self.initial.saved[place];
                    self.change().saved[place] = initial;
                }
            }
            I::RememberState => {
                if self.aside.len() == MAX_DEPTH {
                    return Err(Nonsense);
                }
                self.aside.push(self.state);
            }
            I::RestoreState => *self.change() = self.aside.pop().ok_or(Nonsense)?,
            I::ArgsSize { .. } | I::Nop => {}
            _ => return Err(Nonsense),
        }
        Ok(Effect::State)
    }

    fn cfa(&mut self, register: Register, offset: i64) {
        let state = self.change();
        state.base = register.0;
        state.offset = offset;
        state.expression = None;
    }

    fn save(&mut self, register: Register, saved: Saved) {
        if let Some(place) = followed(register.0) {
            self.change().saved[place] = saved;
        }
    }

    #[inline]
    const fn change(&mut self) -> &mut State {
        self.changed = true;
        &mut self.state
    }
}
