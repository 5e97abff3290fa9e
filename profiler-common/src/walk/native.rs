//! One step by unwind rule.
//!
//! In: a frame, the rule of its row, and memory. Out: the caller's frame, or why there is none. Never
//! searches rows: [`bisect`](super::bisect) does.
//!
//! Callee-saved registers are not read when a frame has saved them, but only when a rule needs them: in most
//! frames only the return address is read.

use super::arch::{
    FP, FP_FROM_STORED_SP, REGISTERS, RETURNS_BY_SAVED, SAVED, SAVED_FROM_STORED_SP, SP,
};
use super::{Memory, Registers, Step, frame_pointer, is_user_address};
use crate::abi::{Origin, Rule, RuleKind, Slot, StackEnd};

/// A callee-saved register: its value, the address where a callee saved it, or nothing.
///
/// Not an enum with payloads: the compiler would leave the payload of the empty variant uninitialized, and
/// the verifier rejects programs that move uninitialized values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    how: KeptHow,
    number: u64,
}

/// Not an enum either: to make one of a word takes a branch for each variant, in every frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
struct KeptHow(u64);

impl KeptHow {
    const LOST: Self = Self(0);
    const VALUE: Self = Self(1);
    const AT: Self = Self(2);
}

impl Kept {
    /// Lost.
    pub const LOST: Self = Self {
        how: KeptHow::LOST,
        number: 0,
    };

    /// It has this value.
    #[inline(always)]
    pub const fn value(number: u64) -> Self {
        Self {
            how: KeptHow::VALUE,
            number,
        }
    }

    /// A callee saved it at this address.
    #[inline(always)]
    pub const fn at(number: u64) -> Self {
        Self {
            how: KeptHow::AT,
            number,
        }
    }

    /// Its value, from memory if necessary.
    ///
    /// # Errors
    /// The memory cannot be read, or the register is lost.
    #[inline(always)]
    pub fn read(self, memory: &impl Memory) -> Result<u64, StackEnd> {
        match self.how {
            KeptHow::VALUE => Ok(self.number),
            KeptHow::AT => {
                let [value] = memory.read::<1>(self.number).ok_or(StackEnd::Unreadable)?;
                Ok(value)
            }
            _ => Err(StackEnd::BadRow),
        }
    }

    /// Where the caller's is, by a slot that counts from `cfa`.
    #[inline(always)]
    const fn moved(self, slot: Slot, cfa: u64) -> Self {
        if slot.0 == Slot::SAME.0 {
            return self;
        }
        if slot.0 == Slot::LOST.0 {
            return Self::LOST;
        }
        Self::at(cfa.wrapping_add_signed(slot.bytes()))
    }

    #[inline(always)]
    const fn from_parts(how: u64, number: u64) -> Self {
        Self {
            how: KeptHow(how & 3),
            number,
        }
    }
}

/// Why execution is at a frame's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reached {
    /// It is there now: the first frame, of which all registers are known.
    Running,
    /// It was interrupted there by a signal.
    Interrupted,
    /// It will resume there after a system call, whose instruction is the one before and may be the last of
    /// its function: the first frame, of which all registers are known.
    Waiting,
    /// It called the first frame and will return there. In DWARF, a register that a callee does not mention
    /// is unchanged; one call deep that is believed of every register.
    CalledFirst,
    /// It will return there.
    Called,
    /// It will return there, as the frame record says to which [`Rule::FRAME_POINTER`] led.
    Pointed,
}

/// Registers of one frame, as far as they are known, and how it was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where execution is or will resume.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer, or whatever the program keeps in that register.
    pub fp: Kept,
    /// The register [`SAVED`], or whatever the program keeps in it.
    pub saved: Kept,
    /// Why execution is at `ip`.
    pub reached: Reached,
}

/// Words of a frame between two steps; see [`Frame::words`].
pub const FRAME_WORDS: usize = 5;

impl Frame {
    /// The frame as words: ip, sp, the numbers of fp and saved, and the kinds; see
    /// [`from_words`](Self::from_words). Kept in memory between two steps, the words are opaque to the
    /// verifier, which would otherwise track every combination of kinds.
    #[inline(always)]
    pub const fn words(self) -> [u64; FRAME_WORDS] {
        let kinds = self.fp.how.0 | self.saved.how.0 << 2 | (self.reached as u64) << 4;
        [self.ip, self.sp, self.fp.number, self.saved.number, kinds]
    }

