//! Profiles out of stacks of frames, as folded text tells them.
//!
//! In: frames from root to leaf. Out: a [`Profile`] whose [`View`](super::View) is these frames again. The labels in
//! front are the sample's, inlined functions become lines of what they are in, and what the kernel has is its own stack.

use super::model::{Function, FunctionIndex, Labels, Line, Location, Profile, Sample};
use super::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use super::{Frame, FrameKind, WindowIndex};
use profiler_common::abi::{StackEnd, ThreadState};
use std::collections::HashMap;

/// Adds stacks of frames to a profile.
#[derive(Debug)]
pub struct FrameProfile {
    profile: Profile,
    /// By their functions, the innermost first, and the kind of the outermost.
    locations: HashMap<(Box<[FunctionIndex]>, FrameKind), LocationIndex>,
}

impl FrameProfile {
    /// Adds to this profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            locations: HashMap::new(),
        }
    }

    /// Adds what was counted for a stack.
    pub fn push(&mut self, stack: &[Frame], weight: u64, count: u64) {
        let (labels, stack) = labels(stack);
        self.push_of(labels, stack, weight, count);
    }

    /// Adds what was counted for a stack without labels in front.
    pub fn push_of(&mut self, labels: Labels, stack: &[Frame], weight: u64, count: u64) {
        let kernel = stack
            .iter()
            .position(|frame| frame.kind == FrameKind::Kernel);
        let (user, kernel) = stack.split_at(kernel.unwrap_or(stack.len()));
        let sample = Sample {
            labels: self.profile.labels(labels),
            user: self.stack(user),
            kernel: self.stack(kernel),
            thread_state: ThreadState::Running,
            reason: None,
            waker: None,
            window: WindowIndex::default(),
            weight,
            count,
        };
        self.profile.push(sample);
    }

    /// The profile.
    pub fn into_profile(self) -> Profile {
        self.profile
    }

    fn stack(&mut self, frames: &[Frame]) -> Option<NormalizedStackIndex> {
        let mut locations = Vec::new();
        let mut rest = frames;
        while let Some((outermost, behind)) = rest.split_first() {
            let is_code = outermost.kind.is_user() || outermost.kind == FrameKind::Kernel;
            let inlined = behind
                .iter()
                .take_while(|frame| is_code && frame.kind == FrameKind::Inlined);
            let (inlined, behind) = behind.split_at(inlined.count());
            locations.push(self.location(outermost, inlined));
            rest = behind;
        }
        locations.reverse();
        (!locations.is_empty()).then(|| {
            self.profile.stack(NormalizedStack {
                locations: locations.into(),
                end: StackEnd::Root,
                fp_fallback: false,
            })
        })
    }

    fn location(&mut self, outermost: &Frame, inlined: &[Frame]) -> LocationIndex {
        let all = inlined.iter().rev().chain([outermost]);
        let functions: Box<[FunctionIndex]> = all
            .map(|frame| {
                self.profile.function(Function {
                    name: frame.name.clone(),
                    ..Function::default()
                })
            })
            .collect();
        let profile = &mut self.profile;
        let new = |(functions, kind): &(Box<[FunctionIndex]>, FrameKind)| {
            let lines = functions.iter().map(|&function| Line { function, line: 0 });
            let lines = profile.lines(lines);
            profile.location(Location {
                mapping: None,
                address: 0,
                kind: *kind,
                lines,
            })
        };
        *self
            .locations
            .entry((functions, outermost.kind))
            .or_insert_with_key(new)
    }
}

/// The labels that a stack begins with, in the order in which views show them, and the rest.
fn labels(stack: &[Frame]) -> (Labels, &[Frame]) {
    let mut labels = Labels::default();
    let mut rest = stack;
    let number = |frame: &Frame, start| {
        let digits = frame.name.strip_prefix(start)?.strip_suffix(']')?;
        // A zero in front would be lost.
        let number: u32 = digits.parse().ok()?;
        (number.to_string() == digits).then_some(number)
    };
    if let Some((first, behind)) = rest.split_first()
        && first.kind == FrameKind::Label
        && let Some(cpu) = number(first, "[cpu ")
        && behind
            .first()
            .is_some_and(|next| next.kind == FrameKind::Process)
    {
        labels.cpu = Some(cpu);
        rest = behind;
    }
    if let Some((first, behind)) = rest.split_first()
        && first.kind == FrameKind::Process
    {
        labels.comm = Some(first.name.clone());
        rest = behind;
    }
    if labels.comm.is_some()
        && let Some((first, behind)) = rest.split_first()
        && first.kind == FrameKind::Label
        && let Some(tid) = number(first, "[tid ")
    {
        labels.tid = Some(tid);
        rest = behind;
    }
    (labels, rest)
}
