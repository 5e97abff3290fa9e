//! Puts the frames of interpreters into the stack of native frames, each level in front of the native frame that runs it.
//!
//! In: a native frame in a runtime's object that was just noted, and its caller's registers. Out: the words of the level's
//! frames, and behind them the native frame's; [`rest`] shows what is left where the native walk broke. Which frames these are,
//! [`profiler_common::runtime`] decides of what it sees by a [`view`].

mod code_owner;
pub(crate) mod owned_code;
pub(crate) mod past_native;
pub(crate) mod scratch;
mod table;
mod view;

pub(crate) use table::{NAMED_BY_CALLER, strings_of};

use crate::{
    platform::{
        config,
        maps::{RUNTIMES, Scratch},
        subprog::subprog,
    },
    task,
    walk::{
        own_frames,
        scratch::{KNOWN, ProcessCache},
    },
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{CodeState, FrameTag, FrameWord, MAX_USER_FRAMES, MAX_USER_WORDS, StackEnd, Switches},
    runtime::{
        Begin, Chain, ChainFrame, Cursor, FrameFunction, FunctionInfo, NativeFrame, RuntimeKind,
    },
};
use scratch::{Chains, RUNTIME_KINDS};
use table::{
    HAVE_FRAME_FUNCTIONS, MAKE_CODE, RUN_NOTHING, boundary_of, level_of, may_run_level_of, step_of,
};
use view::{File, View};

/// Steps of one walk along chains, at most: forged memory must not hold up the CPU.
const MAX_STEPS: u64 = 4 * MAX_USER_FRAMES as u64;

/// The native walk has no caller of the frame.
const NO_CALLER: u64 = 2;

/// The most turns of a walk that take steps along chains: one more of each runtime tells that there were too many.
pub(crate) const TURNS: u32 = MAX_STEPS as u32 + RUNTIME_KINDS as u32;

/// Whether an interpreter's frames are being shown.
#[inline(always)]
pub(crate) fn is_pending(scratch: &'static Scratch) -> bool {
    scratch.chains.pending.load() != 0
}

/// Shows the next of an interpreter's frames.
#[inline(always)]
pub(crate) fn resume(cpu_slot: u32) -> ControlFlow<u64> {
    match Scratch::of(cpu_slot) {
        Some(scratch) => step_of(scratch.chains.pending.load().wrapping_sub(1), cpu_slot),
        None => ControlFlow::Break(StackEnd::Truncated as u64),
    }
}

/// Saves what is known of the registers of the frame that was noted last, before the walk goes on to its caller.
#[inline(always)]
pub(crate) fn save_registers(scratch: &'static Scratch) {
    scratch.walk.save_registers(&scratch.chains.registers);
}

/// Puts what the frame that was noted last runs in front of it. `address` is the object's own, and `outcome` what came of the
/// step to the frame's caller.
#[inline(always)]
pub(crate) fn enter(
    cpu_slot: u32,
    address: u64,
    sp: u64,
    is_first: bool,
    outcome: ControlFlow<u64>,
) -> ControlFlow<u64> {
    let no_caller = if outcome.is_break() { NO_CALLER } else { 0 };
    insert_level(cpu_slot, address, sp, u64::from(is_first) | no_caller)?;
    if let Some(scratch) = Scratch::of(cpu_slot)
        && is_pending(scratch)
    {
        // Many levels are of one frame: this saves a turn.
        resume(cpu_slot)?;
    }
    outcome
}

subprog! {
    /// See [`enter`].
    fn insert_level(cpu_slot: u32, address: u64, sp: u64, flags: u64) -> ControlFlow<u64> {
        match Scratch::of(cpu_slot) {
            Some(scratch) => insert(cpu_slot, scratch, address, sp, flags),
            None => ControlFlow::Continue(()),
        }
    }
}

#[inline(always)]
fn insert(
    cpu_slot: u32,
    scratch: &'static Scratch,
    address: u64,
    sp: u64,
    flags: u64,
) -> ControlFlow<u64> {
    let chains = &scratch.chains;
    // At once, or they would be kept on the stack, of which older kernels have just enough.
    chains.address.store(address);
    chains.sp.store(sp);
    let Some((descriptor, bias)) = meet(scratch) else {
        return ControlFlow::Continue(());
    };
    if flags & NO_CALLER != 0 {
        // Which level's it is cannot be told; what is left is shown behind the mark.
        return ControlFlow::Continue(());
    }
    let runtime = may_run_level(descriptor, address);
    if runtime == 0 && runs_nothing(descriptor) {
        return ControlFlow::Continue(());
    }
    let kind = if HAVE_FRAME_FUNCTIONS >> (runtime.wrapping_sub(1) & 63) & 1 != 0 {
        describe(chains, descriptor, bias)
    } else {
        prepare(chains, descriptor, bias)
    };
    let Some(kind) = kind else {
        return ControlFlow::Continue(());
    };
    chains.caller_sp.store(scratch.walk.sp());
    chains.is_first.store(flags & 1);
    level_of(kind, cpu_slot)
}