    /// The frame that these words encode.
    #[inline(always)]
    pub const fn from_words([ip, sp, fp, saved, kinds]: [u64; FRAME_WORDS]) -> Self {
        Self {
            ip,
            sp,
            fp: Kept::from_parts(kinds, fp),
            saved: Kept::from_parts(kinds >> 2, saved),
            reached: match kinds >> 4 {
                0 => Reached::Running,
                1 => Reached::Interrupted,
                2 => Reached::Waiting,
                3 => Reached::CalledFirst,
                4 => Reached::Called,
                _ => Reached::Pointed,
            },
        }
    }

    /// The first frame of a stack.
    #[inline(always)]
    pub const fn running(registers: Registers, saved: u64) -> Self {
        Self {
            ip: registers.ip,
            sp: registers.sp,
            fp: Kept::value(registers.fp),
            saved: Kept::value(saved),
            reached: Reached::Running,
        }
    }

    /// The first frame of a stack whose task is in a system call.
    #[inline(always)]
    pub const fn waiting(registers: Registers, saved: u64) -> Self {
        Self {
            reached: Reached::Waiting,
            ..Self::running(registers, saved)
        }
    }

    /// A calling frame of which no more is known than this.
    #[inline(always)]
    pub const fn called(registers: Registers) -> Self {
        Self {
            ip: registers.ip,
            sp: registers.sp,
            fp: Kept::value(registers.fp),
            saved: Kept::LOST,
            reached: Reached::Called,
        }
    }

    /// Whether a callee of the frame is known.
    #[inline(always)]
    pub const fn has_called(&self) -> bool {
        matches!(
            self.reached,
            Reached::CalledFirst | Reached::Called | Reached::Pointed
        )
    }

    /// The address to look up rows by. A call that never returns may be the last instruction of its function;
    /// the next byte is another function's.
    #[inline(always)]
    pub const fn lookup(&self) -> u64 {
        match self.reached {
            Reached::Running | Reached::Interrupted => self.ip,
            Reached::Waiting | Reached::CalledFirst | Reached::Called | Reached::Pointed => {
                self.ip.wrapping_sub(1)
            }
        }
    }

    /// The address that represents the frame in a stack. All but the first are taken for return addresses and
    /// looked up one byte earlier, so interrupted code gets one byte more.
    #[inline(always)]
    pub const fn shown(&self) -> u64 {
        match self.reached {
            Reached::Running
            | Reached::Waiting
            | Reached::CalledFirst
            | Reached::Called
            | Reached::Pointed => self.ip,
            Reached::Interrupted => self.ip.wrapping_add(1),
        }
    }

    /// The caller by the frame pointer, of which no more is known than that.
    ///
    /// # Errors
    /// Why there is none.
    #[inline(always)]
    pub fn by_frame_pointer(&self, memory: &impl Memory) -> Result<Self, StackEnd> {
        let registers = self.registers(memory).ok_or(StackEnd::NoFramePointer)?;
        match frame_pointer::step(registers, memory) {
            Step::Caller(registers) => Ok(Self::called(registers)),
            Step::End(why) => Err(why),
        }
    }

    /// The registers for a step by frame pointer; none if the frame pointer is lost.
    #[inline(always)]
    pub fn registers(&self, memory: &impl Memory) -> Option<Registers> {
        Some(Registers {
            ip: self.ip,
            sp: self.sp,
            fp: self.fp.read(memory).ok()?,
        })
    }
}

/// The size of the guard page between two stacks, in bytes.
const STACKS_APART_BYTES: u64 = 4096;

/// The caller of `frame`, by the rule of the row that holds at [`Frame::lookup`].
///
/// `register` gives a register of the first frame by its DWARF number. It is called only where code keeps the
/// way to its caller in an unusual place.
#[inline(always)]
pub fn step(
    rule: Rule,
    frame: &Frame,
    register: impl Fn(u8) -> Option<u64>,
    memory: &impl Memory,
) -> Step<Frame> {
    let mut caller = *frame;
    match advance(rule, &mut caller, register, memory) {
        Ok(()) => Step::Caller(caller),
        Err(end) => Step::End(end),
    }
}

/// As [`step`], replacing the frame by its caller. If there is none, the frame is unchanged.
///
/// # Errors
/// Why there is no caller.
#[inline(always)]
pub fn advance(
    rule: Rule,
    frame: &mut Frame,
    register: impl Fn(u8) -> Option<u64>,
    memory: &impl Memory,
) -> Result<(), StackEnd> {
    let found_from = caller_found_from(rule, frame, &register, memory)?;
    advance_from(found_from, rule, frame, register, memory)
}

