//! On-CPU: one firing per tick of a clock or overflow of a counter; weight one, or the period.

use crate::{
    aggregate,
    config::{self, config},
    counter, filter,
    maps::{Books, CONTROL, SCRATCH},
    task::{self, Ids},
    walk::{self, Subject},
};
use aya_ebpf::programs::PerfEventContext;
use profiler_common::abi::{Counter, Live, SampleKey, StackPosition, Switches};

/// The name under which the idle tasks of all CPUs are one; the kernel's has the CPU's number behind it.
const IDLE_COMM: [u8; 16] = *b"swapper\0\0\0\0\0\0\0\0\0";

/// One firing: opens the books, samples, closes the books.
#[inline(always)]
pub(crate) fn fire(ctx: &PerfEventContext) {
    let started = task::now();
    let cpu = task::cpu();
    let Some(books) = counter::books(cpu) else {
        return;
    };
    counter::open(books);
    let outcome = sample(ctx, books, cpu, started);
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(started));
    counter::bump(books, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn sample(ctx: &PerfEventContext, books: &'static Books, cpu: u32, now: u64) -> Counter {
    let ids = match filter::current() {
        Ok(ids) => ids,
        Err(filtered) => return filtered,
    };
    match record(ctx, books, cpu, ids, now) {
        Ok(()) => Counter::Recorded,
        Err(outcome) => outcome,
    }
}

#[inline(always)]
fn record(
    ctx: &PerfEventContext,
    books: &'static Books,
    cpu: u32,
    ids: Ids,
    now: u64,
) -> Result<(), Counter> {
    let control = CONTROL.get(0).ok_or(Counter::LostTallyTable)?;
    let live = Live(control.live.load());
    let idle = ids.tid == 0;
    let subject = Subject {
        tgid: ids.tgid,
        incarnation: if idle { 0 } else { task::incarnation() },
        cpu,
        now,
    };
    let (user, kernel) = stacks(ctx, books, cpu, live.stacks(), subject)?;
    let key = SampleKey {
        incarnation: subject.incarnation,
        tgid: ids.tgid,
        tid: if config::has(Switches::PER_THREAD) {
            ids.tid
        } else {
            0
        },
        cpu: if config::has(Switches::PER_CPU) {
            cpu
        } else {
            0
        },
        user,
        kernel,
        reserved: 0,
        comm: if idle { IDLE_COMM } else { task::comm() },
    };
    let weight = if config::has(Switches::WEIGH_BY_PERIOD) {
        task::period(ctx)
    } else {
        1
    };
    aggregate::record(books, live.tallies(), &key, weight).ok_or(Counter::LostTallyTable)
}

/// Walks and stores the stacks that are wanted.
#[inline(always)]
fn stacks(
    ctx: &PerfEventContext,
    books: &'static Books,
    cpu: u32,
    side: u32,
    subject: Subject,
) -> Result<(StackPosition, StackPosition), Counter> {
    let scratch = SCRATCH.get(cpu).ok_or(Counter::LostStackStore)?;
    let seed = config!(seed);
    let (mut user, mut kernel) = (StackPosition::NONE, StackPosition::NONE);
    if config::has(Switches::KERNEL_STACKS) {
        if !task::in_user_mode(ctx) {
            if let Some(stack) = walk::kernel(ctx, &scratch.kernel, seed) {
                kernel = stack.intern(books, side).ok_or(Counter::LostStackStore)?;
            }
        } else if !config::has(Switches::USER_STACKS) {
            return Err(Counter::FilteredUserMode);
        }
    }
    if config::has(Switches::USER_STACKS) {
        let mode = task::user_registers(&scratch.walk);
        if let Some(stack) = walk::user(mode, scratch, books, subject, seed) {
            user = stack.intern(books, side).ok_or(Counter::LostStackStore)?;
        } else if !config::has(Switches::KERNEL_STACKS) {
            return Err(Counter::FilteredNoUserStack);
        }
    }
    Ok((user, kernel))
}
