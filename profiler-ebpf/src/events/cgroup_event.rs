//! Reports to user space what a cgroup is called, when it is first sampled: it may be gone a moment later.
//!
//! In: the key in the scratch memory. Out: a record in the queue ([`profiler_common::abi::CgroupEventRecord`]), once for each
//! cgroup.

use super::send_record;
use crate::{
    platform::{
        config::{self, config},
        loops::{Turn, repeat_anywhere},
        maps::{Cgroup, Scratch},
        memory,
        subprog::subprog,
    },
    sample::{cgroup, counters},
    task,
};
use core::ops::ControlFlow;
use profiler_common::abi::{
    CgroupState, Counter, KernelEventKind, MAPPING_EVENT_WORDS, PATH_BYTES, PATH_STEPS, SampleKey,
    Switches,
};

/// How many names are read where there is no `bpf_loop`.
const PLAIN_STEPS: u32 = 16;

subprog! {
    /// Reports the cgroup of the key in the scratch memory, unless that was done before.
    pub(crate) fn report_cgroup(cpu_slot: u32) {
        if !config::has(Switches::CGROUPS) {
            return;
        }
        let Some(scratch) = Scratch::of(cpu_slot) else {
            return;
        };
        let number = SampleKey::cgroup_in(scratch.key[SampleKey::USER_WORD].load());
        if let Some(slot) = cgroup::of(number)
            && !CgroupState(slot.state.load()).has(CgroupState::REPORTED)
        {
            report(cpu_slot, scratch, number, slot);
        }
    }
}

/// Reports the cgroup of the running task, which is user space before anything fires.
#[inline(always)]
pub(crate) fn report_own() {
    let cpu_slot = task::cpu();
    if let Some(scratch) = Scratch::of(cpu_slot) {
        let number = u64::from(cgroup::current());
        scratch.key[SampleKey::USER_WORD].store(number << 16);
        report_cgroup(cpu_slot);
    }
}

#[inline(always)]
fn report(cpu_slot: u32, scratch: &'static Scratch, number: u16, slot: &'static Cgroup) {
    let report = &scratch.report;
    let (id, node) = (slot.id.load(), slot.node.load());
    if node == 0 {
        // Another CPU is about to note it.
        return;
    }
    report.entry.store(node);
    report.length.store(0);
    repeat_anywhere(PATH_STEPS, PLAIN_STEPS, &mut Names { scratch });
    // The memory of one that has gone may be another's.
    let same: u64 = memory::kernel(node + u64::from(config!(cgroups.node_id)));
    if same != id {
        return;
    }
    let is_cut = report.entry.load() != 0;
    // The fields of `CgroupEventRecord`, in order.
    let words = [
        u64::from(KernelEventKind::Cgroup as u32) | u64::from(number) << 32,
        id,
        u64::from(is_cut),
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    for (place, word) in report.record.iter().zip(words) {
        place.store(word);
    }
    if send_record::<MAPPING_EVENT_WORDS>(&report.record, &report.length, true) {
        slot.state.set(CgroupState::REPORTED.0);
    } else if let Some(counters) = counters::counters(cpu_slot) {
        counters::bump(counters, Counter::KernelEventsDropped);
    }
}

/// One name after the other, up to the root's, which is empty.
struct Names {
    scratch: &'static Scratch,
}

impl Turn for Names {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        let report = &self.scratch.report;
        let (node, length) = (report.entry.load(), report.length.load() as usize);
        if node == 0 || length >= PATH_BYTES {
            return ControlFlow::Break(());
        }
        let name: u64 = memory::kernel(node + u64::from(config!(cgroups.node_name)));
        let Some(copied) = memory::copy_name(&report.record, length, name) else {
            return ControlFlow::Break(());
        };
        report.length.store((length + copied) as u64);
        report.entry.store(memory::kernel(
            node + u64::from(config!(cgroups.node_parent)),
        ));
        ControlFlow::Continue(())
    }
}
