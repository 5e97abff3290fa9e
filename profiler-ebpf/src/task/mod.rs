//! The running task: IDs as the user sees them, name, identity, user registers.
#![expect(
    unsafe_code,
    reason = "registers are read through pointers that the verifier vouches for"
)]

#[cfg(bpf_target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;

pub(crate) mod files;

use crate::{
    platform::{
        config::{self, config},
        maps::CONTROL,
        memory,
        subprog::Scalar,
        word::Word,
    },
    walk::scratch::Walk,
};
use aya_ebpf::{
    EbpfContext,
    bindings::{pt_regs, seq_file, task_struct},
    helpers::{
        bpf_get_current_comm, bpf_get_current_pid_tgid,
        generated::{
            bpf_get_attach_cookie, bpf_get_current_cgroup_id, bpf_get_current_task,
            bpf_get_current_task_btf, bpf_get_prandom_u32, bpf_get_smp_processor_id,
            bpf_get_task_stack, bpf_ktime_get_boot_ns, bpf_ktime_get_ns, bpf_seq_write,
            bpf_task_pt_regs,
        },
    },
    programs::{PerfEventContext, ProbeContext},
};
use core::hint::black_box;
use profiler_common::abi::{COMM_BYTES, KeptRegisters, MAX_KERNEL_FRAMES, Switches};

/// A task's IDs in our PID namespace.
#[derive(Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) tgid: u32,
    pub(crate) tid: u32,
}

/// Process IDs are positive, so the highest bit stays clear.
impl Scalar for Ids {
    #[inline(always)]
    fn into_word(self) -> u64 {
        u64::from(self.tgid) << 32 | u64::from(self.tid)
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self {
            tgid: (word >> 32) as u32,
            tid: word as u32,
        }
    }
}

/// The running task's IDs; none if it lives outside our PID namespace.
#[inline(always)]
pub(crate) fn current() -> Option<Ids> {
    let ids = bpf_get_current_pid_tgid();
    if ids as u32 == 0 || !config::has(Switches::PID_NAMESPACE) {
        return Some(Ids {
            tgid: (ids >> 32) as u32,
            tid: ids as u32,
        });
    }
    namespaced(current_address())
}

/// The IDs of the task at a kernel address; none if it lives outside our PID namespace.
#[inline(always)]
pub(crate) fn of(task: u64) -> Option<Ids> {
    if config::has(Switches::PID_NAMESPACE) {
        return namespaced(task);
    }
    let (pid, tgid) = (config!(layout.task_pid), config!(layout.task_tgid));
    if tgid == pid + 4 {
        // As in every kernel so far: one read instead of two, where nanoseconds count.
        let both: u64 = memory::kernel(task + u64::from(pid));
        return Some(Ids {
            tgid: (both >> 32) as u32,
            tid: both as u32,
        });
    }
    Some(Ids {
        tgid: memory::kernel(task + u64::from(tgid)),
        tid: memory::kernel(task + u64::from(pid)),
    })
}

#[inline(always)]
fn namespaced(task: u64) -> Option<Ids> {
    Some(Ids {
        tgid: number(leader(task))?,
        tid: number(task)?,
    })
}

/// The first thread of a task's process.
#[inline(always)]
fn leader(task: u64) -> u64 {
    memory::kernel(task + u64::from(config!(layout.task_group_leader)))
}

/// The task's ID in our PID namespace: `pid->numbers[level].nr`, if that entry is of our namespace.
#[inline(always)]
fn number(task: u64) -> Option<u32> {
    let pid: u64 = memory::kernel(task + u64::from(config!(layout.task_thread_pid)));
    let level: u32 = memory::kernel(pid + u64::from(config!(layout.pid_level)));
    let ours = CONTROL.get(0)?.namespace_level.load() as u32;
    if pid == 0 || level < ours {
        return None;
    }
    let offset = config!(layout.pid_numbers) + ours * config!(layout.upid_bytes);
    let upid = pid + u64::from(offset);
    let namespace: u64 = memory::kernel(upid + u64::from(config!(layout.upid_ns)));
    let inum: u32 = memory::kernel(namespace + u64::from(config!(layout.namespace_inum)));
    (inum == config!(namespace_inum))
        .then(|| memory::kernel(upid + u64::from(config!(layout.upid_nr))))
}

