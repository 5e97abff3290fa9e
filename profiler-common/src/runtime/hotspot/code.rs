//! Code of the code cache: how its frames are left, and which method they are of.

use super::{
    HotSpot,
    blob::{Blob, blob_at, is_in_heap},
    layout::{CALL_STUB, Offsets, at},
    method::{compiled_check, method_check},
};
use crate::{
    runtime::{
        COMPILED, ChainFrame, CodeOwner, Process,
        arch::{
            self,
            hotspot::{
                BYTECODE, BYTECODE_BELOW, FP_IN_REGISTER, METHOD_BELOW, PLACE, RETURNED,
                SENDER_BELOW, THREAD,
            },
        },
    },
    walk::{
        Memory, is_user_address,
        native::{Frame, Kept, Reached},
    },
};

impl CodeOwner for HotSpot {
    /// A function of the virtual machine's: the first of the thread's virtual ones.
    #[inline(always)]
    fn anchor(memory: &impl Memory, register: impl Fn(u8) -> u64) -> Option<u64> {
        let [functions] = memory.read(register(THREAD))?;
        let [code] = memory.read(functions)?;
        Some(code)
    }

    /// The blob. Its block is fetched.
    #[inline(always)]
    fn search_from(process: &impl Process, frame: &Frame) -> u64 {
        blob_at(process, frame.lookup()).unwrap_or(0)
    }

    #[inline(always)]
    fn leave(
        process: &impl Process,
        frame: &Frame,
        found: u64,
    ) -> Option<(Frame, Option<ChainFrame>)> {
        let blob = Blob::fetched(process, found)?;
        if blob.is_interpreter() {
            blob.remember_interpreter(process);
            let caller = interpreters_caller(process, frame)?;
            return Some((caller, interpreted(process, frame)));
        }
        // A stub has its blob's name, but for the one that enters Java.
        let is_call_stub = is_call_stub(process, frame, &blob);
        let is_jump = blob.is_jump() && !frame.has_called();
        let caller = if !is_jump && (blob.frame_words == 0 || is_call_stub) {
            stub_caller(process, frame)?
        } else {
            compiled_caller(process, frame, &blob)?
        };
        let function = ChainFrame {
            function: if is_call_stub { CALL_STUB } else { blob.key() },
            check: compiled_check(&blob),
            position: frame.lookup().wrapping_sub(blob.code) as u32,
            flags: ChainFrame::FRAME,
        };
        Some((caller, Some(function)))
    }

    /// A compiled method is told by its number.
    #[inline(always)]
    fn leave_known(
        process: &impl Process,
        frame: &Frame,
        function: &ChainFrame,
        bytes: u64,
    ) -> Option<(Frame, u64)> {
        let method = function.function & !COMPILED;
        let [number] = process.read(method.wrapping_add(Offsets::compile_id(process)))?;
        let is_same = method != function.function && number as u32 == function.check;
        let caller = caller_below(process, frame.sp.wrapping_add(bytes))?;
        is_same.then_some((caller, method))
    }
}

/// The caller whose stack pointer this is.
#[inline(always)]
fn caller_below(process: &impl Process, sp: u64) -> Option<Frame> {
    let [ip] = process.read_upward(sp.wrapping_sub(8))?;
    is_user_address(ip).then_some(Frame {
        ip,
        sp,
        fp: Kept::at(sp.wrapping_sub(16)),
        saved: Kept::LOST,
        reached: Reached::Called,
    })
}

/// The caller of compiled code, by the size of its frames.
#[inline(always)]
fn compiled_caller(process: &impl Process, frame: &Frame, blob: &Blob) -> Option<Frame> {
    let missing = if frame.has_called() {
        0
    } else {
        without_frame(process, frame, blob)
    };
    let place = if missing != 0 {
        missing
    } else {
        let place = frame.sp.wrapping_add(8 * blob.frame_words).wrapping_sub(8) & PLACE;
        if frame.has_called() {
            place
        } else {
            match pushed(process, place) {
                Some(bytes) => place.wrapping_add(bytes),
                None if blob.is_exception() => return returned_to(process, frame),
                None => return None,
            }
        }
    };
    caller_at(process, frame, place)
}

