//! One sample of a task: its stacks are walked into the scratch memory of the CPU slot, stored, and counted for their key.
//!
//! In: a [`SampleContext`]. Out: a tally, and the outcome of the firing. For a key that was not counted before, user space
//! gets the events it needs.

use crate::{
    events::{self, cgroup_event, function_event, mapping_event},
    platform::{
        config,
        log::{self, Happened},
        maps::{CONTROL, Scratch},
        subprog::subprog,
        word::Word,
    },
    sample::{
        cgroup,
        context::SampleContext,
        counters::{self, Outcome},
    },
    store::{
        stacks,
        tallies::{self, Counted},
        threads,
    },
    task::{self, Ids},
    walk::{
        kernel,
        kstack_cache::{self, KNOWN_STACK},
        user,
    },
};
use aya_ebpf::{EbpfContext, programs::RawTracePointContext};
use profiler_common::abi::{
    Counter, Header, KEY_WORDS, Live, SampleKey, StackPosition, Stamp, Switches, ThreadState,
};

/// The name under which the idle tasks of all CPUs count as one; the kernel's includes the CPU's number.
const IDLE_COMM: [u8; 16] = *b"swapper\0\0\0\0\0\0\0\0\0";

/// Walks the running task's stacks, as far as they are wanted, into the scratch memory that holds the context; a kernel
/// stack only if the firing found the CPU `in_kernel`. Returns the outcome of the firing if that is not possible.
#[inline(always)]
pub(crate) fn walk(ctx: &impl EbpfContext, cpu_slot: u32, in_kernel: bool) -> Option<Outcome> {
    let Some(scratch) = Scratch::of(cpu_slot) else {
        return Some(Counter::LostStackStore.into());
    };
    if config::has(Switches::KERNEL_STACKS) && in_kernel {
        kernel::walk::<0>(ctx, &scratch.kernel);
    } else {
        scratch.kernel[0].store(0);
    }
    walk_user(scratch, cpu_slot);
    None
}

/// As [`walk`], for a thread that begins to wait or was preempted. The first of the tracepoint's `arguments` is where
/// inspection of the kernel stack begins.
#[inline(always)]
pub(crate) fn walk_waiting(
    ctx: &RawTracePointContext,
    cpu_slot: u32,
    is_preempted: impl FnOnce() -> bool,
) -> Option<Outcome> {
    let Some(scratch) = Scratch::of(cpu_slot) else {
        return Some(Counter::LostStackStore.into());
    };
    if !config::has(Switches::KERNEL_STACKS) {
        scratch.kernel[0].store(0);
    } else if is_preempted() {
        kernel::walk::<0>(ctx, &scratch.kernel);
    } else {
        kstack_cache::begin(ctx.as_ptr());
        if kstack_cache::lookup_kernel_stack() {
            scratch.kernel[0].store(KNOWN_STACK);
        } else {
            kernel::walk::<0>(ctx, &scratch.kernel);
            kstack_cache::insert_kernel_stack(cpu_slot);
        }
    }
    walk_user(scratch, cpu_slot);
    None
}

/// Walks the running task's user stack, if user stacks are wanted, into the slot's scratch memory.
#[inline(always)]
pub(crate) fn walk_user(scratch: &Scratch, cpu_slot: u32) {
    if config::has(Switches::USER_STACKS) {
        user::walk_user_stack(cpu_slot);
        stacks::seal_user_stack(cpu_slot);
        if config::has(Switches::MAPPING_EVENTS) {
            mapping_event::check_stack(cpu_slot);
        }
    } else {
        scratch.user[0].store(0);
    }
}

/// Stores the stacks, counts the firing of a running thread for an event, and returns the outcome.
#[inline(always)]
pub(crate) fn take(event: u32, cpu_slot: u32, weight: u64) -> Outcome {
    match store_and_count(cpu_slot, weight, event) {
        Ok(counted) => {
            // Called from here and not from there, where much of the BPF stack is in use.
            if counted == Counted::First {
                announce(cpu_slot);
            }
            Counter::Recorded.into()
        }
        Err(outcome) => outcome,
    }
}