/// Descriptor and load bias of the file that was looked up last, which has a runtime: the process's from now on.
#[inline(always)]
fn meet(scratch: &'static Scratch) -> Option<(u32, u64)> {
    let known = known(scratch)?;
    let current = known.current.load() as usize;
    let found = known.found.get(current & (known.found.len() - 1))?;
    let descriptor = CodeState(found.kind.load()).runtime();
    let bias = 0u64.wrapping_sub(found.shift.load());
    known.runtime.store(u64::from(descriptor));
    known.bias.store(bias);
    Some((descriptor, bias))
}

/// Recent findings in the process.
#[inline(always)]
pub(crate) fn known(scratch: &'static Scratch) -> Option<&'static ProcessCache> {
    scratch
        .walk
        .known
        .get(scratch.walk.place.load() as usize & (KNOWN - 1))
}

/// Whether a runtime was met in the process that [makes code](Chain::MAKES_CODE).
#[inline(always)]
pub(crate) fn makes_code(known: &ProcessCache) -> bool {
    let descriptor = known.runtime.load() as u32;
    descriptor != 0
        && RUNTIMES.get(descriptor).is_some_and(|words| {
            MAKE_CODE >> (words[0].load() & (RUNTIME_KINDS as u64 - 1)) & 1 != 0
        })
}

/// Number, plus one, of this descriptor's runtime, if a native frame at an address of the object's
/// own may run its levels; else zero.
#[inline(always)]
pub(crate) fn may_run_level(descriptor: u32, address: u64) -> u64 {
    let Some(words) = RUNTIMES.get(descriptor) else {
        return 0;
    };
    let kind = words[0].load() & (RUNTIME_KINDS as u64 - 1);
    if may_run_level_of(kind, &File(words), address) {
        kind + 1
    } else {
        0
    }
}

/// Whether frames in the file of this descriptor's runtime run nothing of it.
#[inline(always)]
fn runs_nothing(descriptor: u32) -> bool {
    RUNTIMES
        .get(descriptor)
        .is_some_and(|words| RUN_NOTHING >> (words[0].load() & (RUNTIME_KINDS as u64 - 1)) & 1 != 0)
}

/// Whether code at an address of the object's own is this descriptor's runtime's and of the kind that keeps frame pointers wherever it
/// calls.
#[inline(always)]
pub(crate) fn keeps_frame_pointers(descriptor: u32, address: u64) -> bool {
    if descriptor == 0 {
        return false;
    }
    let runtime = may_run_level(descriptor, address);
    runtime != 0 && HAVE_FRAME_FUNCTIONS >> (runtime.wrapping_sub(1) & 63) & 1 != 0
}

/// Whether a native frame that may run a level of a runtime's, by [`may_run_level`], runs none, being below `caller_sp`.
#[inline(always)]
pub(crate) fn runs_no_level(scratch: &'static Scratch, runtime: u64, caller_sp: u64) -> bool {
    let chains = &scratch.chains;
    let kind = runtime.wrapping_sub(1) & (RUNTIME_KINDS as u64 - 1);
    if chains.over.load() >> kind & 1 != 0 {
        return true;
    }
    if chains.begun.load() >> kind & 1 == 0 {
        return false;
    }
    let (Some(word), Some(chain)) = (boundary_of(kind), chains.of.get(kind as usize)) else {
        return false;
    };
    let boundary = chain.cursor.get(word).map_or(0, |word| word.load());
    caller_sp <= boundary
}

/// Sets the file that a runtime's frames are seen in, unless its chain has begun. Returns the number of the runtime.
#[inline(always)]
fn describe(chains: &'static Chains, descriptor: u32, bias: u64) -> Option<u64> {
    let kind = RUNTIMES.get(descriptor)?[0].load() & (RUNTIME_KINDS as u64 - 1);
    if chains.begun.load() >> kind & 1 == 0 {
        let chain = chains.of.get(kind as usize)?;
        chain.descriptor.store(u64::from(descriptor));
        chain.bias.store(bias);
    }
    Some(kind)
}

/// Prepares the chain of a descriptor's runtime; none if nothing more comes of it. Returns the number of the runtime.
#[inline(always)]
fn prepare(chains: &'static Chains, descriptor: u32, bias: u64) -> Option<u64> {
    let kind = RUNTIMES.get(descriptor)?[0].load() & (RUNTIME_KINDS as u64 - 1);
    let bit = 1 << kind;
    if chains.over.load() & bit != 0 {
        return None;
    }
    if chains.begun.load() & bit == 0 {
        let chain = chains.of.get(kind as usize)?;
        chain.descriptor.store(u64::from(descriptor));
        chain.bias.store(bias);
        for word in &chain.cursor {
            word.store(0);
        }
        chains.thread_pointer.store(task::thread_pointer());
    }
    Some(kind)
}

/// Puts a level of this runtime's in front of the native frame that was noted last, if that runs one. Of the rest of a chain,
/// the next level is entered in any case.
#[inline(always)]
fn level<R: Chain>(cpu_slot: u32, kind: RuntimeKind) -> ControlFlow<u64> {
    let Some(scratch) = Scratch::of(cpu_slot) else {
        return ControlFlow::Continue(());
    };
    let Some(view) = View::of(scratch, kind) else {
        return ControlFlow::Continue(());
    };
    let chains = &scratch.chains;
    if !begin::<R>(&view, kind, &view.native()) {
        return ControlFlow::Continue(());
    }
    let is_level = R::is_level(&view, &view, &view.native());
    if chains.is_rest.load() != 0 {
        chains.pending.store(kind as u64 + 1);
        return ControlFlow::Continue(());
    }
    if !is_level {
        return ControlFlow::Continue(());
    }
    let Some((place, last)) = word_before(scratch, scratch.walk.words.load()) else {
        return ControlFlow::Continue(());
    };
    chains.last.store(last);
    chains.level.store(place);
    chains.place.store(place);
    chains.flags.store(0);
    chains.pending.store(kind as u64 + 1);
    ControlFlow::Continue(())
}

/// Puts the function that the native frame that was noted last runs in its place, or in front of it, if that runs one of this
/// runtime's.
#[inline(always)]
fn put_function<R: FrameFunction>(cpu_slot: u32, kind: RuntimeKind) -> ControlFlow<u64> {
    let Some(scratch) = Scratch::of(cpu_slot) else {
        return ControlFlow::Continue(());
    };
    let chains = &scratch.chains;
    if chains.is_rest.load() != 0 {
        return ControlFlow::Continue(());
    }
    let Some(view) = View::of(scratch, kind) else {
        return ControlFlow::Continue(());
    };
    let Some(frame) = R::function_in(&view, &view.native()) else {
        return ControlFlow::Continue(());
    };
    let Some((place, last)) = word_before(scratch, scratch.walk.words.load()) else {
        return ControlFlow::Continue(());
    };
    // Hidden from the compiler, which would check another number than the one that is used.
    let first = black_box(place as usize);
    if first > MAX_USER_WORDS - 3 {
        return ControlFlow::Break(StackEnd::Truncated as u64);
    }
    let Some([function, position, native]) = scratch.user.get(1 + first..4 + first) else {
        return ControlFlow::Break(StackEnd::Truncated as u64);
    };
    function.store(FrameWord::function(kind, frame.function, frame.check).0);
    position.store(FrameWord::position(frame.check, frame.position).0);
    let more = if config::has(Switches::LOOP_FRAMES) {
        native.store(behind(chains, last));
        2
    } else {
        1
    };
    scratch.walk.words.store(place.wrapping_add(1 + more));
    scratch::add_words(chains, more, 1);
    ControlFlow::Continue(())
}

/// The word of the native frame that was noted last, once there are frames in front of it: of frames that are not the first, user
/// space takes the address one byte earlier.
#[inline(always)]
fn behind(chains: &'static Chains, word: u64) -> u64 {
    word.wrapping_add(u64::from(chains.is_first.load() != 0))
}

/// Takes a step along this runtime's chain; behind the last of a level, puts the native frame that runs it. Of the rest of a
/// chain, breaks there.
#[inline(always)]
fn step<R: Chain>(cpu_slot: u32, kind: RuntimeKind) -> ControlFlow<u64> {
    let Some(scratch) = Scratch::of(cpu_slot) else {
        return ControlFlow::Break(StackEnd::Truncated as u64);
    };
    let Some(view) = View::of(scratch, kind) else {
        return ControlFlow::Break(StackEnd::Truncated as u64);
    };
    if take_step::<R>(&view, kind).is_continue() {
        return ControlFlow::Continue(());
    }
    let chains = &scratch.chains;
    if chains.is_rest.load() != 0 {
        return ControlFlow::Break(StackEnd::Root as u64);
    }
    chains.pending.store(0);
    let place = chains.place.load();
    let more = place.wrapping_sub(chains.level.load());
    scratch::add_words(chains, more, more / 2);
    if chains.flags.load() & u64::from(TRUNCATED) != 0 {
        scratch.walk.words.store(place);
        return ControlFlow::Break(StackEnd::Truncated as u64);
    }
    // Hidden from the compiler, which would check another number than the one that is used.
    let Some(word) = scratch.user.get(1 + black_box(place as usize)) else {
        return ControlFlow::Break(StackEnd::Truncated as u64);
    };
    let last = chains.last.load();
    word.store(if more != 0 {
        behind(chains, last)
    } else {
        last
    });
    scratch.walk.words.store(place.wrapping_add(1));
    ControlFlow::Continue(())
}

/// The number of the last word of a stack of so many, and the word.
#[inline(always)]
fn word_before(scratch: &'static Scratch, words: u64) -> Option<(u64, u64)> {
    let last = scratch.user.get(black_box(words as usize))?;
    Some((words.wrapping_sub(1), last.load()))
}

/// Whether the chain has begun, now or before.
#[inline(always)]
fn begin<R: Chain>(view: &View, kind: RuntimeKind, native: &NativeFrame) -> bool {
    let chains = &view.scratch().chains;
    let bit = 1u64 << kind as u64;
    if chains.begun.load() & bit != 0 {
        return true;
    }
    let begin = R::begin(view, view, native);
    if let Begin::Begun = begin {
        chains.begun.store(chains.begun.load() | bit);
        return true;
    }
    if let Begin::Nothing = begin {
        chains.over.store(chains.over.load() | bit);
    }
    false
}

/// Beside the flags of [`ChainFrame`]: there is no room for more frames.
const TRUNCATED: u32 = 1 << 31;

/// Takes one step along a chain; breaks behind the last of the level.
#[inline(always)]
fn take_step<R: Chain>(view: &View, kind: RuntimeKind) -> ControlFlow<()> {
    let scratch = view.scratch();
    let chains = &scratch.chains;
    let steps = chains.steps.load();
    chains.steps.store(steps.wrapping_add(1));
    let frame = if steps < MAX_STEPS {
        R::step(view, view)
    } else {
        ChainFrame::broken()
    };
    let place = if frame.flags & ChainFrame::RETRACT != 0 {
        chains.level.load()
    } else {
        chains.place.load()
    };
    let of_level = place.wrapping_sub(chains.level.load()) / 2;
    let seconds = chains.seconds.load().wrapping_add(of_level);
    let is_full = place.wrapping_sub(seconds) >= MAX_USER_FRAMES as u64;
    chains.flags.store(u64::from(frame.flags));
    chains.place.store(place);
    if frame.flags & (ChainFrame::FRAME | ChainFrame::BROKEN) != 0 {
        // Hidden from the compiler, which would check another number than the one that is used.
        let first = black_box(place as usize);
        if is_full || first > MAX_USER_WORDS - 2 {
            chains.flags.store(u64::from(TRUNCATED));
            return ControlFlow::Break(());
        }
        let Some([function, position]) = scratch.user.get(1 + first..3 + first) else {
            return ControlFlow::Break(());
        };
        if frame.flags & ChainFrame::FRAME != 0 {
            function.store(FrameWord::function(kind, frame.function, frame.check).0);
            position.store(FrameWord::position(frame.check, frame.position).0);
            if let Some(word) = R::OWN_FRAME {
                own_frames::note(chains, first, view.get(word));
            }
            chains.place.store(place.wrapping_add(2));
        } else {
            function.store(FrameWord::new(FrameTag::Mark, StackEnd::Implausible as u32).0);
            chains.place.store(place.wrapping_add(1));
        }
    }
    if frame.flags & ChainFrame::CHAIN_ENDS != 0 {
        let over = chains.over.load() | 1 << kind as u64;
        chains.over.store(over);
        return ControlFlow::Break(());
    }
    if frame.flags & ChainFrame::LEVEL_ENDS == 0 {
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(())
}

#[inline(always)]
fn put_strings<R: FunctionInfo>(cpu_slot: u32, kind: RuntimeKind, function: u64) -> Option<()> {
    let scratch = Scratch::of(cpu_slot)?;
    let view = View::of(scratch, kind)?;
    let report = &scratch.report;
    let own = if R::OWN_FRAME.is_some() || R::FRAMES_ARE_NATIVE {
        own_frames::address(&scratch.chains, report.place.load() as usize)
    } else {
        0
    };
    let strings = R::strings_in_frame(&view, function, own)?;
    for (place, piece) in report
        .pieces
        .iter()
        .zip([strings.owner, strings.name, strings.file])
    {
        place.address.store(piece.address);
        place.bytes.store(u64::from(piece.bytes));
        place.encoding.store(u64::from(piece.encoding));
    }
    report.first_line.store(u64::from(strings.first_line));
    report.extra.store(strings.extra);
    Some(())
}
