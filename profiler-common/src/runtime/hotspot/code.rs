//! Code of the code cache: how its frames are left, and which method they are of.

use super::{
    HotSpot,
    blob::{Blob, blob_at},
    layout::{
        BYTECODE, BYTECODE_BELOW, CALL_STUB, METHOD_BELOW, SENDER_BELOW, THREAD, at, const_method,
        const_method_bytes, frame_complete, is_frame_complete_short,
    },
    method::{compiled_check, method_check},
};
use crate::{
    runtime::{ChainFrame, CodeOwner, Described, Process},
    walk::{
        Memory, Step, frame_pointer, is_user_address,
        native::{Frame, Kept, Reached},
    },
};
use core::ops::ControlFlow;

impl CodeOwner for HotSpot {
    const TURNS: u32 = 1;

    /// A function of the virtual machine's: the first of the thread's virtual ones.
    #[inline(always)]
    fn anchor(memory: &impl Memory, register: impl Fn(u8) -> u64) -> Option<u64> {
        let [functions] = memory.read(register(THREAD))?;
        let [code] = memory.read(functions)?;
        Some(code)
    }

    #[inline(always)]
    fn misplaces_stack_pointer(_: &impl Described, _: u64) -> bool {
        false
    }

    /// The blob.
    #[inline(always)]
    fn search_from(process: &impl Process, frame: &Frame) -> u64 {
        blob_at(process, frame.lookup()).unwrap_or(0)
    }

    /// Nothing is to be searched for.
    #[inline(always)]
    fn search(_: &impl Process, place: u64) -> ControlFlow<u64, u64> {
        ControlFlow::Break(place)
    }

    #[inline(always)]
    fn caller(process: &impl Process, frame: &Frame, found: u64) -> Option<Frame> {
        let blob = Blob::read(process, found)?;
        if blob.is_interpreter() {
            return interpreters_caller(process, frame);
        }
        if blob.frame_words == 0 || is_call_stub(process, frame) {
            return by_frame_pointer(process, frame);
        }
        let is_first = !frame.has_called();
        let missing = if is_first {
            without_frame(process, frame, &blob)
        } else {
            0
        };
        let cfa = if missing == 0 {
            frame.sp.wrapping_add(8 * blob.frame_words)
        } else {
            missing.wrapping_add(8)
        };
        let [ip] = process.read_upward(cfa.wrapping_sub(8))?;
        is_user_address(ip).then_some(Frame {
            ip,
            sp: cfa,
            fp: if missing == frame.sp {
                frame.fp
            } else {
                Kept::at(cfa.wrapping_sub(16))
            },
            bx: Kept::LOST,
            reached: Reached::Called,
        })
    }

    #[inline(always)]
    fn function(process: &impl Process, frame: &Frame, found: u64) -> Option<ChainFrame> {
        let blob = Blob::read(process, found)?;
        if blob.is_interpreter() {
            return interpreted(process, frame);
        }
        // A stub has its blob's name, but for the one that enters Java.
        let function = if is_call_stub(process, frame) {
            CALL_STUB
        } else {
            blob.key()
        };
        Some(ChainFrame {
            function,
            check: compiled_check(process, &blob),
            position: frame.lookup().wrapping_sub(blob.code) as u32,
            flags: ChainFrame::FRAME,
        })
    }
}

/// Bytes of a method's bytecodes, at most (JVM Specification, section 4.7.3).
const MOST_BYTECODES: u64 = 1 << 16;

/// Whether a frame is of the stub with which C++ enters Java.
#[inline(always)]
fn is_call_stub(process: &impl Process, frame: &Frame) -> bool {
    let variable = process
        .bias()
        .wrapping_add(process.descriptor(at::CALL_STUB));
    process
        .read(variable)
        .is_some_and(|[address]| address == frame.ip)
}