/// The address from which a rule finds the caller: its stack pointer (CFA), or the place from which all its registers are stored.
/// First half of [`advance`].
///
/// # Errors
/// Why there is no caller.
#[inline(always)]
pub fn caller_found_from(
    rule: Rule,
    frame: &Frame,
    register: impl Fn(u8) -> Option<u64>,
    memory: &impl Memory,
) -> Result<u64, StackEnd> {
    let how = rule.how();
    match how {
        RuleKind::Missing => return Err(StackEnd::NoRow),
        RuleKind::Root => return Err(StackEnd::Root),
        RuleKind::Unsupported => return Err(StackEnd::BadRow),
        _ => {}
    }
    let unusual = |number| unusual(frame.reached, number, &register);
    let base = match rule.base() {
        SP => frame.sp,
        FP => frame.fp.read(memory)?,
        SAVED => frame.saved.read(memory)?,
        number => unusual(number)?,
    };
    let low = base.wrapping_add_signed(rule.low());
    let cfa = match how {
        RuleKind::Offset => base.wrapping_add_signed(rule.operand()),
        RuleKind::Signal | RuleKind::Switch => {
            let place = base.wrapping_add_signed(rule.operand());
            return is_user_address(place)
                .then_some(place)
                .ok_or(StackEnd::Unreadable);
        }
        RuleKind::InRegister => low,
        RuleKind::Linkage => {
            let pushed = frame.ip & 15 >= rule.high() as u64;
            low.wrapping_add(u64::from(pushed) << 3)
        }
        RuleKind::Memory | RuleKind::IndexedMemory => {
            let (place, addend) = if let RuleKind::Memory = how {
                (low, rule.high())
            } else {
                let index = unusual((rule.high() & 15) as u8)?;
                (low.wrapping_add(index << 3), rule.high() >> 4)
            };
            let [word] = memory.read::<1>(place).ok_or(StackEnd::Unreadable)?;
            word.wrapping_add_signed(addend)
        }
        // Returned above.
        RuleKind::Missing | RuleKind::Root | RuleKind::Unsupported => return Err(StackEnd::BadRow),
    };
    if rule.is_frame_pointer() {
        // `_start` and new threads begin with a frame pointer of zero, as the ABI asks.
        if base == 0 {
            return Err(StackEnd::Root);
        }
        if cfa <= frame.sp || !leads_on(frame.sp, cfa, how, rule.base()) {
            return Err(StackEnd::NoFramePointer);
        }
    } else if !leads_on(frame.sp, cfa, how, rule.base()) {
        return Err(StackEnd::Implausible);
    }
    Ok(cfa)
}

/// Replaces the frame by its caller, which is found from this address. Second half of [`advance`].
///
/// # Errors
/// Why there is no caller. The frame is unchanged.
#[inline(always)]
pub fn advance_from(
    found_from: u64,
    rule: Rule,
    frame: &mut Frame,
    register: impl Fn(u8) -> Option<u64>,
    memory: &impl Memory,
) -> Result<(), StackEnd> {
    let (how, reached, cfa) = (rule.how(), frame.reached, found_from);
    if let RuleKind::Signal | RuleKind::Switch = how {
        *frame = stored(rule, found_from, memory)?;
        return Ok(());
    }
    let unusual = |number| unusual(reached, number, &register);
    let fp = kept(rule.fp(), frame.fp, rule, frame, cfa, &unusual, memory);
    let saved = || {
        kept(
            rule.saved(),
            frame.saved,
            rule,
            frame,
            cfa,
            &unusual,
            memory,
        )
    };
    let (ip, fp) = if let RuleKind::InRegister = how {
        (unusual(register_number(rule.high()))?, fp)
    } else {
        returned(cfa, fp, saved, memory)?
    };
    *frame = Frame {
        ip: code(ip)?,
        sp: cfa,
        fp,
        saved: saved(),
        reached: match reached {
            _ if rule.is_frame_pointer() => Reached::Pointed,
            Reached::Running | Reached::Waiting => Reached::CalledFirst,
            _ => Reached::Called,
        },
    };
    Ok(())
}

/// The number of a register in a rule's word.
#[inline(always)]
const fn register_number(part: i64) -> u8 {
    part as u8 & (REGISTERS as u8 - 1)
}

/// A register other than those that are followed through the walk.
#[inline(always)]
fn unusual(
    reached: Reached,
    number: u8,
    register: &impl Fn(u8) -> Option<u64>,
) -> Result<u64, StackEnd> {
    match reached {
        Reached::Running | Reached::Waiting | Reached::CalledFirst => {
            register(number).ok_or(StackEnd::BadRow)
        }
        Reached::Interrupted | Reached::Called | Reached::Pointed => Err(StackEnd::BadRow),
    }
}

