//! Registers and stack before an instruction, as far as known.
//!
//! In: assignments, and other states. Out: a [`State`]. What is not known for certain is [`Value::Unknown`]. Never
//! looks at an instruction: [`effect`](super::effect) does.

use super::registers::Registers;

/// The numbers of registers, as instructions encode them.
pub(super) const RBX: usize = 3;
pub(super) const RSP: usize = 4;
pub(super) const RBP: usize = 5;

/// The registers that a function leaves as they were (System V ABI, AMD64 supplement, section 3.2.1), except rsp.
pub(super) const KEPT: [usize; 6] = [RBX, RBP, 12, 13, 14, 15];

/// The most words of a stack that are followed; functions save a third of these.
const MAX_SLOTS: usize = 24;

/// Signal handlers leave so many bytes below the stack pointer alone (System V ABI, AMD64 supplement, section 3.2.2).
const RED_ZONE: i32 = 128;

/// Frames larger than this are not followed, in bytes.
const MAX_FRAME: i64 = 1 << 24;

/// Origin that an address is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Base {
    /// The stack pointer before the function was called.
    Cfa,
    /// The value that the stack pointer was set to when this place was last passed: something
    /// unknown, or aligned.
    Set(u32),
}

/// Value of a register or of a word of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Unknown,
    /// The caller's value of this register.
    Caller(u8),
    /// The return address.
    Return,
    /// An address: so many bytes from something.
    At(Base, i32),
}

/// A word of the stack, and where it is.
type Slot = (Base, i32, Value);

/// Registers and stack before an instruction, as far as known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    registers: [Value; 16],
    /// Words of the stack that hold something known: sorted, disjoint.
    slots: Vec<Slot>,
    /// Whether it is the outermost function of a program.
    pub(super) is_root: bool,
}

impl State {
    /// The state in which a function is called.
    pub(super) fn called() -> Self {
        let mut registers = [Value::Unknown; 16];
        for register in KEPT {
            registers[register] = Value::Caller(register as u8);
        }
        registers[RSP] = Value::At(Base::Cfa, -8);
        Self {
            registers,
            slots: vec![(Base::Cfa, -8, Value::Return)],
            is_root: false,
        }
    }

    /// The state in which a program is started.
    pub(super) fn started() -> Self {
        Self {
            is_root: true,
            ..Self::called()
        }
    }

    /// The state in which nothing is known.
    pub(super) const fn unknown() -> Self {
        Self {
            registers: [Value::Unknown; 16],
            slots: Vec::new(),
            is_root: false,
        }
    }

    /// Value of a register.
    pub(super) const fn register(&self, register: usize) -> Value {
        self.registers[register & 15]
    }

    /// Value of the stack pointer, if it is known.
    pub(super) const fn stack(&self) -> Option<(Base, i32)> {
        match self.registers[RSP] {
            Value::At(base, offset) => Some((base, offset)),
            _ => None,
        }
    }

    /// Whether the frame is known only by a register that calls may change, or that walks do not follow.
    pub(super) fn needs_scratch_register(&self) -> bool {
        let holds = |register: usize| matches!(self.registers[register], Value::At(Base::Cfa, _));
        !matches!(self.stack(), Some((Base::Cfa, _)))
            && ![RBP, RBX].into_iter().any(holds)
            && (0..16).any(holds)
    }

    /// Value of the word at a place.
    pub(super) fn word(&self, base: Base, offset: i32) -> Value {
        let found = self
            .slots
            .binary_search_by_key(&(base, offset), |slot| (slot.0, slot.1));
        found.map_or(Value::Unknown, |place| self.slots[place].2)
    }

    /// The words that hold something known.
    pub(super) fn words(&self) -> impl DoubleEndedIterator<Item = &Slot> {
        self.slots.iter()
    }

    /// Whether the return address is where it was put.
    pub(super) fn keeps_return(&self) -> bool {
        self.word(Base::Cfa, -8) == Value::Return
    }

    /// Whether the function has taken its frame down, as before it returns or jumps to another in its place.
    pub(super) fn has_restored(&self) -> bool {
        let is_left =
            |slot: &Slot| slot.0 == Base::Cfa && slot.1 < -8 && matches!(slot.2, Value::Caller(_));
        self.stack() == Some((Base::Cfa, -8)) && self.slots.iter().any(is_left)
    }

    /// Gives a register a value; `at` is the place of the instruction that does.
    pub(super) fn set(&mut self, register: usize, value: Value, at: u32) {
        let register = register & 15;
        if register != RSP {
            self.registers[register] = value;
            return;
        }
        self.registers[RSP] = match value {
            Value::At(..) => value,
            _ => {
                self.forget(Base::Set(at));
                Value::At(Base::Set(at), 0)
            }
        };
        if let Some((base, offset)) = self.stack() {
            self.slots
                .retain(|slot| slot.0 != base || slot.1 >= offset.saturating_sub(RED_ZONE));
        }
    }

