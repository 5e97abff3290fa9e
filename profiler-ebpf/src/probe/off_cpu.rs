//! Off-CPU: one firing for each time that a thread leaves the CPU; its weight is the nanoseconds until
//! it is back, counted at the stacks with which it left.
//!
//! The stacks are walked and stored when the thread leaves, because then they are at hand. A thread may
//! sleep through many drains, so its key says in which epoch of the store they lie, and user space keeps
//! what it read of an epoch for as long as a thread may still name it.
//!
//! All of this runs with a run queue locked and interrupts off.

use super::{wait_sampling, waker, wall};
use crate::{
    platform::{
        config::{self, config},
        maps::{Counters, Scratch},
        subprog::{Scalar as _, subprog},
    },
    record,
    sample::{
        context::{self, SampleContext},
        counters::{self, Outcome},
        filter,
    },
    store::threads,
    task::{self, Ids},
};
use aya_ebpf::programs::RawTracePointContext;
use core::hint::black_box;
use profiler_common::abi::{Counter, States, Switches, TaskState, ThreadState};

/// A CPU goes from one task to another.
#[inline(always)]
pub(crate) fn switch(ctx: &RawTracePointContext) {
    // As a number that is set in any case, and out of the compiler's sight: it would copy the IDs of nobody, which
    // are not, and the verifier does not let it. No thread has the number zero.
    let leaving = black_box(filter::current().map_or(0, Ids::into_word));
    let next: u64 = ctx.arg(2);
    let arriving = (filter::task(next).is_some() && may_end_wait(next)) || left_as_target(next);
    let cpu_slot = context::switch_cpu_slot();
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    let leaving = if leaving != 0 && wait_sampling::has_first_draw() && is_left_out(ctx, cpu_slot) {
        counters::bump(counters, Counter::Fired);
        counters::close(counters, Counter::FilteredSwitchSample.into());
        0
    } else {
        leaving
    };
    if leaving == 0 && !arriving {
        // Nearly every switch of a machine, as a rule. Nobody else writes to this word: no program that
        // may interrupt us counts here.
        let word = &counters.counters[Counter::OtherSwitches as usize];
        word.store(word.load() + 1);
        return;
    }
    counters::enter(counters);
    let now = task::now();
    if leaving != 0 {
        SampleContext::new(cpu_slot, Ids::from_word(leaving), now).keep();
        leave(ctx, counters, cpu_slot, now);
    }
    if arriving {
        arrive(cpu_slot, next, now);
    }
    counters::add(counters, Counter::RunTime, task::now().wrapping_sub(now));
    counters::bump(counters, Counter::Left);
}

/// Whether the first draw leaves out the wait that the running thread begins. It leaves all in that are not wanted anyway.
#[inline(always)]
fn is_left_out(ctx: &RawTracePointContext, cpu_slot: u32) -> bool {
    let is_wanted = TaskState::of(state(ctx), is_preempted(ctx))
        .is_some_and(|state| States(config!(states)).has(state))
        && filter::is_wanted_kind(task::current_address());
    wait_sampling::is_left_out(cpu_slot, task::initial_id(), is_wanted)
}

/// Whether a target at a kernel address may have left for a wait that was looked at; without an entry it has yet to get one.
#[inline(always)]
fn may_end_wait(task: u64) -> bool {
    if !wait_sampling::has_first_draw() {
        return true;
    }
    let id = task::initial_id_of(task);
    !wait_sampling::is_surely_not_sampled(id)
        && threads::find(id).is_none_or(|entry| entry.since_ns().is_some())
}

/// Whether the thread at a kernel address, which is no target, was one when it left: its wait is over all the same.
#[inline(always)]
fn left_as_target(task: u64) -> bool {
    filter::may_have_been()
        && threads::find(task::initial_id_of(task)).is_some_and(|entry| entry.since_ns().is_some())
}

/// The running thread leaves the CPU.
///
/// Little is kept on the BPF stack here: all that walking needs comes on top of it. So what comes before and
/// after that is in subprograms.
#[inline(always)]
fn leave(ctx: &RawTracePointContext, counters: &'static Counters, cpu_slot: u32, now: u64) {
    if config::has(Switches::WALL) {
        wall::count_run(cpu_slot);
    }
    let thread_state = match depart(cpu_slot, state(ctx), is_preempted(ctx)) {
        Ok(thread_state) => thread_state,
        Err(outcome) => return counters::close_if(counters, outcome),
    };
    let outcome =
        make_key(ctx, cpu_slot, thread_state).or_else(|| record::begin_wait(cpu_slot, now));
    counters::close_if(counters, outcome);
}

/// The kernel's state of the thread that leaves.
#[inline(always)]
fn state(ctx: &RawTracePointContext) -> u32 {
    let state: u64 = if config::has(Switches::STATE_OF_TASK) {
        task::state()
    } else {
        ctx.arg(3)
    };
    state as u32
}

/// Whether the running thread did not leave the CPU of its own accord.
#[inline(always)]
fn is_preempted(ctx: &RawTracePointContext) -> bool {
    ctx.arg::<u64>(0) & 1 != 0
}

