//! Driving the walk: the loop around `profiler_common::walk`'s steps, and the kernel's own walker.
#![expect(unsafe_code, reason = "the kernel's walker takes a raw pointer")]

use crate::{
    apart, events,
    platform::{
        config,
        loops::{Turn, repeat, repeat_anywhere},
        maps::{CONTROL, FOUND, Found, KNOWN, SCRATCH, Scratch},
        memory::UserMemory,
        word::Word,
    },
    sample::counters,
    task::{self, Ids, UserMode},
    walk::mappings,
};
use aya_ebpf::{EbpfContext, helpers::generated::bpf_get_stack};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{
        CodeState, Header, KERNEL_SCRATCH_WORDS, MAX_KERNEL_FRAMES, MAX_USER_FRAMES, Rule,
        StackEnd, Switches, used_clock,
    },
    walk::{Registers, Step, frame_pointer, native::Frame},
};

/// Whose stack is walked, when and where.
#[derive(Clone, Copy)]
pub(crate) struct SampleContext {
    pub(crate) ids: Ids,
    pub(crate) incarnation: u64,
    /// Whose counters and scratch memory are used.
    pub(crate) cpu_slot: u32,
    /// When the firing began.
    pub(crate) now: u64,
}

/// A user stack being walked. What changes from frame to frame is in the scratch memory: the verifier
/// knows nothing of what is there, and so checks one turn for all.
struct UserWalk {
    scratch: &'static Scratch,
    subject: SampleContext,
}

impl Turn for UserWalk {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        match self.step(index) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(end) => {
                self.scratch.walk.end.store(end);
                ControlFlow::Break(())
            }
        }
    }
}

impl UserWalk {
    /// Notes the frame and puts its caller in its place, or says why there is none.
    #[inline(always)]
    fn step(&self, index: u32) -> ControlFlow<u64> {
        if index >= MAX_USER_FRAMES as u32 {
            return end(StackEnd::Truncated);
        }
        // Hidden from the compiler, which would compute the place before it has checked the number.
        let Some(place) = self.scratch.user.get(1 + black_box(index as usize)) else {
            return end(StackEnd::Truncated);
        };
        let frame = self.scratch.walk.frame();
        if index == 0 && self.scratch.walk.is_at_entry() {
            // Whatever is known of the function: its first instruction has changed nothing yet.
            self.note(place, index, &frame);
            return apart::leave(self.subject.cpu_slot, Rule::ENTRY);
        }
        let address = frame.lookup();
        let Some(found) = self.look(address) else {
            return end(StackEnd::Implausible);
        };
        let kind = found.kind.load();
        if kind == Found::NOWHERE {
            // Not noted: where no code is, there was no call. That goes for the first frame, too: the
            // process is ending, or becoming another program, and its memory is gone.
            return end(StackEnd::Implausible);
        }
        self.note(place, index, &frame);
        match kind {
            Found::UNKNOWN => end(StackEnd::NotLoaded),
            Found::BARE if config::has(Switches::FRAME_POINTERS) => self.by_frame_pointer(&frame),
            Found::BARE => end(StackEnd::NoRow),
            state if !CodeState(state).has_table() => end(StackEnd::NotLoaded),
            table => match apart::rule(
                self.subject.cpu_slot,
                table as u32,
                address.wrapping_add(found.shift.load()),
            ) {
                Some(Rule::MISSING) if config::has(Switches::FRAME_POINTERS) => self.guess(&frame),
                Some(rule) => {
                    if rule.is_signal() && index > 0 {
                        // A handler returns to the trampoline's first byte, which nothing called.
                        place.store(frame.ip.wrapping_add(1));
                    }
                    apart::leave(self.subject.cpu_slot, rule)
                }
                None => end(StackEnd::NotLoaded),
            },
        }
    }

    #[inline(always)]
    fn note(&self, place: &Word, index: u32, frame: &Frame) {
        place.store(if index == 0 { frame.ip } else { frame.shown() });
        self.scratch.walk.frames.store(u64::from(index) + 1);
    }

    /// Leaves code of which its object's rows say nothing: by frame pointer, if that leads to code.
    #[inline(always)]
    fn guess(&self, frame: &Frame) -> ControlFlow<u64> {
        match self.by_frame_pointer(frame) {
            ControlFlow::Continue(()) => {
                self.scratch.walk.fp_fallback.store(1);
                ControlFlow::Continue(())
            }
            // Assembly that begins a thread clears the frame pointer. In a leaf it may hold anything.
            ControlFlow::Break(why) if why == StackEnd::Root as u64 && frame.has_called() => {
                end(StackEnd::Root)
            }
            ControlFlow::Break(_) => end(StackEnd::NoRow),
        }
    }

