//! Checks of walks: whether a program's stacks are as they should be.
//!
//! In: folded user stacks, and the truth about the program. Out: whether each stack is complete, or says
//! why it is not. Never believes a stack by its share alone: one frame that was never called is a failure.

use crate::folded::{Folded, Stack};
use profiler_common::abi::StackEnd;

/// The functions of the workload `chain`, from root to leaf.
pub const TWELVE: [&str; 14] = [
    "main", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
    "tenth", "eleventh", "twelfth", "burn",
];

impl Stack {
    /// The frame that says that the walk did not reach the root, and why.
    pub fn mark(&self) -> Option<&str> {
        let frame = self.frames.get(1)?;
        let mut marks = StackEnd::ALL.into_iter().filter_map(StackEnd::mark);
        marks.find(|mark| mark == frame)
    }

    /// Whether some part of `chain` that begins where it begins ends this stack.
    pub fn ends_along(&self, chain: &[&str]) -> bool {
        self.position(chain[0]).is_some_and(|start| {
            let rest = &self.frames[start..];
            rest.len() <= chain.len() && rest.iter().zip(chain).all(|(frame, name)| frame == name)
        })
    }

    /// Whether it begins where a process does: at `_start`, and with the C library between that and `main`.
    pub fn begins_at_start(&self) -> bool {
        let main = self.position("main").unwrap_or(self.frames.len());
        // Two functions of the GNU C library, three of musl.
        self.frames.get(1).is_some_and(|frame| frame == "_start") && (2..=5).contains(&main)
    }
}

impl Folded {
    /// Panics unless each stack is complete: from the process's start along `chain`, as far as it goes.
    #[track_caller]
    pub fn assert_complete(&self, chain: &[&str]) {
        self.assert_along(chain);
        for stack in &self.stacks {
            assert!(
                stack.begins_at_start(),
                "{:?} does not begin at the start, in {self}",
                stack.frames
            );
        }
    }

    /// Panics unless each stack is unmarked and goes along `chain`, and many go along all of it.
    #[track_caller]
    pub fn assert_along(&self, chain: &[&str]) {
        assert!(self.total() > 0, "nothing was sampled");
        for stack in &self.stacks {
            assert_eq!(stack.mark(), None, "{:?} in {self}", stack.frames);
            assert!(
                stack.ends_along(chain),
                "{:?} does not go along {chain:?}, in {self}",
                stack.frames
            );
        }
        let whole = self.share(|stack| stack.has_chain(chain));
        assert!(whole > 0.1, "{chain:?} is whole in {whole:.3} of {self}");
    }

    /// Panics unless the frames of each stack, but for its marks, are some of `truth`, in that order.
    #[track_caller]
    pub fn assert_honest(&self, truth: &[&str]) {
        assert!(self.total() > 0, "nothing was sampled");
        for stack in &self.stacks {
            let first = 1 + usize::from(stack.mark().is_some());
            // The C library's functions between `_start` and `main` have no names everywhere.
            let is_start = |frame: &&String| *frame == "_start" || frame.contains("libc");
            let mut left = truth.iter();
            for frame in stack.frames[first..].iter().skip_while(is_start) {
                assert!(
                    left.any(|name| name == frame),
                    "{frame} is not where it was called, in {:?} of {self}",
                    stack.frames
                );
            }
        }
    }

    /// The share of the stacks that have this mark.
    pub fn marked(&self, mark: &str) -> f64 {
        self.share(|stack| stack.mark() == Some(mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: [&str; 3] = ["main", "outer", "inner"];

    fn folded(text: &str) -> Folded {
        Folded::parse(text.as_bytes()).expect("well-formed")
    }

    fn is_complete(text: &str) -> bool {
        let folded = folded(text);
        std::panic::catch_unwind(|| folded.assert_complete(&CHAIN)).is_ok()
    }

    fn is_honest(text: &str) -> bool {
        let folded = folded(text);
        std::panic::catch_unwind(|| folded.assert_honest(&CHAIN)).is_ok()
    }

    #[test]
    fn a_complete_stack_goes_from_the_start_to_the_leaf() {
        assert!(is_complete(
            "app;_start;[libc.so.6+0x1];__libc_start;main;outer;inner 9\napp;_start;x;main;outer 1\n"
        ));
    }

    #[test]
    fn missing_and_superfluous_frames_are_noticed() {
        for text in [
            "app;_start;x;main;inner 1\n",
            "app;_start;x;main;outer;inner;inner 1\n",
            "app;main;outer;inner 1\n",
            "app;[no unwind info];_start;x;main;outer;inner 1\n",
            "app;_start;x;main;outer;inner 9\napp;_start;x;y 1\n",
            "app;_start;x;main;outer 1\n",
            "",
        ] {
            assert!(!is_complete(text), "{text}");
        }
    }

    #[test]
    fn a_truthful_stack_may_lack_frames_but_invents_none() {
        assert!(is_honest("app;[no unwind info];outer;inner 1\n"));
        assert!(is_honest("app;__libc_start_call_main;main;inner 1\n"));
        assert!(!is_honest("app;[no unwind info];elsewhere;inner 1\n"));
        assert!(!is_honest("app;[no unwind info];inner;outer 1\n"));
    }
}
