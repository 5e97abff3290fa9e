//! Fallbacks of walks, for code without unwind instructions.

/// Fallbacks that a walk used where there were no unwind instructions: a set, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Fallbacks(u8);

impl Fallbacks {
    /// Unwind instructions alone.
    pub const NONE: Self = Self(0);
    /// A frame pointer in code that its object's rows leave out: a caller may be missing.
    pub const FRAME_POINTER: Self = Self(1);
    /// A [rule](super::Rule) that was read from the code itself.
    pub const CODE: Self = Self(2);

    /// A return address that was looked for in the words of the stack ([`guess`](crate::walk::guess)).
    pub const GUESS: Self = Self(4);

    /// Each of them alone.
    pub const EACH: [Self; 3] = [Self::FRAME_POINTER, Self::CODE, Self::GUESS];

    /// The set with these bits; none if one of them is unknown.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits & !(Self::FRAME_POINTER.0 | Self::CODE.0 | Self::GUESS.0) == 0 {
            Some(Self(bits))
        } else {
            None
        }
    }

    /// Its bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Those of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has all of the others.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_fallbacks_has_what_was_added() {
        let both = Fallbacks::FRAME_POINTER.with(Fallbacks::CODE);
        let all = both.with(Fallbacks::GUESS);
        assert!(Fallbacks::EACH.into_iter().all(|each| all.has(each)));
        assert!(!both.has(Fallbacks::GUESS));
        assert!(!Fallbacks::CODE.has(Fallbacks::FRAME_POINTER));
        assert_eq!(Fallbacks::from_bits(all.bits()), Some(all));
        assert_eq!(Fallbacks::from_bits(1 << Fallbacks::EACH.len()), None);
    }
}
