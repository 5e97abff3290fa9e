//! Threads that left the CPU before the recording began: user space has the kernel go through all tasks,
//! and this tells it of those that are off the CPU, with the kernel stack and the user registers that
//! they left with. Both stay as they are until the thread is switched in, which `off_cpu` notes.

use crate::{
    platform::{
        config::{self, config},
        maps::ASLEEP,
        memory,
    },
    sample::{cgroup, filter},
    task::{self, Iteration},
};
use profiler_common::abi::{
    ASLEEP_WORDS, KeptRegisters, MAX_KERNEL_FRAMES, States, Switches, TaskState, ThreadState,
};

/// Looks at one task.
#[inline(always)]
pub(crate) fn look(iteration: &Iteration) {
    let Some(record) = ASLEEP.get(0) else { return };
    let Some(task) = iteration.task(&record[0]) else {
        return;
    };
    let Some(ids) = filter::task(task) else {
        return;
    };
    let on_cpu: u32 = memory::kernel(task + u64::from(config!(layout.task_on_cpu)));
    let state: u32 = memory::kernel(task + u64::from(config!(layout.task_state)));
    let Some(state) = TaskState::of(state, false) else {
        return;
    };
    let runs = on_cpu != 0;
    if runs && !config::has(Switches::WALL) {
        return;
    }
    if !filter::is_wanted_kind(task) || !States(config!(states)).has(state) {
        return;
    }
    let Some(place) = record
        .get(ASLEEP_WORDS..)
        .and_then(|place| <&[_; MAX_KERNEL_FRAMES]>::try_from(place).ok())
    else {
        return;
    };
    // A running thread has no stacks that stay as they are.
    let (frames, (kept, registers), thread_state) = if runs {
        (0, (KeptRegisters::None, [0; 4]), ThreadState::Ran)
    } else {
        let frames = iteration.kernel_stack(place);
        (frames, iteration.user_registers(), state.thread_state())
    };
    let comm = task + u64::from(config!(layout.task_comm));
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    // The fields of `Asleep`, in their order.
    let [ip, sp, fp, saved] = registers;
    let words = [
        pair(
            task::initial_id_of(task),
            frames as u32 & 0xffff | cgroup::cgroup_of(task) << 16,
        ),
        pair(ids.tgid, ids.tid),
        task::incarnation_of(task),
        pair(thread_state as u32, kept as u32),
        ip,
        sp,
        fp,
        saved,
        memory::kernel(comm),
        memory::kernel(comm + 8),
    ];
    for (place, word) in record.iter().zip(words) {
        place.store(word);
    }
    if frames <= MAX_KERNEL_FRAMES {
        iteration.tell(record, ASLEEP_WORDS + frames);
    }
}
