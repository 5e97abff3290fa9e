//! Off-CPU: one firing for each time that a thread leaves the CPU; its weight is the nanoseconds until
//! it is back, counted at the stacks with which it left.
//!
//! The stacks are walked and stored when the thread leaves, because then they are at hand. A thread may
//! sleep through many drains, so its key says in which epoch of the store they lie, and user space keeps
//! what it read of an epoch for as long as a thread may still name it.
//!
//! All of this runs with a run queue locked and interrupts off.

use super::wall;
use crate::{
    apart, events,
    platform::{
        config::{self, config},
        maps::{Counters, SCRATCH},
        word::Word,
    },
    sample::{
        self,
        counters::{self, Outcome},
        filter,
    },
    store::threads,
    task,
    walk::user::SampleContext,
};
use aya_ebpf::programs::RawTracePointContext;
use core::hint::black_box;
use profiler_common::{
    abi::{Counter, KEY_WORDS, SampleKey, States, Switches, TaskState, ThreadState},
    thin,
};

/// A CPU goes from one task to another.
#[inline(always)]
pub(crate) fn switch(ctx: &RawTracePointContext) {
    // As a number that is set in any case, and out of the compiler's sight: it would copy the IDs of nobody, which
    // are not, and the verifier does not let it. No thread has the number zero.
    let leaving = black_box(filter::current().map_or(0, apart::one));
    let next: u64 = ctx.arg(2);
    let arriving = filter::task(next).is_some();
    let cpu_slot = task::cpu().wrapping_add(config!(switch_cpu_slots));
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
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
        leave(
            ctx,
            counters,
            sample::subject(cpu_slot, apart::two(leaving), now),
        );
    }
    if arriving {
        apart::arrive(cpu_slot, next, now);
    }
    counters::add(counters, Counter::RunTime, task::now().wrapping_sub(now));
    counters::bump(counters, Counter::Left);
}

/// The running thread leaves the CPU.
///
/// Little is kept on the BPF stack here: all that walking needs comes on top of it. So what comes before and
/// after that is checked, and has its stack, apart.
#[inline(always)]
fn leave(ctx: &RawTracePointContext, counters: &'static Counters, subject: SampleContext) {
    if config::has(Switches::WALL) {
        apart::ran(subject);
    }
    let state = if config::has(Switches::STATE_OF_TASK) {
        task::state()
    } else {
        ctx.arg(3)
    };
    let thread_state = match apart::depart(subject.cpu_slot, subject.now, state, is_preempted(ctx))
    {
        Ok(thread_state) => thread_state,
        Err(outcome) => return counters::close_if(counters, outcome),
    };
    let outcome = where_it_waits(ctx, subject, thread_state)
        .or_else(|| apart::fall_asleep(subject.cpu_slot, subject.now));
    counters::close_if(counters, outcome);
}

/// Whether the running thread did not leave the CPU of its own accord.
#[inline(always)]
fn is_preempted(ctx: &RawTracePointContext) -> bool {
    ctx.arg::<u64>(0) & 1 != 0
}

/// Puts the key of the running thread, with its stacks if they are wanted, into the scratch memory; or says what became
/// of the firing.
#[inline(always)]
fn where_it_waits(
    ctx: &RawTracePointContext,
    subject: SampleContext,
    thread_state: ThreadState,
) -> Option<Outcome> {
    if config::has(Switches::NO_WAIT_STACKS) {
        apart::owner(subject, thread_state);
        return None;
    }
    sample::walk_waiting(ctx, subject, || is_preempted(ctx))
        .or_else(|| apart::key(subject, thread_state))
}

