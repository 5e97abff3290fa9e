//! Walking a user stack by unwind tables: the loop around `profiler_common::walk`'s steps.
//!
//! In: the running task's registers. Out: its record in the scratch memory. Where there are no tables, or none are wanted,
//! [`frame_pointers`] lead on.

use crate::{
    events,
    platform::{
        config::{self, config},
        log::{self, Happened},
        loops::{Turn, repeat},
        maps::Scratch,
        subprog::subprog,
        word::Word,
    },
    sample::context::SampleContext,
    task::{self, UserMode},
    walk::{
        code_cache, frame_pointers, guess, innermost, return_rules, rules, runtime,
        scratch::CachedCode, stack_memory::StackMemory,
    },
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{
        CodeState, Fallbacks, Header, KernelEventKind, MAX_USER_FRAMES, MAX_USER_WORDS,
        READ_TOGETHER_BITS, Rule, StackEnd, Switches,
    },
    intern::Hash,
    walk::{
        guess::{MAX_WORDS, MAX_WORDS_OF_LEAF},
        native::{Frame, Reached},
    },
};

/// A user stack being walked. What changes from frame to frame is in the scratch memory: the verifier
/// knows nothing of what is there, and so checks one turn for all.
struct UserWalk {
    scratch: &'static Scratch,
    cpu_slot: u32,
}

impl Turn for UserWalk {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        match self.step() {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(end) => self.finish(end),
        }
    }
}

impl UserWalk {
    /// Ends the walk, unless there is another caller to try.
    #[inline(always)]
    fn finish(&self, end: u64) -> ControlFlow<()> {
        let mut end = end;
        if config::has(Switches::GUESS) && guess::is_in_doubt(&self.scratch.walk, end) {
            match guess::guess_caller(self.cpu_slot, end) {
                ControlFlow::Continue(()) => return ControlFlow::Continue(()),
                ControlFlow::Break(as_before) => end = as_before,
            }
        }
        self.scratch.walk.end.store(end);
        ControlFlow::Break(())
    }

    /// Notes the frame and puts its caller in its place, or says why there is none. Where an interpreter's frames are being
    /// shown, takes one step along these instead: a loop inside this one would need too much stack.
    #[inline(always)]
    fn step(&self) -> ControlFlow<u64> {
        if config::has(Switches::RUNTIMES) && runtime::is_pending(self.scratch) {
            return runtime::resume(self.cpu_slot);
        }
        if self.scratch.walk.memory_state.load() != 0 && !self.is_trying() {
            if config::has(Switches::RUNTIMES) {
                runtime::owned_code::follow_known(self.cpu_slot, self.scratch);
            }
            return_rules::follow_return_rules(self.cpu_slot);
        }
        let others = self.other_words();
        let words = self.scratch.walk.words.load() as u32;
        let index = words.wrapping_sub(others);
        if words.wrapping_sub(self.second_words()) >= MAX_USER_FRAMES as u32 {
            return end(StackEnd::Truncated);
        }
        // Hidden from the compiler, which would compute the place before it has checked the number.
        let index_of_word = black_box((index + others) as usize);
        if index_of_word >= MAX_USER_WORDS {
            return end(StackEnd::Truncated);
        }
        let Some(place) = self.scratch.user.get(1 + index_of_word) else {
            return end(StackEnd::Truncated);
        };
        let frame = self.scratch.walk.frame();
        if index == 0 && self.scratch.walk.is_at_entry() {
            // Whatever is known of the function: its first instruction has changed nothing yet.
            self.note(place, index, others, &frame);
            return rules::follow_rule(self.cpu_slot, Rule::ENTRY);
        }
        let address = frame.lookup();
        let Some(found) = code_cache::look_up(self.cpu_slot, self.scratch, address) else {
            return end(StackEnd::Implausible);
        };
        let kind = found.kind.load();
        if self.is_trying() {
            return guess::settle(self.scratch, place, kind, address);
        }
        if kind == CachedCode::NOWHERE {
            // Not noted: where no code is, there was no call. That goes for the first frame, too: the
            // process is ending, or becoming another program, and its memory is gone.
            return end(StackEnd::Implausible);
        }
        if let Reached::Pointed = frame.reached
            && !innermost::follows_call(address, false)
        {
            if !innermost::follows_call(address, true) {
                return end(StackEnd::NoFramePointer);
            }
            // Code that has not run for long need not be in the process's page tables, and cannot be read then.
            self.scratch.walk.add_fallback(Fallbacks::FRAME_POINTER);
        }
        self.note(place, index, others, &frame);
        let is_runtime_s = config::has(Switches::RUNTIMES) && CodeState(kind).runtime() != 0;
        if is_runtime_s {
            runtime::save_registers(self.scratch);
            if index == 0 {
                let own_address = address.wrapping_add(found.shift.load());
                runtime::owned_code::settle_first(self.cpu_slot, own_address);
            }
        }
        let outcome = self.leave(place, index, &frame, found, address);
        if is_runtime_s {
            let own_address = address.wrapping_add(found.shift.load());
            return runtime::enter(self.cpu_slot, own_address, frame.sp, index == 0, outcome);
        }
        outcome
    }