    #[inline(always)]
    fn by_frame_pointer(&self, frame: &Frame) -> ControlFlow<u64> {
        let Some(registers) = frame.registers(&UserMemory) else {
            return end(StackEnd::NoFramePointer);
        };
        match frame_pointer::step(registers, &UserMemory) {
            Step::Caller(registers) => {
                self.scratch.walk.put(Frame::called(registers));
                ControlFlow::Continue(())
            }
            Step::End(why) => end(why),
        }
    }

    /// What lies at an address: among the last answers, or asked of the kernel.
    #[inline(always)]
    fn look(&self, address: u64) -> Option<&'static Found> {
        let walk = &self.scratch.walk;
        // From memory, so that the verifier takes all places for one; as `current` below.
        let place = walk.place.load() as usize & (KNOWN - 1);
        let known = walk.known.get(place)?;
        // Most callers lie where their callees do.
        let found = known
            .found
            .get(known.current.load() as usize & (FOUND - 1))?;
        if found.holds(address) {
            return Some(found);
        }
        let mut current = FOUND as u64;
        for (place, found) in known.found.iter().enumerate() {
            if found.holds(address) {
                current = place as u64;
            }
        }
        known.current.store(current);
        if known.current.load() >= FOUND as u64 {
            current = known.turn.load() & (FOUND as u64 - 1);
            known.turn.store(current.wrapping_add(1));
            known.current.store(current);
            let SampleContext {
                ids,
                incarnation,
                cpu_slot,
                now,
            } = self.subject;
            let answer = (place * FOUND) as u32 + current as u32;
            let [_, memory, ..] = &known.stamp;
            if let Some(hash) = apart::ask(cpu_slot, memory.load(), address, answer, now) {
                events::unknown_code(
                    counters::counters(cpu_slot)?,
                    ids.tgid,
                    incarnation,
                    address,
                    hash,
                    now,
                );
            }
        }
        known.found.get(known.current.load() as usize & (FOUND - 1))
    }
}

/// False if the process's memory is gone. Otherwise turns to what was found in the process's memory at earlier firings, and forgets it if it may be out of
/// date: another process has taken the place, its mappings have changed, or the index of code has.
///
/// It is forgotten every second, too, so that what is in use is seen to be
/// ([`used_clock`](profiler_common::abi::used_clock)).
#[inline(always)]
pub(crate) fn recall(subject: SampleContext) -> bool {
    let Some(Scratch { walk, .. }) = SCRATCH.get(subject.cpu_slot) else {
        return false;
    };
    let space = mappings::space();
    if space == 0 {
        return false;
    }
    let place = subject.ids.tgid as usize & (KNOWN - 1);
    walk.place.store(place as u64);
    let Some(known) = walk.known.get(place) else {
        return false;
    };
    let code_changes = CONTROL
        .get(0)
        .map_or(0, |control| control.code_changes.load());
    walk.code_changes.store(code_changes);
    let changes = mappings::changes(space);
    let [process, memory, state, second] = &known.stamp;
    let difference = renew(process, subject.incarnation)
        | renew(memory, space)
        | renew(state, u64::from(changes.unwrap_or(0)) | code_changes << 32)
        | renew(second, used_clock(subject.now))
        | u64::from(changes.is_none());
    if difference != 0 {
        for found in &known.found {
            found.end.store(0);
        }
    }
    true
}

/// Sets the word, and returns zero if it had this value.
#[inline(always)]
fn renew(word: &Word, value: u64) -> u64 {
    let difference = word.load() ^ value;
    word.store(value);
    difference
}

/// A user stack being walked by frame pointers alone, whose few registers need no place in memory.
struct PointerWalk {
    scratch: &'static Scratch,
    registers: Registers,
    /// How many frames are there already.
    before: u32,
}

impl Turn for PointerWalk {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let walk = &self.scratch.walk;
        let index = self.before + index;
        let Some(place) = self.scratch.user.get(1 + black_box(index as usize)) else {
            return ControlFlow::Break(());
        };
        if index >= MAX_USER_FRAMES as u32 {
            return ControlFlow::Break(());
        }
        place.store(self.registers.ip);
        walk.frames.store(u64::from(index) + 1);
        match frame_pointer::step(self.registers, &UserMemory) {
            Step::Caller(registers) => {
                self.registers = registers;
                ControlFlow::Continue(())
            }
            Step::End(why) => {
                walk.end.store(why as u64);
                ControlFlow::Break(())
            }
        }
    }
}