/// The running thread leaves the CPU in this state: settles what was not seen of it, and says what it will be
/// doing, or what became of the firing, if it is one.
#[inline(always)]
pub(crate) fn depart(
    cpu_slot: u32,
    now: u64,
    state: u32,
    preempted: bool,
) -> Result<ThreadState, Option<Outcome>> {
    let Some(counters) = counters::counters(cpu_slot) else {
        return Err(None);
    };
    let id = task::initial_id();
    if let Some(entry) = threads::find(id)
        && let Some(since) = entry.since_ns()
    {
        arrived_unseen(counters, cpu_slot, id, &entry, since, now);
    }
    let Some(state) = TaskState::of(state, preempted) else {
        threads::forget(id);
        return Err(None);
    };
    counters::bump(counters, Counter::Fired);
    if !filter::is_wanted_kind(task::current_address()) {
        return Err(Some(Counter::FilteredThreadKind.into()));
    }
    if !States(config!(states)).has(state) {
        return Err(Some(Counter::FilteredState.into()));
    }
    if config!(look_period_ns) != 0
        && let Some(entry) = threads::find(id)
        && !is_looked_at(&entry, now)
    {
        return Err(Some(Counter::FilteredSwitchSample.into()));
    }
    Ok(state.thread_state())
}

/// Whether this is one of the waits of the thread that are looked at. A thread without an entry has not waited before,
/// and its first wait is.
#[inline(always)]
fn is_looked_at(entry: &threads::Entry, now: u64) -> bool {
    let period = config!(look_period_ns);
    let gap = thin::mean_gap(entry.gap_ns(), entry.left_before(now), now, period);
    entry.set_gap(gap);
    thin::is_looked_at(gap, period, task::random())
}

/// What time off the CPU weighs; see [`threads::Entry::gap_ns`].
#[inline(always)]
pub(super) fn weight(spent_ns: u64, gap_ns: u64) -> u64 {
    match config!(look_period_ns) {
        0 => spent_ns,
        period => thin::weight(spent_ns, gap_ns, period),
    }
}

/// Notes that the running thread leaves, and for which key, which is in the scratch memory; or says what
/// became of the firing.
#[inline(always)]
pub(crate) fn fall_asleep(cpu_slot: u32, now: u64) -> Option<Outcome> {
    let (Some(counters), Some(key)) = (counters::counters(cpu_slot), scratch_key(cpu_slot)) else {
        return Some(Counter::LostSleeperTable.into());
    };
    // Now, and not when the thread is back: by then it may be about to end.
    let tgid = key[SampleKey::TGID_WORD].load() as u32;
    let incarnation = key[SampleKey::INCARNATION_WORD].load();
    events::new_process(counters, tgid, incarnation);
    apart::tell_stack(cpu_slot, tgid, incarnation);
    let Some(entry) = threads::make(task::initial_id()) else {
        return Some(Counter::LostSleeperTable.into());
    };
    // The thread has the CPU until this is done. That matters where waits are short, and all the more where one that is
    // looked at stands for others; where all of the time is shown, it must be somewhere.
    entry.leave(
        if config::has(Switches::WALL) {
            now
        } else {
            task::now()
        },
        key,
    );
    None
}

/// Where a key is put together.
#[inline(always)]
pub(super) fn scratch_key(cpu_slot: u32) -> Option<&'static [Word; KEY_WORDS]> {
    Some(&SCRATCH.get(cpu_slot)?.key)
}

/// The thread at a kernel address is given the CPU.
#[inline(always)]
pub(crate) fn arrive(cpu_slot: u32, task: u64, now: u64) {
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
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
    let Some(key) = scratch_key(cpu_slot) else {
        return Counter::LostTallyTable.into();
    };
    entry.arrive(key);
    if config::has(Switches::WAKERS) {
        return apart::settle_woken(cpu_slot, id, since, until, entry.gap_ns());
    }
    let spent_ns = until.wrapping_sub(since);
    if config::has(Switches::WALL) {
        return wall::settle(counters, cpu_slot, key, entry.woken_ns(), since, until);
    }
    if spent_ns < config!(shortest_ns) || spent_ns > config!(longest_ns) {
        return Counter::FilteredBlockTime.into();
    }
    apart::count(cpu_slot, weight(spent_ns, entry.gap_ns()))
}