    /// Whether the frame that is looked at is no more than a word that may be a return address.
    #[inline(always)]
    fn is_trying(&self) -> bool {
        config::has(Switches::GUESS) && guess::is_trying(&self.scratch.walk)
    }

    /// Puts the frame's caller in its place, or says why there is none.
    #[inline(always)]
    fn leave(
        &self,
        place: &Word,
        index: u32,
        frame: &Frame,
        found: &'static CachedCode,
        address: u64,
    ) -> ControlFlow<u64> {
        match found.kind.load() {
            CachedCode::UNKNOWN => end(StackEnd::NotLoaded),
            CachedCode::NO_TABLE
                if config::has(Switches::RUNTIMES)
                    && runtime::owned_code::leave(self.cpu_slot, self.scratch, index == 0) =>
            {
                ControlFlow::Continue(())
            }
            CachedCode::NO_TABLE if config::has(Switches::FRAME_POINTERS) => {
                self.note_in_doubt(frame, MAX_WORDS);
                self.by_frame_pointer(frame)
            }
            CachedCode::NO_TABLE => end(StackEnd::NoRow),
            state if !CodeState(state).has_table() => end(StackEnd::NotLoaded),
            table => match rules::find_rule(
                self.cpu_slot,
                table as u32,
                address.wrapping_add(found.shift.load()),
            ) {
                Some(_)
                    if config::has(Switches::RUNTIMES)
                        && frame.has_called()
                        && runtime::keeps_frame_pointers(
                            CodeState(table).runtime(),
                            address.wrapping_add(found.shift.load()),
                        ) =>
                {
                    let runtime = CodeState(table).runtime();
                    let own_address = address.wrapping_add(found.shift.load());
                    let rule = Rule::FRAME_POINTER;
                    return_rules::keep_return_rule(self.cpu_slot, rule, runtime, own_address);
                    rules::follow_rule(self.cpu_slot, rule)
                }
                Some(Rule::UNREAD) => {
                    // Stretches that are read together are of the object's own addresses.
                    let own_address = address.wrapping_add(found.shift.load());
                    let part = own_address >> READ_TOGETHER_BITS;
                    announce(
                        self.cpu_slot,
                        KernelEventKind::UnreadCode,
                        table,
                        address,
                        part,
                    );
                    end(StackEnd::NotLoaded)
                }
                Some(Rule::MISSING) => {
                    self.announce_gap(table, address);
                    if config::has(Switches::FRAME_POINTERS) {
                        if index == 0 {
                            self.note_in_doubt(frame, MAX_WORDS_OF_LEAF);
                        }
                        self.leave_gap(frame)
                    } else {
                        end(StackEnd::NoRow)
                    }
                }
                Some(rule) if index == 0 && rule.is_frame_pointer() => {
                    self.announce_gap(table, address);
                    let known = innermost::innermost_rule(self.cpu_slot);
                    if known.is_none() {
                        self.scratch.walk.add_fallback(Fallbacks::FRAME_POINTER);
                    }
                    rules::follow_rule(self.cpu_slot, known.unwrap_or(rule))
                }
                Some(rule) => {
                    if rule.is_frame_pointer() {
                        // Without one of its own, its caller goes missing.
                        self.announce_gap(table, address);
                    }
                    if rule.is_behind_no_call() && index > 0 {
                        // The function is the one that begins here, not the one before it.
                        place.store(frame.ip.wrapping_add(1));
                    }
                    let runtime = if config::has(Switches::RUNTIMES) {
                        CodeState(table).runtime()
                    } else {
                        0
                    };
                    let own_address = address.wrapping_add(found.shift.load());
                    return_rules::keep_return_rule(self.cpu_slot, rule, runtime, own_address);
                    rules::follow_rule(self.cpu_slot, rule)
                }
                None => end(StackEnd::NotLoaded),
            },
        }
    }

    /// Asks for rows of the function at an address, which its file's table leaves out.
    #[inline(always)]
    fn announce_gap(&self, table: u64, address: u64) {
        let kind = KernelEventKind::UndescribedCode;
        announce(self.cpu_slot, kind, table, address, address);
    }

    #[inline(always)]
    fn note(&self, place: &Word, index: u32, others: u32, frame: &Frame) {
        place.store(if index == 0 { frame.ip } else { frame.shown() });
        let words = u64::from(index) + u64::from(others) + 1;
        self.scratch.walk.words.store(words);
    }

    /// Notes that nothing but a frame pointer tells of this frame's caller: if that leads nowhere, the caller is looked for in so
    /// many words.
    #[inline(always)]
    fn note_in_doubt(&self, frame: &Frame, words: u64) {
        if config::has(Switches::GUESS) {
            guess::note(&self.scratch.walk, frame.sp, words);
        }
    }

