//! Programs that run again and again.
//!
//! In: names of programs, and whether a look at a process of one found anything that was new. Out: whether the next one is worth a look
//! soon. A name may lie: then unwind tables come later, when samples come to their code, and nothing is wrong.

use foldhash::HashMap;

/// Comm of a process's first thread, as the kernel has it.
pub(super) type Comm = [u8; 16];

/// After so many looks in a row that found nothing new, the next would find nothing either.
const ENOUGH: u8 = 3;

/// More names than these are not remembered: all are forgotten then.
const MAX: usize = 4096;

/// How often looks at programs found nothing new.
#[derive(Debug, Default)]
pub(super) struct Programs(HashMap<Comm, u8>);

impl Programs {
    /// Whether all is known of what processes of this name map when they begin.
    pub(super) fn is_known(&self, name: &Comm) -> bool {
        self.0.get(name).is_some_and(|looks| *looks >= ENOUGH)
    }

    /// Takes in a look at a process of this name.
    pub(super) fn take(&mut self, name: Comm, found_new: bool) {
        if self.0.len() >= MAX && !self.0.contains_key(&name) {
            self.0.clear();
        }
        let looks = self.0.entry(name).or_default();
        *looks = match found_new {
            true => 0,
            false => looks.saturating_add(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_until_it_brings_something_new() {
        let (cat, dog) = ([b'c'; 16], [b'd'; 16]);
        let mut programs = Programs::default();
        for _ in 0..ENOUGH {
            assert!(!programs.is_known(&cat));
            programs.take(cat, false);
        }
        assert!(programs.is_known(&cat) && !programs.is_known(&dog));
        programs.take(cat, true);
        assert!(!programs.is_known(&cat));
    }

    #[test]
    fn ever_new_names_take_no_more_memory() {
        let mut programs = Programs::default();
        for number in 0..3 * MAX as u128 {
            programs.take(number.to_le_bytes(), false);
            assert!(programs.0.len() <= MAX);
        }
    }
}
