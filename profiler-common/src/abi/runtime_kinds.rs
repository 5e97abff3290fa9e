//! Sets of runtimes.

use super::{RuntimeKind, Zero};

/// A set of runtimes: bit *k* stands for the one whose [`RuntimeKind`] is *k*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct RuntimeKinds(pub u32);

impl RuntimeKinds {
    /// No runtime.
    pub const NONE: Self = Self(0);

    /// Every runtime that there is.
    pub const ALL: Self = Self((1 << RuntimeKind::ALL.len()) - 1);

    /// Whether this runtime is among them.
    pub const fn has(self, kind: RuntimeKind) -> bool {
        self.0 >> kind as u32 & 1 != 0
    }

    /// Whether all of `others` are among them.
    pub const fn has_all(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

impl From<RuntimeKind> for RuntimeKinds {
    fn from(kind: RuntimeKind) -> Self {
        Self(1 << kind as u32)
    }
}

impl Zero for RuntimeKinds {
    const ZERO: Self = Self::NONE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let two = RuntimeKinds::from(RuntimeKind::Perl).with(RuntimeKind::Lua.into());
        for kind in RuntimeKind::ALL {
            let is_in = matches!(kind, RuntimeKind::Perl | RuntimeKind::Lua);
            assert_eq!(two.has(kind), is_in, "{kind:?}");
            assert!(RuntimeKinds::ALL.has(kind) && !RuntimeKinds::NONE.has(kind));
        }
        assert!(RuntimeKinds::ALL.has_all(two) && two.has_all(RuntimeKinds::NONE));
        assert!(!two.has_all(RuntimeKinds::ALL));
    }
}
