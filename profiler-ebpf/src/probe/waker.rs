//! Wakers: each wait that was ended is counted together with what its waker did then. Both keys are
//! stored as one record, a pair, in the place of a kernel stack.
//!
//! A waker runs with the woken thread's `pi_lock` held and interrupts off, as a switch does, and so the two never
//! meet in a CPU's scratch memory.

use super::wait_sampling;
use crate::{
    events::{self, cgroup_event, function_event},
    platform::{
        config::config,
        maps::{CONTROL, Scratch},
        subprog::subprog,
    },
    record,
    sample::{
        context::{self, SampleContext},
        counters::{self, Outcome},
        filter,
    },
    store::{stacks, threads},
    task::{self, Ids},
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{
    Counter, Header, KEY_WORDS, Live, SampleKey, Stamp, ThreadState, WAKE_RACE_NS,
};
use profiler_common::wait_sampling::Chance;

/// The running task wakes another.
#[inline(always)]
pub(crate) fn waking(ctx: &RawTracePointContext) {
    let woken: u64 = ctx.arg(0);
    if filter::task(woken).is_none() || !filter::is_wanted_kind(woken) {
        return;
    }
    // One that wakes itself is on its way to sleep, and has not left. Interrupts may be on then.
    if woken == task::current_address() {
        return;
    }
    let cpu_slot = context::switch_cpu_slot();
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    counters::enter(counters);
    SampleContext::new(cpu_slot, waker(), task::now()).keep();
    // It fails without scratch memory alone, without which nothing is noted.
    let _failed = record::walk(ctx, cpu_slot, true);
    note_waker(cpu_slot, woken);
}

/// The running task's IDs; outside of our PID namespace that of no process, and the thread's in the initial one.
#[inline(always)]
fn waker() -> Ids {
    match task::current() {
        Some(ids) => ids,
        None => Ids {
            tgid: 0,
            tid: task::initial_id(),
        },
    }
}

subprog! {
    /// Notes that the context's thread, whose stacks are in the scratch memory, wakes the thread at a kernel address, and is
    /// done with the look at it.
    fn note_waker(cpu_slot: u32, woken: u64) {
        if let Some(context) = SampleContext::of(cpu_slot) {
            note(context, woken);
        }
    }
}

#[inline(always)]
fn note(context: SampleContext, woken: u64) {
    let SampleContext {
        ids, cpu_slot, now, ..
    } = context;
    let (Some(counters), Some(scratch)) = (counters::counters(cpu_slot), Scratch::of(cpu_slot))
    else {
        return;
    };
    let has_process = ids.tgid != 0;
    if !has_process {
        // Nothing is known of what lies at its addresses.
        scratch.user[0].store(0);
    }
    if record::key::<false>(cpu_slot, ThreadState::Running, 0).is_err() {
        // Where there is no room for its stacks, it is still known who it is.
        record::key_without_stacks(&scratch.key, context, ThreadState::Running);
    } else if has_process {
        // Now: by the time that the thread is back, the waker may have ended.
        events::announce_process(cpu_slot);
        cgroup_event::report_cgroup(cpu_slot);
        function_event::report_functions(cpu_slot);
    }
    if let Some(entry) = threads::make_waker(task::initial_id_of(woken)) {
        entry.note(now, &scratch.key);
    }
    counters::add(counters, Counter::RunTime, task::now().wrapping_sub(now));
    counters::bump(counters, Counter::Left);
}

subprog! {
    /// Counts the wait in the scratch memory, for the key there, together with who ended it: the waker of the thread of this
    /// ID in the initial namespace.
    pub(crate) fn count_with_waker(cpu_slot: u32, id: u32) -> Outcome {
        count(cpu_slot, id)
    }
}

#[inline(always)]
fn count(cpu_slot: u32, id: u32) -> Outcome {
    let (Some(scratch), Some(control)) = (Scratch::of(cpu_slot), CONTROL.get(0)) else {
        return Counter::LostTallyTable.into();
    };
    let wait = &scratch.wait;
    let (since, until) = (wait.since.load(), wait.until.load());
    // Where the kernel stack would be, behind the place of the header; the waker's key behind the thread's.
    let pair = &scratch.kernel;
    for (place, word) in pair[1..].iter().zip(&scratch.key) {
        place.store(word.load());
    }
    let mut end = until;
    let places = pair[1 + KEY_WORDS..].iter().take(KEY_WORDS);
    match threads::waker(id).and_then(|waker| Some((waker.take()?, waker))) {
        Some((woke, waker)) if woke.wrapping_add(WAKE_RACE_NS) > since => {
            end = if woke < until { woke } else { until };
            for (place, word) in places.zip(waker.key()) {
                place.store(word);
            }
        }
        _ => {
            for place in places {
                place.store(0);
            }
        }
    }
    // Woken on its way to sleep, it waited all the same.
    let spent_ns = if end > since { end - since } else { 1 };
    if spent_ns < config!(shortest_ns) || spent_ns > config!(longest_ns) {
        return Counter::FilteredBlockTime.into();
    }
    let live = Live(control.live.load());
    let Some(position) = stacks::intern_kernel_stack(cpu_slot, live.stacks(), Header::PAIR) else {
        return Counter::LostStackStore.into();
    };
    scratch.key[SampleKey::USER_WORD].store(0);
    let stamp = Stamp::new(live.epoch(), ThreadState::Woken);
    scratch.key[SampleKey::STAMP_WORD].store(SampleKey::stamp_word(position, stamp));
    record::count_key(
        cpu_slot,
        wait_sampling::weight(spent_ns, Chance(wait.chance.load())),
    )
}