/// Notes how deep the running task's PID namespace lies below the initial one.
#[inline(always)]
pub(crate) fn note_own_level() {
    let pid: u64 = memory::kernel(current_address() + u64::from(config!(layout.task_thread_pid)));
    let level: u32 = memory::kernel(pid + u64::from(config!(layout.pid_level)));
    if let Some(control) = CONTROL.get(0) {
        control.namespace_level.store(u64::from(level));
    }
}

/// The name of the running task's process: that of its first thread.
#[inline(always)]
pub(crate) fn leader_comm() -> [u64; 2] {
    let comm = leader(current_address()) + u64::from(config!(layout.task_comm));
    memory::kernel_words(comm).unwrap_or_default()
}

/// See `SampleKey::incarnation`.
#[inline(always)]
pub(crate) fn incarnation() -> u64 {
    if !config::has(Switches::TASK_LAYOUT) {
        return 0;
    }
    incarnation_of(current_address())
}

/// [`incarnation`], of the task at a kernel address.
#[inline(always)]
pub(crate) fn incarnation_of(task: u64) -> u64 {
    let started: u64 =
        memory::kernel(leader(task) + u64::from(config!(layout.task_start_boottime)));
    let execs: u32 = memory::kernel(task + u64::from(config!(layout.task_self_exec_id)));
    started.wrapping_add(u64::from(execs))
}

/// In which state the running thread leaves the CPU. Somebody who wakes it at this very moment may have changed that
/// already: its wait, which has hardly begun and is over, then counts as one for a CPU.
#[inline(always)]
pub(crate) fn state() -> u64 {
    let state: u32 = memory::kernel(current_address() + u64::from(config!(layout.task_state)));
    u64::from(state)
}

/// Where the registers lie with which the running task came into the kernel, and the system call that it made.
/// `through`: memory in which the address becomes a number.
#[inline(always)]
pub(crate) fn way_in(through: &Word) -> (u64, u64) {
    // SAFETY: the helpers take the running task, and return its registers.
    let registers = unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) } as *const pt_regs;
    let call = arch::call(registers);
    through.store(registers as u64);
    (through.load(), call)
}

/// How often the running thread has left the CPU of its own accord.
#[inline(always)]
pub(crate) fn switches() -> u64 {
    memory::kernel(current_address() + u64::from(config!(faults.task_switches)))
}

/// Whether a page fault of the running thread's, in the kernel, is no reason to get the memory: whoever touches it there can
/// do without, as BPF programs can.
#[inline(always)]
pub(crate) fn does_without_memory() -> bool {
    let depth: u32 = memory::kernel(current_address() + u64::from(config!(faults.task_unhandled)));
    // Reading is such a touch itself (`copy_from_kernel_nofault` in `mm/maccess.c`).
    depth > 1
}

/// The running thread's thread pointer. Programs that set it themselves (`wrfsbase`) are seen with the one that they had when
/// they last got the CPU.
#[inline(always)]
pub(crate) fn thread_pointer() -> u64 {
    memory::kernel(current_address() + u64::from(config!(layout.task_thread_pointer)))
}

/// For how long the running thread has had the CPU this time, as the scheduler knows when it takes it
/// away: `se.sum_exec_runtime` less what that was when it came (`include/linux/sched.h`).
#[inline(always)]
pub(crate) fn ran_ns() -> u64 {
    let task = current_address();
    let now: u64 = memory::kernel(task + u64::from(config!(layout.task_ran)));
    let then: u64 = memory::kernel(task + u64::from(config!(layout.task_ran_before)));
    now.wrapping_sub(then)
}

/// The ID of the running task's cgroup in the unified hierarchy.
#[inline(always)]
pub(crate) fn unified_cgroup() -> u64 {
    // SAFETY: the helper takes nothing.
    unsafe { bpf_get_current_cgroup_id() }
}

/// The running thread's name.
#[inline(always)]
pub(crate) fn comm() -> [u8; COMM_BYTES] {
    bpf_get_current_comm().unwrap_or_default()
}

