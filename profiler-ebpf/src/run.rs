//! Entry points of the programs, by their names in the object ([`profiler_common::programs!`]).
//!
//! In: the context of one run. Out: what the probe does with it. A tracepoint's program knows its event by
//! its making: see `docs/internals/architecture.md`.

use crate::{
    events::cgroup_event,
    probe::{
        alloc, lock, off_cpu, on_cpu, page_in, syscall, task_iter, timed, tracepoint, uprobe,
        waker, wall,
    },
    sample::filter,
    symbol, task,
    walk::mappings,
};
use aya_ebpf::programs::{PerfEventContext, ProbeContext, RawTracePointContext};

/// Gives each row's function its context, and what it calls with that.
macro_rules! runs {
    ($($context:ty { $($name:ident($ctx:pat) => $call:expr;)+ })+) => {
        $($(
            #[inline(always)]
            pub(crate) fn $name($ctx: &$context) {
                $call;
            }
        )+)+
    };
}

runs! {
    PerfEventContext {
        on_cpu(ctx) => on_cpu::fire(ctx);
        fault_major(ctx) => page_in::end(ctx);
    }
    ProbeContext {
        function(ctx) => uprobe::fire(ctx);
        allocation(ctx) => alloc::fire(ctx);
    }
    RawTracePointContext {
        off_cpu(ctx) => off_cpu::switch(ctx);
        woken(ctx) => wall::woken(ctx);
        waking(ctx) => waker::waking(ctx);
        tracepoint(ctx) => tracepoint::fire::<0>(ctx);
        tracepoint_1(ctx) => tracepoint::fire::<1>(ctx);
        tracepoint_2(ctx) => tracepoint::fire::<2>(ctx);
        tracepoint_3(ctx) => tracepoint::fire::<3>(ctx);
        tracepoint_4(ctx) => tracepoint::fire::<4>(ctx);
        tracepoint_5(ctx) => tracepoint::fire::<5>(ctx);
        tracepoint_6(ctx) => tracepoint::fire::<6>(ctx);
        tracepoint_7(ctx) => tracepoint::fire::<7>(ctx);
        call(ctx) => syscall::made(ctx);
        call_begin(ctx) => syscall::begin(ctx);
        call_end(ctx) => syscall::end(ctx);
        fault_begin(ctx) => page_in::begin(ctx, false);
        fault_in_kernel(ctx) => page_in::begin(ctx, true);
        fault_locks(_) => page_in::locks();
        fault_unlocks(_) => page_in::unlocks();
        lock_begin(ctx) => lock::begin(ctx);
        lock_end(ctx) => lock::end(ctx);
        thread_end(_) => timed::thread_ends();
        fork(ctx) => filter::forked(ctx.arg(0), ctx.arg(1));
        exec(ctx) => filter::executed(ctx.arg(0));
        name_symbol(ctx) => symbol::name(ctx.arg(0));
        read_text(ctx) => symbol::read_text(ctx.arg(0));
        own_level(_) => task::note_own_level();
        own_cgroup(_) => cgroup_event::report_own();
        code_key(ctx) => mappings::note_code(ctx.arg(0));
    }
    task::Iteration {
        asleep(ctx) => task_iter::look(ctx);
    }
}
