//! Off-CPU: one firing for each time that a thread leaves the CPU; its weight is the nanoseconds until
//! it is back, counted at the stacks with which it left.
//!
//! The stacks are walked and stored when the thread leaves, because then they are at hand. A thread may
//! sleep through many drains, so its key says in which epoch of the store they lie, and user space keeps
//! what it read of an epoch for as long as a thread may still name it.
//!
//! All of this runs with a run queue locked and interrupts off.

use crate::{
    apart,
    config::config,
    counter::{self, Outcome},
    filter,
    maps::{Books, SCRATCH},
    notice,
    probe::tracepoint,
    sample, sleepers,
    task::{self, Ids},
    walk::Subject,
    word::Word,
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{Counter, KEY_WORDS, States, TaskState};

/// A CPU goes from one task to another.
#[inline(always)]
pub(crate) fn switch(ctx: &RawTracePointContext) {
    let leaving = filter::current().ok();
    let next: u64 = ctx.arg(2);
    let arriving = filter::task(next).is_some();
    let cpu = task::cpu();
    let Some(books) = counter::books(cpu) else {
        return;
    };
    if leaving.is_none() && !arriving {
        // Nearly every switch of a machine, as a rule. Nobody else writes to this word: no program that
        // may interrupt us counts here.
        let word = &books[Counter::OtherSwitches as usize];
        word.store(word.load() + 1);
        return;
    }
    counter::enter(books);
    let now = task::now();
    if let Some(ids) = leaving {
        leave(ctx, books, cpu, ids, now);
    }
    if arriving {
        arrive(books, cpu, task::initial_id_of(next), now);
    }
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(now));
    counter::bump(books, Counter::Left);
}

/// The running thread leaves the CPU.
#[inline(always)]
fn leave(ctx: &RawTracePointContext, books: &'static Books, cpu: u32, ids: Ids, now: u64) {
    let id = task::initial_id();
    if let Some(entry) = sleepers::find(id)
        && let Some(since) = entry.since_ns()
    {
        arrived_unseen(books, cpu, &entry, since, now);
    }
    let preempted = ctx.arg::<u64>(0) & 1 != 0;
    let Some(state) = TaskState::of(ctx.arg::<u64>(3) as u32, preempted) else {
        sleepers::forget(id);
        return;
    };
    counter::bump(books, Counter::Fired);
    let outcome = begin(ctx, books, sample::subject(cpu, ids, now), id, state);
    if let Some(outcome) = outcome {
        counter::close(books, outcome);
    }
}

/// Notes that the running thread leaves, and where; or says what became of the firing.
#[inline(always)]
fn begin(
    ctx: &RawTracePointContext,
    books: &'static Books,
    subject: Subject,
    id: u32,
    state: TaskState,
) -> Option<Outcome> {
    if !filter::is_wanted_kind(task::current_address()) {
        return Some(Counter::FilteredThreadKind.into());
    }
    if !States(config!(states)).has(state) {
        return Some(Counter::FilteredState.into());
    }
    if let Some(outcome) = tracepoint::walk_stacks(ctx, subject) {
        return Some(outcome);
    }
    if let Some(outcome) = apart::key(subject, state.doing()) {
        return Some(outcome);
    }
    // Now, and not when the thread is back: by then it may be about to end.
    notice::new_process(books, subject.ids.tgid, subject.incarnation);
    match (sleepers::make(id), scratch_key(subject.cpu)) {
        (Some(entry), Some(key)) => {
            entry.leave(subject.now, key);
            None
        }
        _ => Some(Counter::LostSleeperTable.into()),
    }
}

/// Where a key is put together.
#[inline(always)]
fn scratch_key(cpu: u32) -> Option<&'static [Word; KEY_WORDS]> {
    Some(&SCRATCH.get(cpu)?.key)
}

/// A thread, named by its ID in the initial namespace, is given the CPU.
#[inline(always)]
fn arrive(books: &Books, cpu: u32, id: u32, now: u64) {
    // An entry even for one that is not known to have left: it says that the thread has run since.
    let Some(entry) = sleepers::make(id) else {
        return;
    };
    if let Some(since) = entry.since_ns() {
        let outcome = settle(cpu, &entry, now.wrapping_sub(since));
        counter::close(books, outcome);
    }
}

/// The running thread leaves the CPU, and was not seen to come: kernels do not tell of every switch from
/// tasks that must not be traced. The scheduler knows for how long the thread has run since.
#[inline(always)]
fn arrived_unseen(books: &Books, cpu: u32, entry: &sleepers::Entry, since: u64, now: u64) {
    let end = now.wrapping_sub(task::ran_ns());
    if end > since && end <= now {
        counter::bump(books, Counter::EndReckoned);
        counter::close(books, settle(cpu, entry, end - since));
    } else {
        // The entry is about to be overwritten, or forgotten.
        counter::bump(books, Counter::LostPair);
    }
}

/// Counts the time that a thread was away, and says what became of the firing.
#[inline(always)]
fn settle(cpu: u32, entry: &sleepers::Entry, spent_ns: u64) -> Outcome {
    let Some(key) = scratch_key(cpu) else {
        return Counter::LostTallyTable.into();
    };
    entry.arrive(key);
    if spent_ns < config!(shortest_ns) || spent_ns > config!(longest_ns) {
        return Counter::FilteredBlockTime.into();
    }
    apart::count(cpu, spent_ns)
}