subprog! {
    /// Stores the stacks and counts the firing of a running thread for an event.
    fn store_and_count(cpu_slot: u32, weight: u64, event: u32) -> Result<Counted, Outcome> {
        key::<false>(cpu_slot, ThreadState::Running, event)?;
        count(cpu_slot, weight).map_err(Outcome::from)
    }
}

subprog! {
    /// Stores the stacks and puts the running task's key into the scratch memory; or returns the outcome of the firing.
    pub(crate) fn make_key(cpu_slot: u32, thread_state: ThreadState) -> Result<(), Outcome> {
        key::<true>(cpu_slot, thread_state, 0)
    }
}

subprog! {
    /// Puts the running task's key into the scratch memory, without stacks, and clears those there.
    pub(crate) fn make_key_without_stacks(cpu_slot: u32, thread_state: ThreadState) {
        if let (Some(scratch), Some(context)) = (Scratch::of(cpu_slot), SampleContext::of(cpu_slot)) {
            scratch.user[0].store(0);
            scratch.kernel[0].store(0);
            key_without_stacks(&scratch.key, context, thread_state);
        }
    }
}

subprog! {
    /// Counts a firing for the key in the scratch memory and returns the outcome.
    pub(crate) fn count_key(cpu_slot: u32, weight: u64) -> Outcome {
        match count(cpu_slot, weight) {
            Ok(counted) => {
                if counted == Counted::First {
                    events::announce_process(cpu_slot);
                    cgroup_event::report_cgroup(cpu_slot);
                }
                Counter::Recorded.into()
            }
            Err(counter) => counter.into(),
        }
    }
}

subprog! {
    /// Records that the running thread begins to wait, for the key in the scratch memory; or returns the outcome of the
    /// firing.
    pub(crate) fn begin_wait(cpu_slot: u32, now: u64) -> Option<Outcome> {
        let lost = Some(Counter::LostThreadTable.into());
        let Some(scratch) = Scratch::of(cpu_slot) else {
            return lost;
        };
        // Now and not when the thread is back: by then it may be about to end.
        events::announce_process(cpu_slot);
        cgroup_event::report_cgroup(cpu_slot);
        function_event::report_functions(cpu_slot);
        let Some(entry) = threads::make(task::initial_id()) else {
            return lost;
        };
        // The thread has the CPU until this is done. That matters for short waits, the more so if one stands for others;
        // with wall time, the time must be somewhere.
        let now = if config::has(Switches::WALL) { now } else { task::now() };
        entry.leave(now, &scratch.key);
        None
    }
}

/// Has user space know the process in the scratch memory, unless its mappings do, its cgroup, and the functions of its
/// interpreters.
#[inline(always)]
fn announce(cpu_slot: u32) {
    cgroup_event::report_cgroup(cpu_slot);
    function_event::report_functions(cpu_slot);
    let check = Scratch::of(cpu_slot).map_or(0, |scratch| Header(scratch.user[0].load()).check());
    if check == 0 {
        events::announce_process(cpu_slot);
    }
}

#[inline(always)]
fn count(cpu_slot: u32, weight: u64) -> Result<Counted, Counter> {
    let scratch = Scratch::of(cpu_slot).ok_or(Counter::LostTallyTable)?;
    let control = CONTROL.get(0).ok_or(Counter::LostTallyTable)?;
    let side = Live(control.live.load()).tallies();
    tallies::count(cpu_slot, scratch, side, weight).ok_or(Counter::LostTallyTable)
}