/// The name of the thread at a kernel address.
#[inline(always)]
pub(crate) fn comm_of(task: u64) -> [u8; COMM_BYTES] {
    let comm = task + u64::from(config!(layout.task_comm));
    let (low, high): (u64, u64) = (memory::kernel(comm), memory::kernel(comm + 8));
    let ([a, b, c, d, e, f, g, h], [i, j, k, l, m, n, o, p]) =
        (low.to_ne_bytes(), high.to_ne_bytes());
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

/// For how long the thread at a kernel address has existed.
#[inline(always)]
pub(crate) fn age_ns(task: u64) -> u64 {
    let started: u64 = memory::kernel(task + u64::from(config!(layout.task_start_boottime)));
    // SAFETY: the helper takes nothing.
    unsafe { bpf_ktime_get_boot_ns() }.wrapping_sub(started)
}

/// The CPU that this runs on.
#[inline(always)]
pub(crate) fn cpu() -> u32 {
    // SAFETY: the helper takes nothing.
    unsafe { bpf_get_smp_processor_id() }
}

/// A number that nobody can foresee.
#[inline(always)]
pub(crate) fn random() -> u32 {
    // SAFETY: the helper takes nothing.
    unsafe { bpf_get_prandom_u32() }
}

/// Nanoseconds since boot, without the time spent asleep.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: the helper takes nothing.
    unsafe { bpf_ktime_get_ns() }
}

/// Where the running task's kernel structure lies.
#[inline(always)]
pub(crate) fn current_address() -> u64 {
    // SAFETY: the helper takes nothing and only returns an address.
    unsafe { bpf_get_current_task() }
}

/// Whether the firing found the CPU in user mode.
#[inline(always)]
pub(crate) fn in_user_mode(ctx: &PerfEventContext) -> bool {
    // SAFETY: the context is valid for the whole firing.
    arch::in_user_mode(unsafe { &(*ctx.ctx).regs })
}

/// Whether the firing came upon an interrupt, or a softirq at the end of one: these run on stacks of their own. `through`: as
/// for [`way_in`].
#[inline(always)]
pub(crate) fn in_interrupt(ctx: &PerfEventContext, through: &Word) -> bool {
    let (top, _) = way_in(through);
    // SAFETY: the context is valid for the whole firing.
    let sp = arch::stack_pointer(unsafe { &(*ctx.ctx).regs });
    top.wrapping_sub(sp) > arch::TASK_STACK_BYTES
}

/// The period behind this firing.
#[inline(always)]
pub(crate) fn period(ctx: &PerfEventContext) -> u64 {
    // SAFETY: the context is valid for the whole firing.
    unsafe { (*ctx.ctx).sample_period }
}

/// The address that an event is about.
#[inline(always)]
pub(crate) fn address(ctx: &PerfEventContext) -> u64 {
    // SAFETY: the context is valid for the whole firing.
    unsafe { (*ctx.ctx).addr }
}

/// How a function was entered.
pub(crate) struct Entered {
    /// Where it begins.
    pub(crate) entry: u64,
    /// The stack pointer, at which the return address lies.
    pub(crate) stack: u64,
    pub(crate) arguments: [u64; 3],
}

/// The registers with which a function was entered.
#[inline(always)]
pub(crate) fn entered(ctx: &ProbeContext) -> Entered {
    // SAFETY: the context is valid for the whole firing.
    arch::entered(unsafe { &*ctx.regs })
}

/// The word with which the program was attached where it fires.
#[inline(always)]
pub(crate) fn cookie(ctx: &impl EbpfContext) -> u64 {
    // SAFETY: the helper asks for the context of the program.
    unsafe { bpf_get_attach_cookie(ctx.as_ptr()) }
}

/// Which kind of user mode the running task left, or would resume.
pub(crate) enum UserMode {
    /// A kernel thread, or one of a process that the kernel made: there is none.
    None,
    /// A 32-bit program.
    Compat,
    /// A 64-bit program.
    Native,
}

/// Puts the running task's user registers into `walk`, as its first frame: those with which it came into
/// the kernel, be it by a system call or by the very interrupt that fires.
#[inline(always)]
pub(crate) fn user_registers(walk: &Walk) -> UserMode {
    // SAFETY: the first helper returns the running task, which the second asks for.
    let regs = unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) } as *const pt_regs;
    arch::registers(regs, walk)
}

