//! Contexts that processes publish and that were not read.
//!
//! In: a reason for each process. Out: how many there are of each. Never: a context.

/// Reason why a context that is published was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Its layout is of another version.
    OtherVersion,
    /// Its payload has more bytes than are read.
    TooLarge,
    /// Its payload is no such message, is not where it should be, or changes whenever it is read.
    Broken,
    /// The memory that it is in does not answer.
    Silent,
    /// It was not tried: waiting for others took all the time that there is for that.
    NotTried,
}

impl Unread {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::OtherVersion,
        Self::TooLarge,
        Self::Broken,
        Self::Silent,
        Self::NotTried,
    ];

    /// One word for it, as monitoring has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OtherVersion => "other-version",
            Self::TooLarge => "too-large",
            Self::Broken => "broken",
            Self::Silent => "silent",
            Self::NotTried => "not-tried",
        }
    }
}

/// Processes whose context was not read, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnreadContexts([usize; Unread::ALL.len()]);

impl UnreadContexts {
    /// Counts a process.
    pub(crate) fn add(&mut self, reason: Unread) {
        self.0[reason as usize] += 1;
    }

    /// How many there are for a reason.
    pub fn get(&self, reason: Unread) -> usize {
        self.0[reason as usize]
    }

    /// How many there are.
    pub fn total(&self) -> usize {
        self.0.iter().sum()
    }

    /// Whether there is a reason here that others do not have.
    pub(crate) fn has_another_reason_than(&self, others: &Self) -> bool {
        let both = self.0.iter().zip(others.0);
        { both }.any(|(own, other)| *own > 0 && other == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_another_one_once() {
        let mut now = UnreadContexts::default();
        let mut said = now;
        assert!(!now.has_another_reason_than(&said));
        for (reason, is_another) in [
            (Unread::Silent, true),
            (Unread::Silent, false),
            (Unread::OtherVersion, true),
        ] {
            now.add(reason);
            assert_eq!(now.has_another_reason_than(&said), is_another, "{reason:?}");
            said = now;
        }
        assert_eq!((now.get(Unread::Silent), now.total()), (2, 3));
    }
}