    /// How many words there are that are not native frames.
    #[inline(always)]
    fn other_words(&self) -> u32 {
        if config::has(Switches::RUNTIMES) || config::has(Switches::GUESS) {
            self.scratch.chains.words.load() as u32
        } else {
            0
        }
    }

    /// How many words there are that are the second of a frame.
    #[inline(always)]
    fn second_words(&self) -> u32 {
        if config::has(Switches::RUNTIMES) {
            self.scratch.chains.seconds.load() as u32
        } else {
            0
        }
    }

    /// Leaves code of which its object's rows say nothing: by frame pointer, if that leads to code.
    #[inline(always)]
    fn leave_gap(&self, frame: &Frame) -> ControlFlow<u64> {
        match self.by_frame_pointer(frame) {
            ControlFlow::Continue(()) => {
                self.scratch.walk.add_fallback(Fallbacks::FRAME_POINTER);
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
    fn memory(&self) -> StackMemory {
        StackMemory(&self.scratch.walk.stack)
    }

    #[inline(always)]
    fn by_frame_pointer(&self, frame: &Frame) -> ControlFlow<u64> {
        match frame.by_frame_pointer(&self.memory()) {
            Ok(caller) => {
                self.scratch.walk.put(caller);
                ControlFlow::Continue(())
            }
            Err(why) => end(why),
        }
    }
}

subprog! {
    /// Asks user space to read what the table of a file leaves out at an address. `part`: the same for addresses that are read together.
    fn announce(cpu_slot: u32, kind: KernelEventKind, table: u64, address: u64, part: u64) {
        if let Some(context) = SampleContext::of(cpu_slot) {
            let hash = Hash::new(config!(seed)).with(table).with(part);
            events::code(kind, context, address, hash);
        }
    }
}

#[inline(always)]
fn end(why: StackEnd) -> ControlFlow<u64> {
    ControlFlow::Break(why as u64)
}

subprog! {
    /// Walks the running task's user stack into its record in the scratch memory, header included; the header
    /// is zero for a kernel thread, and for a process whose memory is gone.
    pub(crate) fn walk_user_stack(cpu_slot: u32) {
        if let Some(scratch) = Scratch::of(cpu_slot) {
            walk(cpu_slot, scratch);
        }
    }
}

#[inline(always)]
fn walk(cpu_slot: u32, scratch: &'static Scratch) {
    let walk = &scratch.walk;
    walk.fallbacks.store(0);
    walk.words.store(0);
    StackMemory(&walk.stack).forget();
    let has_memory = if config::has(Switches::UNWIND_ROWS) || config::has(Switches::MAPPING_EVENTS)
    {
        code_cache::refresh_code_cache(cpu_slot)
    } else {
        true
    };
    match task::user_registers(walk) {
        UserMode::None => {}
        // It is ending.
        _ if !has_memory => {}
        // The first frame is known; how 32-bit frames lie is not our business.
        UserMode::Compat => {
            scratch.user[1].store(walk.frame().ip);
            walk.words.store(1);
            walk.end.store(StackEnd::Compat as u64);
        }
        UserMode::Native => native(cpu_slot, scratch),
    }
    let words = walk.words.load();
    if log::is_on()
        && words != 0
        && walk.end.load() != StackEnd::Root as u64
        && let Some(context) = SampleContext::of(cpu_slot)
    {
        let happened = Happened::WalkEnded(walk.end.load());
        log::note(happened, context.ids.tgid, words, walk.frame().ip);
    }
    scratch.user[0].store(match words {
        0 => 0,
        _ => Header::of_words(words, walk.end.load(), walk.fallbacks.load()).0,
    });
}

/// One turn more than there is room for frames, which notes that the stack goes on.
const TURNS: u32 = MAX_USER_FRAMES as u32 + 1;

#[inline(always)]
fn native(cpu_slot: u32, scratch: &'static Scratch) {
    scratch.walk.end.store(StackEnd::Truncated as u64);
    if !config::has(Switches::UNWIND_ROWS) {
        return frame_pointers::walk_frame_pointers(cpu_slot);
    }
    let mut turns = TURNS;
    if config::has(Switches::RUNTIMES) {
        turns += runtime::TURNS;
    }
    if config::has(Switches::RUNTIMES) || config::has(Switches::GUESS) {
        runtime::scratch::reset(&scratch.chains);
    }
    if config::has(Switches::GUESS) {
        guess::reset(&scratch.walk.guess);
        turns += guess::TURNS;
    }
    repeat(turns, &mut UserWalk { scratch, cpu_slot });
    if config::has(Switches::GUESS) {
        guess::finish(scratch);
    }
    if config::has(Switches::RUNTIMES) && runtime::past_native::has_frames(scratch) {
        runtime::past_native::show_frames(cpu_slot);
    }
}