/// As [`advance`], of a frame that [called](Frame::has_called) and by a [plain](Rule::is_plain) rule: the same outcome with
/// fewer decisions.
///
/// # Errors
/// As [`advance`].
#[inline(always)]
pub fn advance_plain(rule: Rule, frame: &mut Frame, memory: &impl Memory) -> Result<(), StackEnd> {
    let base = if rule.base() == FP {
        frame.fp.read(memory)?
    } else {
        frame.sp
    };
    let cfa = base.wrapping_add_signed(rule.operand());
    // By a frame pointer that only evidence vouches for, callers are never on another stack.
    let is_pointed = rule.is_frame_pointer();
    if !leads_on(
        frame.sp,
        cfa,
        RuleKind::Offset,
        if is_pointed { SP } else { rule.base() },
    ) {
        return Err(StackEnd::Implausible);
    }
    let saved = || frame.saved.moved(rule.saved(), cfa);
    let (ip, fp) = returned(cfa, frame.fp.moved(rule.fp(), cfa), saved, memory)?;
    *frame = Frame {
        ip: code(ip)?,
        sp: cfa,
        fp,
        saved: saved(),
        reached: if is_pointed {
            Reached::Pointed
        } else {
            Reached::Called
        },
    };
    Ok(())
}

/// The return address, and the caller's frame pointer. `saved` gives the caller's saved register.
#[inline(always)]
fn returned(
    cfa: u64,
    fp: Kept,
    saved: impl Fn() -> Kept,
    memory: &impl Memory,
) -> Result<(u64, Kept), StackEnd> {
    if RETURNS_BY_SAVED {
        return Ok((saved().read(memory)?, fp));
    }
    if fp == Kept::at(cfa.wrapping_sub(16)) {
        // The frame record of code with frame pointers, in one read.
        let [value, ip] = memory
            .read_upward::<2>(cfa.wrapping_sub(16))
            .ok_or(StackEnd::Unreadable)?;
        return Ok((ip, Kept::value(value)));
    }
    let [ip] = memory
        .read_upward::<1>(cfa.wrapping_sub(8))
        .ok_or(StackEnd::Unreadable)?;
    Ok((ip, fp))
}

/// Whether `cfa` is a plausible stack pointer of a caller. Stacks grow down, so it is above the callee's. A
/// function may run its callee on another stack; then it finds back through a register other than the stack
/// pointer.
#[inline(always)]
fn leads_on(sp: u64, cfa: u64, how: RuleKind, base: u8) -> bool {
    if cfa & 7 != 0 || !is_user_address(cfa) {
        return false;
    }
    if cfa > sp {
        return true;
    }
    let elsewhere = base != SP || !matches!(how, RuleKind::Offset | RuleKind::Linkage);
    let far = elsewhere && sp.wrapping_sub(cfa) >= STACKS_APART_BYTES;
    far || (cfa == sp && (RETURNS_BY_SAVED || matches!(how, RuleKind::InRegister)))
}

/// A return address, if it is plausible.
#[inline(always)]
fn code(ip: u64) -> Result<u64, StackEnd> {
    if ip == 0 {
        Err(StackEnd::Root)
    } else if is_user_address(ip) {
        Ok(ip)
    } else {
        Err(StackEnd::Implausible)
    }
}

/// The frame whose registers are all in memory (a signal frame), from `place` on.
#[inline(always)]
fn stored(rule: Rule, place: u64, memory: &impl Memory) -> Result<Frame, StackEnd> {
    let [sp, ip] = memory.read::<2>(place).ok_or(StackEnd::Unreadable)?;
    Ok(Frame {
        ip: code(ip)?,
        sp,
        fp: Kept::at(place.wrapping_add_signed(FP_FROM_STORED_SP)),
        saved: Kept::at(place.wrapping_add_signed(SAVED_FROM_STORED_SP)),
        reached: if let RuleKind::Signal = rule.how() {
            Reached::Interrupted
        } else {
            Reached::Called
        },
    })
}

/// Where the caller's register is, by this frame's slot.
#[inline(always)]
fn kept(
    slot: Slot,
    ours: Kept,
    rule: Rule,
    frame: &Frame,
    cfa: u64,
    unusual: &impl Fn(u8) -> Result<u64, StackEnd>,
    memory: &impl Memory,
) -> Kept {
    if slot == Slot::SAME {
        return ours;
    }
    if slot == Slot::LOST {
        return Kept::LOST;
    }
    let origin = match rule.origin() {
        Origin::Cfa => Ok(cfa),
        Origin::StackPointer => Ok(frame.sp),
        Origin::FramePointer => frame.fp.read(memory),
        Origin::Register => {
            return unusual(register_number(slot.0.into())).map_or(Kept::LOST, Kept::value);
        }
    };
    origin.map_or(Kept::LOST, |origin| {
        Kept::at(origin.wrapping_add_signed(slot.bytes()))
    })
}

#[cfg(test)]
mod tests;
