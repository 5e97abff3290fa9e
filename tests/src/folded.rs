//! Folded stacks, read strictly.
//!
//! In: the bytes that flame-bpf wrote. Out: [`Stack`]s with weights, and shares of the whole.
//! Never: forgiveness. A line that is not `frame;frame;frame weight` is a failed test.

use std::fmt;

/// A share that is nearly all. A workload that does one thing only is seen there in all samples but those of its start, its end,
/// and what interrupts it: some percent where there are few samples.
pub const NEARLY_ALL: f64 = 0.9;

/// A share in which no kind of stack may be missing. What remains are a few samples of a process's first moments, before it is
/// known, and of its last.
pub const ALL_BUT_A_FEW: f64 = 0.99;

/// One line of folded output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// From root to leaf.
    pub frames: Vec<String>,
    /// How much was counted.
    pub weight: u64,
}

impl Stack {
    /// The first frame.
    pub fn root(&self) -> &str {
        &self.frames[0]
    }

    /// The name of the thread, of a recording with `--per-thread`: behind the ID in its label, or the process's.
    pub fn thread(&self) -> &str {
        let label = self.frames.get(1).and_then(|frame| {
            let inside = frame.strip_prefix("[tid ")?.strip_suffix(']')?;
            Some(inside.split_once(' ')?.1)
        });
        label.unwrap_or(self.root())
    }

    /// The last frame.
    pub fn leaf(&self) -> &str {
        &self.frames[self.frames.len() - 1]
    }

    /// Whether some frame is exactly `name`.
    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// Whether some frame contains `part`.
    pub fn mentions(&self, part: &str) -> bool {
        self.frames.iter().any(|frame| frame.contains(part))
    }

    /// Whether it came upon an interrupt.
    pub fn has_interrupt(&self) -> bool {
        let entries = ["asm_sysvec_", "asm_common_interrupt", "fred_"];
        self.frames
            .iter()
            .any(|frame| entries.iter().any(|entry| frame.starts_with(entry)))
    }

    /// Whether `chain` occurs as neighbouring frames, caller before callee.
    pub fn has_chain(&self, chain: &[&str]) -> bool {
        self.frames
            .windows(chain.len())
            .any(|frames| frames.iter().zip(chain).all(|(frame, name)| frame == name))
    }

    /// Whether it begins where threads do.
    pub fn begins_a_thread(&self) -> bool {
        let begins = ["_start", "clone3", "start_thread", "ret_from_fork_asm"];
        begins.iter().any(|begin| self.has(begin))
    }

    /// How many frames from the root the first one called `name` is.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.frames.iter().position(|frame| frame == name)
    }
}

/// Everything that one folded output holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// In the order of the file.
    pub stacks: Vec<Stack>,
}

impl Folded {
    /// Reads folded output.
    ///
    /// # Errors
    ///
    /// A sentence that quotes the first line that is not a stack and its weight.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| format!("folded output is not UTF-8: {error}"))?;
        if !text.is_empty() && !text.ends_with('\n') {
            return Err("the last line of folded output is not whole".to_owned());
        }
        let stacks = text.lines().map(parse_line).collect::<Result<_, _>>()?;
        Ok(Self { stacks })
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.weight).sum()
    }

    /// The weight of the stacks that `wanted` accepts.
    pub fn weight(&self, wanted: impl Fn(&Stack) -> bool) -> u64 {
        self.only(wanted).map(|stack| stack.weight).sum()
    }

    /// As [`Folded::weight`], of a profile in microseconds, in seconds.
    pub fn seconds(&self, wanted: impl Fn(&Stack) -> bool) -> f64 {
        self.weight(wanted) as f64 / 1e6
    }

    /// The share of the stacks that `wanted` accepts, between 0 and 1; 0 of nothing.
    pub fn share(&self, wanted: impl Fn(&Stack) -> bool) -> f64 {
        self.share_among(|_| true, wanted)
    }

    /// The share that the stacks that `wanted` accepts have among those that `whole` accepts.
    pub fn share_among(
        &self,
        whole: impl Fn(&Stack) -> bool,
        wanted: impl Fn(&Stack) -> bool,
    ) -> f64 {
        let total = self.weight(&whole);
        if total == 0 {
            return 0.0;
        }
        self.weight(|stack| whole(stack) && wanted(stack)) as f64 / total as f64
    }

    /// Panics unless each function's share, among those that are in `truth`, is as far from it as `tolerance` at most.
    #[track_caller]
    pub fn assert_shares(&self, truth: &[(String, f64)], tolerance: f64) {
        let theirs = |stack: &Stack| truth.iter().any(|(function, _)| stack.has(function));
        for (function, share) in truth {
            let shown = self.share_among(theirs, |stack| stack.has(function));
            assert_near(function, shown, *share, tolerance, self);
        }
    }

    /// Panics unless `wanted` accepts [`ALL_BUT_A_FEW`] stacks, and shows the others.
    #[track_caller]
    pub fn assert_all_but_a_few(&self, wanted: impl Fn(&Stack) -> bool) {
        let share = self.share(&wanted);
        let others: Vec<_> = self.only(|stack| !wanted(stack)).collect();
        assert!(share > ALL_BUT_A_FEW, "{share} but for {others:#?}");
    }

    /// Whether any stack is accepted by `wanted`.
    pub fn any(&self, wanted: impl Fn(&Stack) -> bool) -> bool {
        self.stacks.iter().any(wanted)
    }

    /// The stacks that `wanted` accepts.
    pub fn only(&self, wanted: impl Fn(&Stack) -> bool) -> impl Iterator<Item = &Stack> {
        self.stacks.iter().filter(move |stack| wanted(stack))
    }

    /// The stack with the greatest weight.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn heaviest(&self) -> &Stack {
        self.stacks
            .iter()
            .max_by_key(|stack| stack.weight)
            .expect("the profile holds at least one stack")
    }
}

