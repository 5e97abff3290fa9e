//! Sets of general registers.
//!
//! In: their numbers, as instructions encode them. Out: whether one is in a set.

/// A set of general registers: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers(u16);

impl Registers {
    /// Every register.
    pub(super) const ALL: Self = Self(u16::MAX);

    /// The others.
    #[must_use]
    pub(super) const fn without(self, register: usize) -> Self {
        Self(self.0 & !(1 << (register & 15)))
    }

    /// Whether a register is one of them.
    pub(super) const fn has(self, register: usize) -> bool {
        self.0 >> (register & 15) & 1 != 0
    }
}