/// Puts the key of the running thread, with its stacks if they are wanted, into the scratch memory; or says what became
/// of the firing.
#[inline(always)]
fn make_key(
    ctx: &RawTracePointContext,
    cpu_slot: u32,
    thread_state: ThreadState,
) -> Option<Outcome> {
    if config::has(Switches::NO_WAIT_STACKS) {
        record::make_key_without_stacks(cpu_slot, thread_state);
        return None;
    }
    record::walk_waiting(ctx, cpu_slot, || is_preempted(ctx))
        .or_else(|| record::make_key(cpu_slot, thread_state).err())
}

subprog! {
    /// The running thread leaves the CPU in this state: settles what was not seen of it, and says what it will be
    /// doing, or what became of the firing, if it is one.
    fn depart(cpu_slot: u32, state: u32, preempted: bool) -> Result<ThreadState, Option<Outcome>> {
        let counters = counters::counters(cpu_slot).ok_or(None)?;
        let now = SampleContext::of(cpu_slot).ok_or(None)?.now;
        leave_in_state(counters, cpu_slot, now, TaskState::of(state, preempted))
    }
}

#[inline(always)]
fn leave_in_state(
    counters: &'static Counters,
    cpu_slot: u32,
    now: u64,
    state: Option<TaskState>,
) -> Result<ThreadState, Option<Outcome>> {
    let id = task::initial_id();
    let entry = threads::find(id);
    if let Some(entry) = &entry
        && let Some(since) = entry.since_ns()
    {
        arrived_unseen(counters, cpu_slot, id, entry, since, now);
    }
    let Some(state) = state else {
        threads::forget(id);
        if wait_sampling::has_first_draw() {
            wait_sampling::forget(id);
        }
        return Err(None);
    };
    counters::bump(counters, Counter::Fired);
    if !filter::is_wanted_kind(task::current_address()) {
        return Err(Some(Counter::FilteredThreadKind.into()));
    }
    if !States(config!(states)).has(state) {
        return Err(Some(Counter::FilteredState.into()));
    }
    if threads::samples_waits() {
        // One that was not seen before has an entry from now on.
        let Some(entry) = entry.or_else(|| threads::make(id)) else {
            return Err(Some(Counter::LostThreadTable.into()));
        };
        if !wait_sampling::is_sampled(&entry, cpu_slot, id, now) {
            return Err(Some(Counter::FilteredSwitchSample.into()));
        }
    }
    Ok(state.thread_state())
}

subprog! {
    /// The thread at a kernel address is given the CPU.
    fn arrive(cpu_slot: u32, task: u64, now: u64) {
        if let Some(counters) = counters::counters(cpu_slot) {
            end_wait(counters, cpu_slot, task, now);
        }
    }
}

#[inline(always)]
fn end_wait(counters: &'static Counters, cpu_slot: u32, task: u64, now: u64) {
    let id = task::initial_id_of(task);
    let entry = match threads::find(id) {
        Some(entry) => entry,
        None if config::has(Switches::WALL) => match wall::begin(counters, cpu_slot, task, now) {
            Some(entry) => entry,
            None => return,
        },
        // An entry even for one that is not known to have left: it says that the thread has run since.
        None => match threads::make(id) {
            Some(entry) => entry,
            None => return,
        },
    };
    if let Some(since) = entry.since_ns() {
        let outcome = settle(counters, cpu_slot, id, &entry, since, now);
        counters::close(counters, outcome);
    } else if config::has(Switches::WALL) && entry.arrived_ns().is_some() {
        // It was not seen to leave: what of the time it ran is not known.
        counters::bump(counters, Counter::Fired);
        counters::bump(counters, Counter::LostPair);
    }
    if config::has(Switches::WALL) {
        entry.set_arrived(now);
    }
}

/// The running thread leaves the CPU, and was not seen to come: kernels do not tell of every switch from
/// tasks that must not be traced. The scheduler knows for how long the thread has run since.
#[inline(always)]
fn arrived_unseen(
    counters: &Counters,
    cpu_slot: u32,
    id: u32,
    entry: &threads::Entry,
    since: u64,
    now: u64,
) {
    let end = now.wrapping_sub(task::ran_ns());
    if end > since && end <= now {
        counters::bump(counters, Counter::EndReckoned);
        counters::close(counters, settle(counters, cpu_slot, id, entry, since, end));
    } else {
        // The entry is about to be overwritten, or forgotten.
        counters::bump(counters, Counter::LostPair);
    }
}

/// Counts the time that a thread was away, and says what became of the firing. `id`: by which it is found.
#[inline(always)]
fn settle(
    counters: &Counters,
    cpu_slot: u32,
    id: u32,
    entry: &threads::Entry,
    since: u64,
    until: u64,
) -> Outcome {
    let Some(scratch) = Scratch::of(cpu_slot) else {
        return Counter::LostTallyTable.into();
    };
    entry.arrive(&scratch.key);
    if config::has(Switches::WAKERS) {
        let wait = &scratch.wait;
        wait.since.store(since);
        wait.until.store(until);
        wait.chance.store(entry.chance().0);
        return waker::count_with_waker(cpu_slot, id);
    }
    let spent_ns = until.wrapping_sub(since);
    if config::has(Switches::WALL) {
        return wall::settle(
            counters,
            cpu_slot,
            &scratch.key,
            entry.woken_ns(),
            since,
            until,
        );
    }
    if spent_ns < config!(shortest_ns) || spent_ns > config!(longest_ns) {
        return Counter::FilteredBlockTime.into();
    }
    record::count_key(cpu_slot, wait_sampling::weight(spent_ns, entry.chance()))
}
