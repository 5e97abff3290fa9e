//! Follows frames whose return addresses have known rules: what lies there need not be looked up.
//!
//! In: the frame that is looked at, in the scratch memory. Out: its place in the walk's record and its callers', up to the first
//! whose rule is not known.
//!
//! A rule is kept for one number of the state of a process's memory, which is another one after each change of its mappings
//! and of the index of code. Frames that may run interpreted ones are followed only where it is certain that they do not.

use crate::{
    platform::{
        config,
        loops::{Turn, repeat},
        maps::Scratch,
        subprog::subprog,
    },
    walk::{
        known_functions::set,
        runtime,
        scratch::{ReturnRule, ReturnRules},
        stack_memory::StackMemory,
    },
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{MAX_USER_FRAMES, MAX_USER_WORDS, Rule, Switches},
    walk::native,
};

subprog! {
    /// Keeps the rule of the frame that is looked at, if it is one to follow by [`follow_return_rules`]. `descriptor`: of the
    /// runtime in its object, or zero. `address`: the object's own.
    pub(crate) fn keep_return_rule(cpu_slot: u32, rule: Rule, descriptor: u32, address: u64) {
        if let Some(scratch) = Scratch::of(cpu_slot) {
            keep(scratch, rule, descriptor, address);
        }
    }
}

#[inline(always)]
fn keep(scratch: &'static Scratch, rule: Rule, descriptor: u32, address: u64) {
    let state = scratch.walk.memory_state.load();
    let frame = scratch.walk.frame();
    if state == 0 || !rule.is_plain() || !frame.has_called() {
        return;
    }
    let ReturnRules([first, second]) = set(scratch, frame.ip);
    if first.memory_state.load() == state && first.rule.load() != ReturnRule::KNOWN_FUNCTION {
        second.address.store(first.address.load());
        second.memory_state.store(state);
        second.rule.store(first.rule.load());
        second.runtime.store(first.runtime.load());
    }
    first.address.store(frame.ip);
    first.memory_state.store(state);
    first.rule.store(rule.0);
    first
        .runtime
        .store(if config::has(Switches::RUNTIMES) && descriptor != 0 {
            runtime::may_run_level(descriptor, address)
        } else {
            0
        });
}

/// The rule that is kept for a return address.
#[inline(always)]
fn find(scratch: &'static Scratch, address: u64) -> Option<&'static ReturnRule> {
    let state = scratch.walk.memory_state.load();
    let holds =
        |one: &ReturnRule| one.address.load() == address && one.memory_state.load() == state;
    let ReturnRules([first, second]) = set(scratch, address);
    if holds(first) {
        Some(first)
    } else if holds(second) {
        Some(second)
    } else {
        None
    }
}

subprog! {
    /// Notes the frame that is looked at and its callers, as far as their rules are kept.
    pub(crate) fn follow_return_rules(cpu_slot: u32) {
        if let Some(scratch) = Scratch::of(cpu_slot)
            && scratch.walk.frame().has_called()
        {
            repeat(room(scratch), &mut Callers { scratch });
        }
    }
}

/// For how many native frames more there is room.
#[inline(always)]
pub(crate) fn room(scratch: &'static Scratch) -> u32 {
    let seconds = if config::has(Switches::RUNTIMES) {
        scratch.chains.seconds.load()
    } else {
        0
    };
    let frames = scratch.walk.words.load().wrapping_sub(seconds);
    (MAX_USER_FRAMES as u32).saturating_sub(frames as u32)
}

/// Frames, one in each turn.
struct Callers {
    scratch: &'static Scratch,
}

impl Turn for Callers {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        match self.step() {
            Some(()) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        }
    }
}

impl Callers {
    /// Notes the frame and puts its caller in its place; none, and nothing is changed, if that takes more than its rule.
    #[inline(always)]
    fn step(&self) -> Option<()> {
        let Scratch { user, walk, .. } = self.scratch;
        let mut frame = walk.frame();
        let address = frame.ip;
        let kept = find(self.scratch, address)?;
        let rule = Rule(kept.rule.load());
        if rule.0 == ReturnRule::KNOWN_FUNCTION {
            return None;
        }
        let words = walk.words.load();
        // Hidden from the compiler, which would compute the place before it has checked the number.
        let index = black_box(words as usize);
        if index >= MAX_USER_WORDS {
            return None;
        }
        // It counts once it is noted that there is a word more.
        user.get(1 + index)?.store(address);
        native::advance_plain(rule, &mut frame, &StackMemory(&walk.stack)).ok()?;
        if config::has(Switches::RUNTIMES) {
            let runtime = kept.runtime.load();
            if runtime != 0 && !runtime::runs_no_level(self.scratch, runtime, frame.sp) {
                return None;
            }
        }
        walk.words.store(words.wrapping_add(1));
        walk.put(frame);
        Some(())
    }
}