/// The method that a frame of the interpreter runs.
#[inline(always)]
fn interpreted(process: &impl Process, frame: &Frame) -> Option<ChainFrame> {
    let fp = frame.fp.read(process).ok()?;
    let [method] = process.read_upward(fp.wrapping_sub(METHOD_BELOW))?;
    let [constant] = process.read(method.wrapping_add(const_method(process)))?;
    let bytecode = if frame.has_called() {
        let [bytecode] = process.read_upward(fp.wrapping_sub(BYTECODE_BELOW))?;
        bytecode
    } else {
        process.register(BYTECODE)
    };
    let first = constant.wrapping_add(const_method_bytes(process));
    let position = bytecode.wrapping_sub(first);
    // Before it has made its frame, the register has something else.
    (position < MOST_BYTECODES).then_some(ChainFrame {
        function: method,
        check: method_check(constant),
        position: position as u32,
        flags: ChainFrame::FRAME,
    })
}

#[inline(always)]
fn interpreters_caller(process: &impl Process, frame: &Frame) -> Option<Frame> {
    let fp = frame.fp.read(process).ok()?;
    let [sp] = process.read_upward(fp.wrapping_sub(SENDER_BELOW))?;
    let [caller, ip] = process.read_upward(fp)?;
    (is_user_address(ip) && sp > frame.sp && caller != 0).then_some(Frame {
        ip,
        sp,
        fp: Kept::value(caller),
        bx: Kept::LOST,
        reached: Reached::Called,
    })
}

#[inline(always)]
fn by_frame_pointer(process: &impl Process, frame: &Frame) -> Option<Frame> {
    match frame_pointer::step(frame.registers(process)?, process) {
        Step::Caller(registers) => Some(Frame::called(registers)),
        Step::End(_) => None,
    }
}

/// Instructions at the ends of methods: `push rbp`, `pop rbp`, `ret`; `sub` of 8 and of 32 bits from rsp; `add` of 32 bits to it.
const PUSH_RBP: u64 = 0x55;
const POP_RBP: u64 = 0x5d;
const RET: u64 = 0xc3;
const SUB_BYTE: u64 = 0xec_8348;
const SUB: u64 = 0xec_8148;
/// `cmp poll(%r15), %rsp` with a distance of 32 and of 8 bits, and the jumps behind it; `vzeroupper`.
const POLL: u64 = 0xa7_3b49;
const POLL_NEAR: u64 = 0x67_3b49;
const JUMP_ABOVE: u64 = 0x870f;
const JUMP_ABOVE_NEAR: u64 = 0x77;
const VZEROUPPER: u64 = 0x77_f8c5;

/// Instructions that are looked at behind the end of a frame.
const MOST_AHEAD: u32 = 4;

/// Where the return address of an innermost frame is that is not there yet, or no more; zero if it is there.
#[inline(always)]
fn without_frame(process: &impl Process, frame: &Frame, blob: &Blob) -> u64 {
    let Some([before, at]) = process.read::<2>(frame.ip.wrapping_sub(8)) else {
        return 0;
    };
    let Some([complete]) = process.read(blob.address.wrapping_add(frame_complete(process))) else {
        return 0;
    };
    let complete = if is_frame_complete_short(process) != 0 {
        complete as u16 as u64
    } else {
        complete as u32 as u64
    };
    let offset = frame.ip.wrapping_sub(blob.code);
    if offset < complete {
        // `push rbp` is the last one before, where it has run.
        let is_pushed = before >> 56 == PUSH_RBP;
        let subtracts = at & 0xff_ffff == SUB_BYTE || at & 0xff_ffff == SUB;
        return if is_pushed && subtracts {
            frame.sp.wrapping_add(8)
        } else {
            frame.sp
        };
    }
    let (mut place, mut sp) = (frame.ip, frame.sp);
    for _ in 0..MOST_AHEAD {
        let Some([bytes]) = process.read::<1>(place) else {
            return 0;
        };
        let length = if bytes & 0xff == RET {
            return sp;
        } else if bytes & 0xff == POP_RBP {
            sp = sp.wrapping_add(8);
            1
        } else if bytes & 0xff_ffff == POLL {
            7
        } else if bytes & 0xff_ffff == POLL_NEAR {
            4
        } else if bytes & 0xffff == JUMP_ABOVE {
            6
        } else if bytes & 0xff == JUMP_ABOVE_NEAR {
            2
        } else if bytes & 0xff_ffff == VZEROUPPER {
            3
        } else {
            return 0;
        };
        place = place.wrapping_add(length);
    }
    0
}
