//! Running the unwind instructions of one description.
//!
//! In: instructions, one at a time. Out: the [`State`] after each. Knows no machine: which registers
//! are followed is [`x86_64`](super::x86_64)'s business. See DWARF 5, section 6.4.2.

use super::expression::Expression;
use super::x86_64::{FOLLOWED, followed};
use gimli::{CallFrameInstruction, EndianSlice, LittleEndian, Register, UnwindSection};

/// The deepest that states are put aside; compilers go one deep.
const MAX_DEPTH: usize = 64;

/// Where a caller's register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved {
    /// Nothing was said, or that the callee leaves it alone.
    Same,
    /// It is nowhere.
    Undefined,
    /// So many bytes from the CFA.
    Offset(i64),
    /// In another register.
    Register(u16),
    /// At the address that an expression gives.
    At(Expression),
    /// It is computed.
    Computed,
}

/// What holds from one address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The register from which the CFA is counted.
    pub(super) base: u16,
    /// How far the CFA is from it, in bytes.
    pub(super) offset: i64,
    /// What gives the CFA instead.
    pub(super) expression: Option<Expression>,
    /// The registers that are followed, in the order of [`FOLLOWED`].
    pub(super) saved: [Saved; FOLLOWED],
}

impl State {
    /// Before any instruction.
    pub(super) const EMPTY: Self = Self {
        base: u16::MAX,
        offset: 0,
        expression: None,
        saved: [Saved::Same; FOLLOWED],
    };
}

/// What every instruction of a description counts in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors {
    pub(super) code: u64,
    pub(super) stack: i64,
    pub(super) encoding: gimli::Encoding,
}

/// What an instruction did.
pub(super) enum Effect {
    /// It changed the state.
    State,
    /// What follows holds from so many bytes further on.
    Advance(u64),
    /// What follows holds from this address on.
    Jump(u64),
}

/// Instructions that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// A state, and those put aside.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) state: State,
    initial: State,
    aside: Vec<State>,
    /// Whether the state may be another than when it was last [looked at](Self::changed).
    changed: bool,
}

impl Program {
    /// Begins where nothing is known.
    pub(super) const fn new() -> Self {
        Self {
            state: State::EMPTY,
            initial: State::EMPTY,
            aside: Vec::new(),
            changed: true,
        }
    }

    /// Begins again, with the state that holds before the first instruction of a description.
    pub(super) fn begin(&mut self, initial: State) {
        self.state = initial;
        self.initial = initial;
        self.aside.clear();
        self.changed = true;
    }

    /// The state, if it may be another than when this was asked last: most instructions are about registers
    /// that are not followed, and to compare states costs more than to run instructions.
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
