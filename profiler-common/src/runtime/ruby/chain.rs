//! The chain of frames.

use super::{
    iseq,
    layout::{Access, C_BLOCK, C_FUNCTION, DUMMY, FINISH, ISEQ_BODY, KIND, at, frame},
};
use crate::runtime::{
    Begin, ChainFrame, Cursor, FUNCTION_BITS, Process,
    thread::{self, Libc},
};

/// The words of the cursor.
pub(super) mod word {
    /// The next frame of the chain.
    pub(in super::super) const FRAME: usize = 0;
    /// The last.
    pub(in super::super) const END: usize = 1;
    /// The instruction that the level is at; zero if its frame says it.
    pub(in super::super) const INSTRUCTION: usize = 2;
    /// Where the native frame of the loop that was met last ends.
    pub(in super::super) const LOOP_END: usize = 3;
    /// Whether a native frame of a level has been met.
    pub(in super::super) const HAS_BEGUN: usize = 4;
    /// The frame that was shown last.
    pub(in super::super) const SHOWN: usize = 5;
}

/// An `rb_control_frame_t`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    instruction: u64,
    pub(super) iseq: u64,
    pub(super) environment: u64,
    flags: u64,
}

impl Frame {
    /// The frame at an address.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, address: u64) -> Option<Self> {
        if !process.fetch(address, frame::BYTES) {
            return None;
        }
        let environment = process.fetched(frame::ENVIRONMENT);
        let [flags] = process.read(environment)?;
        Some(Self {
            instruction: process.fetched(frame::INSTRUCTION),
            iseq: process.fetched(frame::ISEQ),
            environment,
            flags,
        })
    }

    /// Whether it is the outermost of its level.
    #[inline(always)]
    pub(super) const fn is_last(&self) -> bool {
        self.flags & FINISH != 0
    }

    /// Whether it is of code that the loop runs.
    #[inline(always)]
    const fn is_run(&self) -> bool {
        let kind = self.flags & KIND;
        self.iseq != 0
            && self.instruction != 0
            && kind != C_FUNCTION
            && kind != C_BLOCK
            && kind != DUMMY
    }
}

/// See [`Chain::begin`](crate::runtime::Chain::begin).
#[inline(always)]
pub(super) fn begin(process: &impl Process, cursor: &impl Cursor) -> Begin {
    match find(process, cursor) {
        Some(()) => Begin::Begun,
        None => Begin::Nothing,
    }
}

/// See [`Chain::step`](crate::runtime::Chain::step).
#[inline(always)]
pub(super) fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
    let (address, end) = (cursor.get(word::FRAME), cursor.get(word::END));
    if address > end {
        return ChainFrame::none(ChainFrame::LEVEL_ENDS | ChainFrame::CHAIN_ENDS);
    }
    let Some(frame) = Frame::read(process, address) else {
        return ChainFrame::broken();
    };
    let next = address.wrapping_add(process.descriptor(at::FRAME_BYTES));
    cursor.set(word::FRAME, next);
    let flags = if next > end {
        ChainFrame::LEVEL_ENDS | ChainFrame::CHAIN_ENDS
    } else if frame.is_last() {
        ChainFrame::LEVEL_ENDS
    } else {
        0
    };
    if !frame.is_run() {
        return ChainFrame::none(flags);
    }
    let instruction = match cursor.get(word::INSTRUCTION) {
        0 => frame.instruction,
        instruction => instruction,
    };
    cursor.set(word::INSTRUCTION, 0);
    cursor.set(word::SHOWN, address);
    show(process, frame.iseq, instruction, flags)
}

#[inline(always)]
fn find(process: &impl Process, cursor: &impl Cursor) -> Option<()> {
    let place = process.descriptor(at::PLACE);
    let variable = if process.descriptor(at::ACCESS) == Access::Module as u64 {
        let [module] = process.read(process.bias().wrapping_add(place))?;
        let libc = Libc::from_word(process.descriptor(at::LIBC));
        thread::dynamic_variable(process, libc, module, process.descriptor(at::OFFSET))?
    } else {
        thread::executable_variable(process, place)
    };
    let [context] = process.read(variable)?;
    if context == 0 {
        return None;
    }
    let [stack, words, frame] = process.read(context)?;
    let end = stack.wrapping_add(words.wrapping_mul(8));
    let frames = process.descriptor(at::FRAME_BYTES).wrapping_mul(2);
    cursor.set(word::END, end.wrapping_sub(frames));
    cursor.set(word::FRAME, frame);
    (frame != 0).then_some(())
}

#[inline(always)]
fn show(process: &impl Process, iseq: u64, instruction: u64, flags: u32) -> ChainFrame {
    let [body] = process.read(iseq.wrapping_add(ISEQ_BODY)).unwrap_or([0]);
    if !iseq::fetch(process, body) {
        return ChainFrame::broken();
    }
    // The instruction is the one behind that which runs, and words are of eight bytes.
    let place = instruction.wrapping_sub(iseq::code(process)) / 8;
    let Some(check) = iseq::check_fetched(process) else {
        return ChainFrame::broken();
    };
    ChainFrame {
        function: body & FUNCTION_BITS,
        check,
        position: (place as u32).saturating_sub(1),
        flags: flags | ChainFrame::FRAME,
    }
}
