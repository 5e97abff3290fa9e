//! The registers of x86-64: where a task keeps them, and what of them a walk begins with.
#![expect(
    unsafe_code,
    reason = "registers are read through pointers that the verifier vouches for"
)]

use super::{Entered, KeptRegisters, UserMode, Walk, config, memory, pt_regs};
use profiler_common::{
    abi::Switches,
    walk::{Registers, native::Frame},
};

/// The code segment of 64-bit programs (`arch/x86/include/asm/segment.h`, `__USER_CS`).
const USER_CS: u64 = 0x33;

/// Where the first arguments of a system call stand: rdi, rsi and rdx in `struct pt_regs`, whose layout is
/// an interface (`arch/x86/include/uapi/asm/ptrace.h`).
pub(super) const CALL_ARGUMENTS: [u64; 3] = [112, 104, 96];

/// Where the code segment stands.
const CODE_SEGMENT: u64 = 136;

/// Whether registers at this kernel address are those of a 64-bit program.
#[inline(always)]
pub(super) fn is_native(registers: u64) -> bool {
    memory::kernel::<u64>(registers + CODE_SEGMENT) == USER_CS
}

/// Bytes of a task's kernel stack, at whose top its registers lie (`THREAD_SIZE` in
/// `arch/x86/include/asm/page_64_types.h`, without KASAN).
pub(super) const TASK_STACK_BYTES: u64 = 16 << 10;

/// The pointer of the stack that the CPU was on.
#[inline(always)]
pub(super) fn stack_pointer(regs: &pt_regs) -> u64 {
    regs.rsp
}

#[inline(always)]
pub(super) fn entered(regs: &pt_regs) -> Entered {
    Entered {
        entry: regs.rip,
        stack: regs.rsp,
        arguments: [regs.rdi, regs.rsi, regs.rdx],
    }
}

/// Whether these registers are of user mode.
#[inline(always)]
pub(super) fn in_user_mode(regs: &pt_regs) -> bool {
    is_user(regs.cs)
}

/// Whether a code segment is one of user mode: its privilege level is 3.
#[inline(always)]
fn is_user(cs: u64) -> bool {
    cs & 3 == 3
}

/// Whether a task with these registers has a user mode that it left. Threads that the kernel made in a process, such as
/// io_uring's workers, have a copy of their maker's registers, in which both pointers are cleared for tools to see
/// (`copy_thread` in `arch/x86/kernel/process.c`).
#[inline(always)]
fn has_user_mode(cs: u64, ip: u64, sp: u64) -> bool {
    is_user(cs) && (ip | sp) != 0
}

/// As [`registers`], all that a later walk may ask for.
#[inline(always)]
pub(super) fn kept(regs: *const pt_regs) -> (KeptRegisters, [u64; 4]) {
    // SAFETY: `bpf_task_pt_regs` returned these.
    let (cs, kept) = unsafe {
        (
            (*regs).cs,
            [(*regs).rip, (*regs).rsp, (*regs).rbp, (*regs).rbx],
        )
    };
    let [ip, sp, ..] = kept;
    if !has_user_mode(cs, ip, sp) {
        (KeptRegisters::None, kept)
    } else if cs == USER_CS {
        (KeptRegisters::Native, kept)
    } else {
        (KeptRegisters::Compat, kept)
    }
}

/// The number of the system call; less than zero for any other way in.
#[inline(always)]
pub(super) fn call(regs: *const pt_regs) -> u64 {
    // SAFETY: `bpf_task_pt_regs` returned these.
    unsafe { (*regs).orig_rax }
}

/// See [`super::interrupted_at`].
#[inline(always)]
pub(super) fn interrupted(regs: *const pt_regs) -> Option<u64> {
    // SAFETY: `bpf_task_pt_regs` returned these.
    let (cs, ip, call) = unsafe { ((*regs).cs, (*regs).rip, (*regs).orig_rax) };
    // As in `registers`.
    (is_user(cs) && (call as i64) < 0).then_some(ip)
}

#[inline(always)]
pub(super) fn registers(regs: *const pt_regs, walk: &Walk) -> UserMode {
    // SAFETY: `regs` points to registers that the verifier knows to be readable: the context's,
    // or those that `bpf_task_pt_regs` returned.
    let (cs, ip, sp, fp, saved, call) = unsafe {
        let regs = &*regs;
        (
            regs.cs,
            regs.rip,
            regs.rsp,
            regs.rbp,
            regs.rbx,
            regs.orig_rax,
        )
    };
    if !has_user_mode(cs, ip, sp) {
        return UserMode::None;
    }
    let registers = Registers { ip, sp, fp };
    // A system call's number, or -1 for any other way in (`arch/x86/entry/entry_64.S`).
    walk.put(if (call as i64) < 0 {
        Frame::running(registers, saved)
    } else {
        Frame::waiting(registers, saved)
    });
    if cs != USER_CS {
        return UserMode::Compat;
    }
    if config::has(Switches::UNWIND_ROWS) {
        // By number: System V ABI, AMD64 supplement, figure 3.36. One by one, since all of them at
        // once would have to be kept on the stack.
        let place = |number: usize, value: u64| walk.registers[number].store(value);
        // SAFETY: as above.
        let regs = unsafe { &*regs };
        place(0, regs.rax);
        place(1, regs.rdx);
        place(2, regs.rcx);
        place(3, regs.rbx);
        place(4, regs.rsi);
        place(5, regs.rdi);
        place(6, regs.rbp);
        place(7, regs.rsp);
        place(8, regs.r8);
        place(9, regs.r9);
        place(10, regs.r10);
        place(11, regs.r11);
        place(12, regs.r12);
        place(13, regs.r13);
        place(14, regs.r14);
        place(15, regs.r15);
    }
    UserMode::Native
}