/// Stores the stacks and puts the key of the running task into the scratch memory; or returns the outcome of the firing.
///
/// `CACHED`: whether the kernel stack may be one that the cache knows, as those of threads that begin to wait may. Others are
/// spared the way there, which takes of the 512 bytes of BPF stack that all calls on one way have together.
#[inline(always)]
pub(crate) fn key<const CACHED: bool>(
    cpu_slot: u32,
    thread_state: ThreadState,
    event: u32,
) -> Result<(), Outcome> {
    let lost = Outcome::from(Counter::LostStackStore);
    let scratch = Scratch::of(cpu_slot).ok_or(lost)?;
    let context = SampleContext::of(cpu_slot).ok_or(lost)?;
    let control = CONTROL.get(0).ok_or(lost)?;
    let live = Live(control.live.load());
    let side = live.stacks();
    let user = match scratch.user[0].load() {
        0 if !config::has(Switches::KERNEL_STACKS) => {
            return Err(Counter::FilteredNoUserStack.into());
        }
        0 => StackPosition::NONE,
        header => match stacks::intern_user_stack(cpu_slot, side, Header(header)) {
            Some(position) => position,
            None => {
                if log::is_on() {
                    let frames = header & u64::from(u16::MAX);
                    let leaf = scratch.user[1].load();
                    log::note(Happened::NoRoom, context.ids.tgid, frames, leaf);
                }
                return Err(lost);
            }
        },
    };
    let kernel = match scratch.kernel[0].load() {
        0 => StackPosition::NONE,
        KNOWN_STACK if CACHED => intern_known_stack(cpu_slot, live).ok_or(lost)?,
        header => stacks::intern_kernel_stack(cpu_slot, side, Header(header)).ok_or(lost)?,
    };
    let stamp = Stamp::new(live.epoch(), thread_state).of_event(event);
    let key = SampleKey {
        user,
        kernel,
        ..owner(context, stamp)
    };
    put(&scratch.key, &key);
    Ok(())
}

subprog! {
    /// The position of the kernel stack that the cache has found; none if the store is full.
    fn intern_known_stack(cpu_slot: u32, live: Live) -> Option<StackPosition> {
        let counters = counters::counters(cpu_slot)?;
        counters::bump(counters, Counter::KernelStacksCached);
        let stack = kstack_cache::chosen()?;
        if let Some(position) = stack.position(live) {
            return Some(position);
        }
        let header = stack.restore(&Scratch::of(cpu_slot)?.kernel);
        let position = stacks::intern_kernel_stack(cpu_slot, live.stacks(), header)?;
        stack.set_position(live, position);
        Some(position)
    }
}

/// The key of the running task, without stacks.
#[inline(always)]
fn owner(context: SampleContext, stamp: Stamp) -> SampleKey {
    let SampleContext {
        ids, incarnation, ..
    } = context;
    SampleKey {
        incarnation,
        tgid: ids.tgid,
        tid: if config::has(Switches::PER_THREAD) {
            ids.tid
        } else {
            0
        },
        cpu: if config::has(Switches::PER_CPU) {
            task::cpu() as u16
        } else {
            0
        },
        cgroup: cgroup::current(),
        user: StackPosition::NONE,
        kernel: StackPosition::NONE,
        stamp,
        comm: if ids.tid == 0 {
            IDLE_COMM
        } else {
            task::comm()
        },
    }
}

/// Puts the key of the running task, without stacks, into `place`.
#[inline(always)]
pub(crate) fn key_without_stacks(
    place: &[Word; KEY_WORDS],
    context: SampleContext,
    thread_state: ThreadState,
) {
    put(place, &owner(context, Stamp::new(0, thread_state)));
}

/// As [`key_without_stacks`], of the thread at a kernel address.
#[inline(always)]
pub(crate) fn key_of(place: &[Word; KEY_WORDS], task: u64, ids: Ids, thread_state: ThreadState) {
    let key = SampleKey {
        incarnation: task::incarnation_of(task),
        tgid: ids.tgid,
        tid: if config::has(Switches::PER_THREAD) {
            ids.tid
        } else {
            0
        },
        cpu: 0,
        cgroup: cgroup::cgroup_of(task) as u16,
        user: StackPosition::NONE,
        kernel: StackPosition::NONE,
        stamp: Stamp::new(0, thread_state),
        comm: task::comm_of(task),
    };
    put(place, &key);
}

#[inline(always)]
fn put(place: &[Word; KEY_WORDS], key: &SampleKey) {
    for (place, word) in place.iter().zip(key.words()) {
        place.store(word);
    }
}
