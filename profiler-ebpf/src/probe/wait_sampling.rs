//! Which waits of a thread are sampled, and what those stand for that are; see [`profiler_common::wait_sampling`].

use crate::{
    platform::{
        config::{self, config},
        maps::{CONTROL, OFTEN_WAITING, Scratch},
    },
    store::threads,
    task,
};
use profiler_common::{
    abi::{OFTEN_WAITING_SLOTS, Switches},
    wait_sampling::{Chance, halvings_after, mean_gap, passes_first_draw},
};

/// As the draw of a wait that was left out, where the one before may not be settled.
const LEFT_OUT: u64 = u64::MAX;

/// In a slot: the thread's last wait that went on was sampled.
const SAMPLED: u64 = 1 << 8;

/// The contents of a thread's slot, by its ID in the initial namespace.
#[inline(always)]
const fn held(id: u32, is_sampled: bool, halvings: u32) -> u64 {
    let sampled = if is_sampled { SAMPLED } else { 0 };
    (id as u64) << 32 | sampled | halvings as u64
}

/// Whether the first draw leaves out the wait that the running thread begins, of this ID in the initial namespace. Keeps the draw, if
/// there is one, for [`is_sampled`].
#[inline(always)]
pub(crate) fn is_left_out(cpu_slot: u32, id: u32, is_wanted: bool) -> bool {
    let (Some(scratch), Some(slot)) = (
        Scratch::of(cpu_slot),
        OFTEN_WAITING.get(id & (OFTEN_WAITING_SLOTS - 1)),
    ) else {
        return false;
    };
    let held = slot.load();
    let is_its_own = (held >> 32) as u32 == id;
    let halvings = if is_wanted && is_its_own {
        held as u32 & 0xf
    } else {
        0
    };
    if passes_first_draw(halvings, task::random()) {
        scratch.wait.draw.store(u64::from(halvings));
        return false;
    }
    // The thread's coming back may not have been seen.
    scratch.wait.draw.store(LEFT_OUT);
    held & SAMPLED == 0
}

/// Whether there is a first draw. It costs chance, and so is for budgets alone.
#[inline(always)]
pub(crate) fn has_first_draw() -> bool {
    config::has(Switches::VARYING_WAITS)
}

/// Whether this is one of the waits of the thread that are sampled.
#[inline(always)]
pub(crate) fn is_sampled(entry: &threads::Entry, cpu_slot: u32, id: u32, now: u64) -> bool {
    if !has_first_draw() {
        return second_draw(entry, 0, entry.left_before(now), now).1;
    }
    let (Some(scratch), Some(slot)) = (
        Scratch::of(cpu_slot),
        OFTEN_WAITING.get(id & (OFTEN_WAITING_SLOTS - 1)),
    ) else {
        return true;
    };
    let draw = scratch.wait.draw.load();
    if draw == LEFT_OUT {
        slot.store(slot.load() & !SAMPLED);
        return false;
    }
    let before = entry.left_before(now);
    let (chance, is_sampled) = second_draw(entry, draw as u32, before, now);
    let halvings = halvings_after(chance, now.wrapping_sub(before));
    if halvings > 0 || (slot.load() >> 32) as u32 == id {
        slot.store(held(id, is_sampled, halvings));
    }
    is_sampled
}

/// The chance of a wait that passed the first draw, which halved so often, and whether it is sampled; `before` is when the thread's last
/// wait began.
#[inline(always)]
fn second_draw(entry: &threads::Entry, halvings: u32, before: u64, now: u64) -> (Chance, bool) {
    let (period, first) = period_ns();
    let mean = entry.chance().gap_when(halvings);
    let gap = mean_gap(mean, before, now, period, first);
    let chance = Chance::new(gap, period, halvings);
    entry.set_chance(chance);
    (chance, chance.hits(task::random()))
}

/// Whether it is known at once, of most threads that wait often, that the last wait was not sampled.
#[inline(always)]
pub(crate) fn is_surely_not_sampled(id: u32) -> bool {
    OFTEN_WAITING
        .get(id & (OFTEN_WAITING_SLOTS - 1))
        .is_some_and(|slot| {
            let held = slot.load();
            (held >> 32) as u32 == id && held & SAMPLED == 0
        })
}

/// Forgets a thread that ends, by its ID in the initial namespace: another may get that.
#[inline(always)]
pub(crate) fn forget(id: u32) {
    if let Some(slot) = OFTEN_WAITING.get(id & (OFTEN_WAITING_SLOTS - 1))
        && (slot.load() >> 32) as u32 == id
    {
        slot.store(0);
    }
}

/// How often a wait of each thread is looked at now, zero: always; and the gap presumed of one that was not seen to wait.
#[inline(always)]
fn period_ns() -> (u64, u64) {
    if config::has(Switches::VARYING_WAITS) {
        let Some(control) = CONTROL.get(0) else {
            return (0, 0);
        };
        let (period, first) = (control.wait_sample_period.load(), control.first_gap.load());
        (period, if first < period { first } else { period })
    } else {
        let period = config!(wait_sample_period_ns);
        (period, period)
    }
}

/// Weight of time off the CPU, of a wait that had this chance.
#[inline(always)]
pub(crate) fn weight(spent_ns: u64, chance: Chance) -> u64 {
    if threads::samples_waits() {
        chance.weight(spent_ns)
    } else {
        spent_ns
    }
}