/// The twenty heaviest stacks, for the message of a failed assertion.
impl fmt::Display for Folded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stacks: Vec<_> = self.stacks.iter().collect();
        stacks.sort_by_key(|stack| std::cmp::Reverse(stack.weight));
        writeln!(
            out,
            "{} stacks, weight {}, the heaviest:",
            stacks.len(),
            self.total()
        )?;
        for stack in stacks.iter().take(20) {
            let line: String = stack.frames.join(";").chars().take(400).collect();
            writeln!(out, "  {} {line}", stack.weight)?;
        }
        Ok(())
    }
}

/// Panics unless `shown`, which is what a profile has of `what`, is as far as `tolerance` from the truth at most.
#[track_caller]
pub fn assert_near(what: &str, shown: f64, truth: f64, tolerance: f64, profile: &Folded) {
    assert!(
        (shown - truth).abs() <= tolerance,
        "{what}: {shown:.3} is shown, {truth:.3} ± {tolerance:.3} is true, in {profile}"
    );
}

fn parse_line(line: &str) -> Result<Stack, String> {
    let (stack, weight) = line
        .rsplit_once(' ')
        .ok_or_else(|| format!("no weight in folded line {line:?}"))?;
    // Short times are microseconds with decimals.
    let whole = weight.parse::<u64>().ok();
    let rounded = || {
        weight
            .parse::<f64>()
            .ok()
            .map(|weight| weight.max(1.0).round() as u64)
    };
    let weight = whole
        .or_else(rounded)
        .ok_or_else(|| format!("no weight at the end of folded line {line:?}"))?;
    let frames: Vec<String> = stack.split(';').map(str::to_owned).collect();
    if frames.iter().any(|frame| frame.trim().is_empty()) {
        return Err(format!("an empty frame in folded line {line:?}"));
    }
    if stack.chars().any(char::is_control) {
        return Err(format!("a control character in folded line {line:?}"));
    }
    if weight == 0 {
        return Err(format!("folded line {line:?} weighs nothing"));
    }
    Ok(Stack { frames, weight })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Folded {
        Folded::parse(b"app;main;a b;c 30\napp;main;d 10\nother;x 60\n").expect("well-formed")
    }

    #[test]
    fn shares_are_of_the_whole_or_of_a_part() {
        let folded = sample();
        assert_eq!(folded.total(), 100);
        assert_eq!(folded.weight(|stack| stack.has("main")), 40);
        assert!((folded.share(|stack| stack.has("main")) - 0.4).abs() < 1e-9);
        let of_app = folded.share_among(|stack| stack.root() == "app", |stack| stack.leaf() == "d");
        assert!((of_app - 0.25).abs() < 1e-9);
        assert_eq!(folded.heaviest().root(), "other");
    }

    #[test]
    fn chains_are_neighbours_in_order() {
        let folded = sample();
        let stack = &folded.stacks[0];
        assert!(stack.has_chain(&["main", "a b", "c"]));
        assert!(!stack.has_chain(&["main", "c"]));
        assert!(!stack.has_chain(&["c", "a b"]));
        assert!(stack.mentions("a ") && !stack.has("a"));
        assert_eq!(stack.position("c"), Some(3));
    }

    #[test]
    fn malformed_lines_are_refused() {
        for wrong in [
            &b"app;main\n"[..],
            b"app;main x\n",
            b"app;;main 3\n",
            b";main 3\n",
            b"app;main 0\n",
            b"app;main 3",
            b"\n",
            b"app;\x1b[1m 3\n",
            b"app;\xff 3\n",
        ] {
            assert!(Folded::parse(wrong).is_err(), "{wrong:?} was accepted");
        }
        assert_eq!(Folded::parse(b""), Ok(Folded::default()));
    }
}