#[inline(always)]
fn end(why: StackEnd) -> ControlFlow<u64> {
    ControlFlow::Break(why as u64)
}

/// Walks the running task's user stack into its record in the scratch memory, header included; the header
/// is zero for a kernel thread, and for a process whose memory is gone.
#[inline(always)]
pub(crate) fn user(subject: SampleContext) {
    let Some(scratch) = SCRATCH.get(subject.cpu_slot) else {
        return;
    };
    let walk = &scratch.walk;
    walk.fp_fallback.store(0);
    walk.frames.store(0);
    match task::user_registers(walk) {
        UserMode::None => {}
        // The first frame is known; how 32-bit frames lie is not our business.
        UserMode::Compat => {
            scratch.user[1].store(walk.frame().ip);
            walk.frames.store(1);
            walk.end.store(StackEnd::Compat as u64);
        }
        UserMode::Native => native(scratch, subject),
    }
    let frames = walk.frames.load();
    let header = Header(frames | walk.end.load() << 16);
    scratch.user[0].store(if frames == 0 {
        0
    } else if walk.fp_fallback.load() != 0 {
        header.fp_fallback().0
    } else {
        header.0
    });
}

/// One turn more than there is room for frames, which notes that the stack goes on.
const TURNS: u32 = MAX_USER_FRAMES as u32 + 1;

/// How many user frames are walked where the kernel has no `bpf_loop`: as many as of kernel stacks.
pub(crate) const PLAIN_FRAMES: u32 = MAX_KERNEL_FRAMES as u32;

#[inline(always)]
fn native(scratch: &'static Scratch, subject: SampleContext) {
    let walk = &scratch.walk;
    walk.end.store(StackEnd::Truncated as u64);
    let has_memory = if config::has(Switches::UNWIND_ROWS) {
        apart::recall(subject)
    } else {
        !config::has(Switches::TELL_MAPPINGS) || mappings::space() != 0
    };
    if !has_memory {
        // It is ending.
        return;
    }
    if !config::has(Switches::UNWIND_ROWS) {
        return apart::walk_by_pointers(subject.cpu_slot);
    }
    repeat(TURNS, &mut UserWalk { scratch, subject });
}

/// Walks the stack whose first frame is in the scratch memory, by frame pointers.
#[inline(always)]
pub(crate) fn by_pointers(cpu_slot: u32) {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
        return;
    };
    let walk = &scratch.walk;
    if walk.is_at_entry() {
        // The function has not made its frame yet.
        scratch.user[1].store(walk.frame().ip);
        walk.frames.store(1);
        if let ControlFlow::Break(end) = apart::leave(cpu_slot, Rule::ENTRY) {
            return walk.end.store(end);
        }
    }
    // From memory, so that the verifier takes both ways here for one.
    let before = walk.frames.load() as u32;
    let Some(registers) = walk.frame().registers(&UserMemory) else {
        return walk.end.store(StackEnd::NoFramePointer as u64);
    };
    let mut walk = PointerWalk {
        scratch,
        registers,
        before,
    };
    repeat_anywhere(TURNS, PLAIN_FRAMES, &mut walk);
}

/// Has the kernel walk its own stack into `record`, header included, behind `LED` words of another's; the
/// header is zero if there is no stack.
#[inline(always)]
pub(crate) fn kernel<const LED: usize>(
    ctx: &impl EbpfContext,
    record: &'static [Word; KERNEL_SCRATCH_WORDS],
) {
    const BYTES: usize = MAX_KERNEL_FRAMES * 8;
    const { assert!(1 + LED + MAX_KERNEL_FRAMES <= KERNEL_SCRATCH_WORDS) };
    let place = record[1 + LED].as_ptr().cast();
    // SAFETY: the record has room for the header, those words, and as many as said.
    let bytes = unsafe { bpf_get_stack(ctx.as_ptr(), place, BYTES as u32, 0) };
    record[0].store(if bytes <= 0 || bytes > BYTES as i64 {
        0
    } else if bytes == BYTES as i64 {
        Header::new((LED + MAX_KERNEL_FRAMES) as u16, StackEnd::Truncated).0
    } else {
        Header::new(LED as u16 + bytes as u16 / 8, StackEnd::Root).0
    });
}