/// The instruction of the running program that an exception or an interrupt came at; none if it is in a system call.
#[inline(always)]
pub(crate) fn interrupted_at() -> Option<u64> {
    // SAFETY: the first helper returns the running task, which the second asks for.
    arch::interrupted(unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) } as *const pt_regs)
}

/// The running task's ID in the initial namespace, whatever ours is.
#[inline(always)]
pub(crate) fn initial_id() -> u32 {
    bpf_get_current_pid_tgid() as u32
}

/// The ID in the initial namespace of the task at a kernel address.
#[inline(always)]
pub(crate) fn initial_id_of(task: u64) -> u32 {
    memory::kernel(task + u64::from(config!(layout.task_pid)))
}

/// Context of a task iterator's program (`struct bpf_iter__task` in `kernel/bpf/task_iter.c`).
#[repr(C)]
pub(crate) struct Iteration {
    meta: *const IterationMeta,
    task: *mut task_struct,
}

/// The beginning of `struct bpf_iter_meta` (`include/linux/bpf.h`).
#[repr(C)]
struct IterationMeta {
    file: *mut seq_file,
}

impl Iteration {
    /// The task's kernel address; none behind the last task.
    #[inline(always)]
    pub(crate) fn task(&self, place: &Word) -> Option<u64> {
        if self.task.is_null() {
            return None;
        }
        // Through a map: what comes out is a number, and the verifier has nothing more to say about it.
        place.store(self.task as u64);
        Some(place.load())
    }

    /// Has the kernel walk the task's kernel stack to where `place` lies; the number of addresses.
    /// There must be room for [`MAX_KERNEL_FRAMES`].
    #[inline(always)]
    pub(crate) fn kernel_stack(&self, place: &[Word; MAX_KERNEL_FRAMES]) -> usize {
        const BYTES: usize = MAX_KERNEL_FRAMES * 8;
        if self.task.is_null() {
            return 0;
        }
        // SAFETY: the place has as many bytes as said, and the task is not null.
        let bytes =
            unsafe { bpf_get_task_stack(self.task, place[0].as_ptr().cast(), BYTES as u32, 0) };
        if bytes <= 0 || bytes > BYTES as i64 {
            return 0;
        }
        bytes as usize / 8
    }

    /// Instruction, stack pointer, frame pointer and saved register of the task's user mode.
    #[inline(always)]
    pub(crate) fn user_registers(&self) -> (KeptRegisters, [u64; 4]) {
        if self.task.is_null() {
            return (KeptRegisters::None, [0; 4]);
        }
        // SAFETY: the task is not null.
        arch::kept(unsafe { bpf_task_pt_regs(self.task) } as *const pt_regs)
    }

    /// Passes the first words of `record` on to whoever reads the iteration.
    #[inline(always)]
    pub(crate) fn tell<const WORDS: usize>(&self, record: &[Word; WORDS], words: usize) {
        // Hidden from the compiler, which knows the bound and would not compare; the verifier must see it.
        let bytes = black_box(words * 8);
        if bytes > WORDS * 8 || self.meta.is_null() {
            return;
        }
        // SAFETY: the record has as many words as said; the file is the one that is being read.
        unsafe { bpf_seq_write((*self.meta).file, record[0].as_ptr().cast(), bytes as u32) };
    }
}

/// The registers with which a thread made a system call: the kernel's address of them, as `sys_enter` has it.
#[derive(Clone, Copy)]
pub(crate) struct CallRegisters(pub(crate) u64);

impl Scalar for CallRegisters {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self(word)
    }
}

impl CallRegisters {
    /// One of the first three arguments.
    #[inline(always)]
    pub(crate) fn argument(self, index: usize) -> u64 {
        memory::kernel(self.0 + arch::CALL_ARGUMENTS[index])
    }

    /// Whether a 64-bit program made it, whose calls have other numbers than those of 32-bit programs.
    #[inline(always)]
    pub(crate) fn is_native(self) -> bool {
        arch::is_native(self.0)
    }
}
