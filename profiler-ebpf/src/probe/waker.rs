//! Who wakes whom: each wait that was ended is counted together with what its waker did then. Both keys are
//! stored as one record, a pair, in the place of a kernel stack.
//!
//! A waker runs with the woken thread's `pi_lock` held and interrupts off, as a switch does, and so the two never
//! meet in a CPU's scratch memory.

use super::off_cpu::{self, scratch_key};
use crate::{
    apart, events,
    platform::{
        config::config,
        maps::{CONTROL, SCRATCH},
    },
    sample::{
        self,
        counters::{self, Outcome},
        filter,
    },
    store::threads,
    task::{self, Ids},
    walk::user::SampleContext,
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{
    Counter, Header, KEY_WORDS, Live, SampleKey, Stamp, ThreadState, WAKE_RACE_NS,
};

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
    let cpu_slot = task::cpu().wrapping_add(config!(switch_cpu_slots));
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    counters::enter(counters);
    let subject = sample::subject(cpu_slot, waker(), task::now());
    // It fails without scratch memory alone, without which nothing is noted.
    let _failed = sample::walk(ctx, subject, true);
    apart::note_waker(subject, woken);
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

/// Notes that the subject, whose stacks are in the scratch memory, wakes the thread at a kernel address, and is done
/// with the look at it.
#[inline(always)]
pub(crate) fn note(subject: SampleContext, woken: u64) {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        now,
    } = subject;
    let (Some(counters), Some(scratch), Some(key)) = (
        counters::counters(cpu_slot),
        SCRATCH.get(cpu_slot),
        scratch_key(cpu_slot),
    ) else {
        return;
    };
    let has_process = ids.tgid != 0;
    if !has_process {
        // Nothing is known of what lies at its addresses.
        scratch.user[0].store(0);
    }
    if apart::key_of(cpu_slot, ids, incarnation, ThreadState::Running).is_some() {
        // Where there is no room for its stacks, it is still known who it is.
        sample::key_without_stacks(key, ids, incarnation, ThreadState::Running);
    } else if has_process {
        // Now: by the time that the thread is back, the waker may have ended.
        events::new_process(counters, ids.tgid, incarnation);
        apart::tell_stack(cpu_slot, ids.tgid, incarnation);
    }
    if let Some(entry) = threads::make_waker(task::initial_id_of(woken)) {
        entry.note(now, key);
    }
    counters::add(counters, Counter::RunTime, task::now().wrapping_sub(now));
    counters::bump(counters, Counter::Left);
}

/// Counts the time that a thread was blocked, whose key is in the scratch memory, together with who woke it.
#[inline(always)]
pub(crate) fn settle(cpu_slot: u32, id: u32, since: u64, until: u64, gap: u64) -> Outcome {
    let (Some(scratch), Some(control)) = (SCRATCH.get(cpu_slot), CONTROL.get(0)) else {
        return Counter::LostTallyTable.into();
    };
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
    let Some(position) = apart::keep_kernel(cpu_slot, live.stacks(), Header::PAIR) else {
        return Counter::LostStackStore.into();
    };
    scratch.key[SampleKey::USER_WORD].store(0);
    let stamp = Stamp::new(live.epoch(), ThreadState::Woken);
    scratch.key[SampleKey::STAMP_WORD].store(SampleKey::stamp_word(position, stamp));
    apart::count(cpu_slot, off_cpu::weight(spent_ns, gap))
}
