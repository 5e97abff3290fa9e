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
    notice, sample, sleepers, task,
    walk::Subject,
    word::Word,
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{Counter, Doing, KEY_WORDS, SampleKey, States, TaskState};

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
        leave(ctx, books, sample::subject(cpu, ids, now));
    }
    if arriving {
        apart::arrive(cpu, task::initial_id_of(next), now);
    }
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(now));
    counter::bump(books, Counter::Left);
}

/// The running thread leaves the CPU.
///
/// Little is kept on the BPF stack here: all that walking needs comes on top of it. So what comes before and
/// after that is checked, and has its stack, apart.
#[inline(always)]
fn leave(ctx: &RawTracePointContext, books: &'static Books, subject: Subject) {
    let preempted = ctx.arg::<u64>(0) & 1 != 0;
    let doing = match apart::depart(subject.cpu, subject.now, ctx.arg(3), preempted) {
        Ok(doing) => doing,
        Err(outcome) => return counter::close_if(books, outcome),
    };
    let outcome = sample::walk(ctx, subject, true)
        .or_else(|| apart::key(subject, doing))
        .or_else(|| apart::fall_asleep(subject.cpu, subject.now));
    counter::close_if(books, outcome);
}

/// The running thread leaves the CPU in this state: settles what was not seen of it, and says what it will be
/// doing, or what became of the firing, if it is one.
#[inline(always)]
pub(crate) fn depart(
    cpu: u32,
    now: u64,
    state: u32,
    preempted: bool,
) -> Result<Doing, Option<Outcome>> {
    let Some(books) = counter::books(cpu) else {
        return Err(None);
    };
    let id = task::initial_id();
    if let Some(entry) = sleepers::find(id)
        && let Some(since) = entry.since_ns()
    {
        arrived_unseen(books, cpu, &entry, since, now);
    }
    let Some(state) = TaskState::of(state, preempted) else {
        sleepers::forget(id);
        return Err(None);
    };
    counter::bump(books, Counter::Fired);
    if !filter::is_wanted_kind(task::current_address()) {
        return Err(Some(Counter::FilteredThreadKind.into()));
    }
    if !States(config!(states)).has(state) {
        return Err(Some(Counter::FilteredState.into()));
    }
    Ok(state.doing())
}

/// Notes that the running thread leaves, and for which key, which is in the scratch memory; or says what
/// became of the firing.
#[inline(always)]
pub(crate) fn fall_asleep(cpu: u32, now: u64) -> Option<Outcome> {
    let (Some(books), Some(key)) = (counter::books(cpu), scratch_key(cpu)) else {
        return Some(Counter::LostSleeperTable.into());
    };
    // Now, and not when the thread is back: by then it may be about to end.
    let tgid = key[SampleKey::TGID_WORD].load() as u32;
    let incarnation = key[SampleKey::INCARNATION_WORD].load();
    notice::new_process(books, tgid, incarnation);
    apart::tell_stack(cpu, tgid, incarnation);
    let Some(entry) = sleepers::make(task::initial_id()) else {
        return Some(Counter::LostSleeperTable.into());
    };
    entry.leave(now, key);
    None
}

/// Where a key is put together.
#[inline(always)]
fn scratch_key(cpu: u32) -> Option<&'static [Word; KEY_WORDS]> {
    Some(&SCRATCH.get(cpu)?.key)
}

/// A thread, named by its ID in the initial namespace, is given the CPU.
#[inline(always)]
pub(crate) fn arrive(cpu: u32, id: u32, now: u64) {
    let Some(books) = counter::books(cpu) else {
        return;
    };
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