    /// The same, where all that is counted from what the stack pointer is counted from is counted from the stack pointer here,
    /// at a place: so two states whose stacks were set apart can be compared.
    fn rebased(&self, at: u32) -> Self {
        let mut anew = self.clone();
        let (Some((base, stack)), here) = (self.stack(), Base::Set(at)) else {
            return anew;
        };
        if base != here {
            anew.forget(here);
        }
        let moved = |of: Base, offset: i32| match of == base {
            true => (here, offset.saturating_sub(stack)),
            false => (of, offset),
        };
        let value = |value| match value {
            Value::At(of, offset) => {
                let (of, offset) = moved(of, offset);
                Value::At(of, offset)
            }
            _ => value,
        };
        anew.registers = anew.registers.map(value);
        for slot in &mut anew.slots {
            let (of, offset) = moved(slot.0, slot.1);
            *slot = (of, offset, value(slot.2));
        }
        anew.slots.sort_unstable_by_key(|slot| (slot.0, slot.1));
        anew
    }

    /// Forgets all that is counted from `base`.
    fn forget(&mut self, base: Base) {
        let is_of = |value: Value| matches!(value, Value::At(of, _) if of == base);
        for value in &mut self.registers {
            if is_of(*value) {
                *value = Value::Unknown;
            }
        }
        self.slots.retain(|slot| slot.0 != base && !is_of(slot.2));
    }

    /// Moves the stack pointer by so many bytes.
    pub(super) fn grow(&mut self, bytes: i64, at: u32) {
        let moved = moved(self.registers[RSP], bytes);
        self.set(RSP, moved, at);
        if bytes < 0
            && let Some((base, offset)) = self.stack()
        {
            // A stack that is left for one further up: what was below is overwritten from now on.
            if base == Base::Cfa {
                self.slots.retain(|slot| slot.0 == Base::Cfa);
            }
            let bytes = i32::try_from(bytes.unsigned_abs()).unwrap_or(i32::MAX);
            self.overwrite(base, offset, bytes);
        }
    }

    /// Stores a value in eight bytes.
    pub(super) fn store(&mut self, base: Base, offset: i32, value: Value) {
        self.overwrite(base, offset, 8);
        if value == Value::Unknown || self.slots.len() == MAX_SLOTS {
            return;
        }
        let place = self
            .slots
            .partition_point(|slot| (slot.0, slot.1) < (base, offset));
        self.slots.insert(place, (base, offset, value));
    }

    /// Something unknown is stored in so many bytes.
    pub(super) fn overwrite(&mut self, base: Base, offset: i32, bytes: i32) {
        let end = offset.saturating_add(bytes);
        self.slots
            .retain(|slot| slot.0 != base || slot.1 >= end || slot.1.saturating_add(8) <= offset);
    }

    /// A function was called and has returned. It left the registers `unwritten` as they were, whatever it should do.
    pub(super) fn after_call(&mut self, unwritten: Registers) {
        for register in 0..16 {
            if register != RSP && !KEPT.contains(&register) && !unwritten.has(register) {
                self.registers[register] = Value::Unknown;
            }
        }
        if let Some((base, offset)) = self.stack() {
            let is_own = |slot: &Slot| slot.0 == Base::Cfa || base != Base::Cfa;
            self.slots
                .retain(|slot| is_own(slot) && (slot.0 != base || slot.1 >= offset));
        }
    }

    /// The part of this state that can be used while a function is called: walks follow rsp, rbp
    /// and rbx alone, and one call deep all that is `unwritten` meanwhile.
    pub(super) fn while_calling(&self, unwritten: Registers) -> Self {
        let mut left = self.clone();
        left.after_call(unwritten);
        for (register, value) in left.registers.iter_mut().enumerate() {
            let is_followed = [RSP, RBP, RBX].contains(&register) || unwritten.has(register);
            if !is_followed && *value != Value::Caller(register as u8) {
                *value = Value::Unknown;
            }
        }
        left
    }

    /// The meet of two states, which holds whether one came in this or in the other; `at` is the
    /// place.
    pub(super) fn meet(&self, other: &Self, at: u32) -> Self {
        if let (Some((ours @ Base::Set(_), _)), Some((theirs @ Base::Set(_), _))) =
            (self.stack(), other.stack())
            && ours != theirs
        {
            return self.rebased(at).meet(&other.rebased(at), at);
        }
        let mut met = self.clone();
        for (ours, theirs) in met.registers.iter_mut().zip(&other.registers) {
            if ours != theirs {
                *ours = Value::Unknown;
            }
        }
        met.slots.retain(|slot| other.slots.contains(slot));
        if self.is_root != other.is_root {
            return Self::unknown();
        }
        if self.registers[RSP] != other.registers[RSP] && ![self, other].contains(&&Self::unknown())
        {
            met.set(RSP, Value::Unknown, at);
        }
        met
    }
}

/// A value, so many bytes further up.
pub(super) fn moved(value: Value, bytes: i64) -> Value {
    match value {
        Value::At(base, offset) => {
            let moved = i64::from(offset).saturating_add(bytes);
            match i32::try_from(moved) {
                Ok(moved) if i64::from(moved).abs() < MAX_FRAME => Value::At(base, moved),
                _ => Value::Unknown,
            }
        }
        _ => Value::Unknown,
    }
}