/// The caller whose return address is at a place, with [`FP_IN_REGISTER`].
#[inline(always)]
fn caller_at(process: &impl Process, frame: &Frame, place: u64) -> Option<Frame> {
    let caller = caller_below(process, (place & PLACE).wrapping_add(8))?;
    let fp = if place & FP_IN_REGISTER != 0 {
        frame.fp
    } else {
        caller.fp
    };
    Some(Frame { fp, ..caller })
}

/// The caller of the exception blob, where that has no frame yet, or no more.
#[inline(always)]
fn returned_to(process: &impl Process, frame: &Frame) -> Option<Frame> {
    let ip = process.register(RETURNED);
    is_in_heap(process, ip).then_some(Frame {
        ip,
        saved: Kept::LOST,
        reached: Reached::Called,
        ..*frame
    })
}

/// How many bytes a method has pushed below its frame, as it does while it compares strings, where its return address would be at a
/// place without. Code that is left by its size is called from the code cache alone, so what is no address there is none.
#[inline(always)]
fn pushed(process: &impl Process, place: u64) -> Option<u64> {
    let [expected, next, last] = process.read_upward::<3>(place)?;
    if is_in_heap(process, expected) {
        Some(0)
    } else if is_in_heap(process, next) {
        Some(8)
    } else if is_in_heap(process, last) {
        Some(16)
    } else {
        None
    }
}

/// The caller of a stub that has frame pointers.
#[inline(always)]
fn stub_caller(process: &impl Process, frame: &Frame) -> Option<Frame> {
    let place = if frame.has_called() {
        0
    } else {
        arch::hotspot::stub_without_frame(process, frame)
    };
    if place == 0 {
        return frame.by_frame_pointer(process).ok();
    }
    caller_at(process, frame, place)
}

/// Bytes of a method's bytecodes, at most (JVM Specification, section 4.7.3).
const MAX_BYTECODES: u64 = 1 << 16;

/// Whether a frame is of the stub with which C++ enters Java.
#[inline(always)]
fn is_call_stub(process: &impl Process, frame: &Frame, blob: &Blob) -> bool {
    if blob.is_method() {
        return false;
    }
    let variable = process.descriptor(at::CALL_STUB);
    let address = process.read(process.bias().wrapping_add(variable));
    address.is_some_and(|[address]| address == frame.ip)
}

/// The method that a frame of the interpreter runs.
#[inline(always)]
fn interpreted(process: &impl Process, frame: &Frame) -> Option<ChainFrame> {
    let fp = frame.fp.read(process).ok()?;
    let [method] = process.read_upward(fp.wrapping_sub(METHOD_BELOW))?;
    let [constant] = process.read(method.wrapping_add(Offsets::const_method(process)))?;
    let bytecode = if frame.has_called() {
        let [bytecode] = process.read_upward(fp.wrapping_sub(BYTECODE_BELOW))?;
        bytecode
    } else {
        process.register(BYTECODE)
    };
    let first = constant.wrapping_add(Offsets::const_method_bytes(process));
    let position = bytecode.wrapping_sub(first);
    // Before it has made its frame, the register has something else.
    (position < MAX_BYTECODES).then_some(ChainFrame {
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
    // A compiled caller may have any number in the register, also zero.
    (is_user_address(ip) && fp >= frame.sp && sp > fp).then_some(Frame {
        ip,
        sp,
        fp: Kept::value(caller),
        saved: Kept::LOST,
        reached: Reached::Called,
    })
}

/// Where the return address of an innermost frame is that is not there yet, or no more; zero if it is there.
#[inline(always)]
fn without_frame(process: &impl Process, frame: &Frame, blob: &Blob) -> u64 {
    if blob.is_jump() {
        return frame.sp & PLACE | FP_IN_REGISTER;
    }
    arch::hotspot::without_frame(
        process,
        frame,
        blob.frame_words,
        blob.is_past_prologue(frame.ip),
    )
}
