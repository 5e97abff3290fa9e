//! Unwind tables, as user space writes them and the kernel half reads them.
//!
//! An object's code is divided into *pages* of 64 KiB. Each page has its [`PageRows`]: a sorted run of
//! [`TableRow`]s, the first for the page's first byte, so every address has a row in its own page. A row names a
//! [`Rule`] by its index in one table that all objects share. A rule says in one word how to get from a frame
//! to its caller; [`walk::native`](crate::walk::native) follows it.

use super::{
    arch::{CFA_AT_ENTRY, FP as FRAME_POINTER, REGISTERS, SP as STACK_POINTER},
    layout::boundary,
};

/// The binary logarithm of a page's size in bytes.
pub const TABLE_PAGE_BITS: u32 = 16;

/// Descriptions of code are read for stretches of so many addresses at a time, where a file has many.
pub const READ_TOGETHER_BITS: u32 = 18;

/// The number of rules that rows can name.
pub const MAX_RULES: usize = 1 << 16;

boundary! {
    /// From this address of its page on, up to the next row's, this rule holds. Compared as two halves.
    #[derive(Hash)]
    #[repr(C)]
    pub struct TableRow {
        /// The offset in its page, in bytes.
        pub low: u16,
        /// The index of the rule.
        pub rule: u16,
    }
}

boundary! {
    /// The rows of one page.
    #[derive(Default, Hash)]
    #[repr(C)]
    pub struct PageRows {
        /// The index of the first one. Its `low` is zero.
        pub first: u32,
        /// Their number: at least one, at most one for every byte.
        pub count: u32,
    }
}

/// How to find a frame's caller: one word.
///
/// | bits  | what |
/// | ---   | --- |
/// | 0–30  | the operand: one number, more [`MIN_OPERAND`] than zero, or two signed parts, of 16 and of 15 bits ([`RuleKind`] says which) |
/// | 31–35 | the base: a register, numbered as in DWARF |
/// | 36–39 | the [`RuleKind`]; 10 and 11 are 1 and 2, [read from code](Rule::is_from_code), 12 is [`Rule::FRAME_POINTER`]'s |
/// | 40–41 | the [`Origin`] of the next two |
/// | 42–52 | the [`Slot`] of the caller's frame pointer |
/// | 53–63 | the [`Slot`] of the caller's further saved register |
///
/// The word zero is the rule of code without unwind information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rule(pub u64);

/// The kind of a rule. The *canonical frame address* (CFA, DWARF 5, section 6.4) is the caller's stack
/// pointer. Unless stated otherwise, the return address is in the word below it; or on machines that [return by a
/// register](crate::walk::arch::RETURNS_BY_SAVED) where the caller's saved register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RuleKind {
    /// Nothing is known about this code.
    Missing = 0,
    /// CFA = base + operand.
    Offset = 1,
    /// CFA = the word at (base + low half), + high half.
    Memory = 2,
    /// CFA = the word at (base + low half + 8 × register), + addend, where the lowest four bits of the
    /// high half are the register and the rest is the addend.
    IndexedMemory = 3,
    /// CFA = base + low half, + 8 if the ip is at or behind offset `high half` in its 16 bytes: entries of a
    /// procedure linkage table, which push one word halfway.
    Linkage = 4,
    /// The kernel saved all registers of the interrupted code: its stack pointer is at base + operand.
    Signal = 5,
    /// As `Signal`, but the frame is one that called (`setcontext`).
    Switch = 6,
    /// CFA = base + low half; the return address is in the register with the number in the high half.
    InRegister = 7,
    /// The outermost frame: there is no caller.
    Root = 8,
    /// There are unwind instructions, but no kind of rule expresses them.
    Unsupported = 9,
}

impl RuleKind {
    /// The kind with the discriminant `code`; unknown codes are unsupported.
    #[inline(always)]
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Missing,
            1 | 10 | 12 => Self::Offset,
            2 | 11 => Self::Memory,
            3 => Self::IndexedMemory,
            4 => Self::Linkage,
            5 => Self::Signal,
            6 => Self::Switch,
            7 => Self::InRegister,
            8 => Self::Root,
            _ => Self::Unsupported,
        }
    }
}

/// Origin that a rule's slots are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Origin {
    /// Words from the CFA.
    Cfa = 0,
    /// Words from the address in the frame-pointer register.
    FramePointer = 1,
    /// Words from the stack pointer.
    StackPointer = 2,
    /// Not memory: the slot is the number of the register that holds the value.
    Register = 3,
}

impl Origin {
    /// The origin with the discriminant in the lowest two bits of `code`.
    #[inline(always)]
    pub const fn from_code(code: u8) -> Self {
        match code & 3 {
            0 => Self::Cfa,
            1 => Self::FramePointer,
            2 => Self::StackPointer,
            _ => Self::Register,
        }
    }
}

/// Where a caller's register is saved: words from an [`Origin`], or one of two special values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Slot(pub i16);

impl Slot {
    /// Unchanged: the caller's is this frame's.
    pub const SAME: Self = Self(-1024);
    /// Lost, or in a place that rules cannot express.
    pub const LOST: Self = Self(1023);

    /// The slot `bytes` away from its origin; none if it does not fit.
    pub const fn at(bytes: i64) -> Option<Self> {
        let words = bytes / 8;
        if bytes % 8 != 0 || words <= Self::SAME.0 as i64 || words >= Self::LOST.0 as i64 {
            return None;
        }
        Some(Self(words as i16))
    }

    /// The slot's distance from its origin, in bytes.
    #[inline(always)]
    pub const fn bytes(self) -> i64 {
        self.0 as i64 * 8
    }
}

const SLOT_MASK: u64 = 0x7ff;

/// The size of an operand in bits, and that of its upper half.
const OPERAND_BITS: u32 = 31;
/// See [`OPERAND_BITS`].
const HIGH_BITS: u32 = OPERAND_BITS - 16;
const OPERAND_MASK: u64 = (1 << OPERAND_BITS) - 1;

/// The least number that is an operand; the highest is three times as far from zero. Go has functions with frames of a gibibyte.
const MIN_OPERAND: i64 = -(1 << (OPERAND_BITS - 2));

/// As many registers have a number that is a base.
const BASES: u64 = 32;

const _: () = assert!(REGISTERS as u64 <= BASES);

/// Whether a signed number needs no more bits than these.
const fn fits(number: i64, bits: u32) -> bool {
    number >= -(1 << (bits - 1)) && number < 1 << (bits - 1)
}

/// Offset of the number of a [`RuleKind`] that was read from code: the largest number of the others.
const FROM_CODE: u64 = RuleKind::Unsupported as u64;

/// The number of the [`RuleKind`] of [`Rule::FRAME_POINTER`].
const KEPT_FRAME_POINTER: u64 = 12;

impl Rule {
    /// The rule of code without unwind instructions.
    pub const MISSING: Self = Self(0);
    /// The rule of code that its file describes, where that was not read yet. What it is followed by says [`RuleKind::Missing`], too.
    pub const UNREAD: Self = Self(1);
    /// The rule of the outermost frame.
    pub const ROOT: Self = Self((RuleKind::Root as u64) << 36);
    /// The rule of the byte before a function to whose beginning the outermost frame returns: no call ends there.
    pub const ROOT_BEHIND: Self = Self(Self::ROOT.0 | 1);
    /// The rule of a function's first instruction: only the return address is on its stack.
    pub const ENTRY: Self = Self::new(RuleKind::Offset, STACK_POINTER, CFA_AT_ENTRY);
    /// The rule of code that nothing describes and that keeps frame pointers, as far as a sample of its functions tells:
    /// the caller's frame pointer and the return address are where that points to, which must be further up in the stack.
    pub const FRAME_POINTER: Self =
        Self(Self::SET_UP_FRAME_POINTER.0 + ((KEPT_FRAME_POINTER - RuleKind::Offset as u64) << 36));
    /// The rule of a function that has set up a frame pointer, as its instructions show.
    pub const SET_UP_FRAME_POINTER: Self = Self::new(RuleKind::Offset, FRAME_POINTER, 16)
        .with_slots(Origin::Cfa, Slot(-2), Slot::LOST);
    /// The rule between the first two instructions of a function that keeps a frame pointer: it is saved and not yet set.
    pub const FRAME_POINTER_PUSHED: Self = Self::new(RuleKind::Offset, STACK_POINTER, 16)
        .with_slots(Origin::Cfa, Slot(-2), Slot::SAME);
    /// The rule of unwind instructions that no rule expresses.
    pub const UNSUPPORTED: Self = Self((RuleKind::Unsupported as u64) << 36);

    /// A rule that leaves all saved registers unchanged. Of base and operand, what [does not fit](Self::fitting) is cut off.
    pub const fn new(how: RuleKind, base: u8, operand: i32) -> Self {
        Self::packed(how, base, operand as i64 - MIN_OPERAND)
    }

    const fn packed(how: RuleKind, base: u8, operand: i64) -> Self {
        let base = (base as u64 & (BASES - 1)) << OPERAND_BITS;
        Self(operand as u64 & OPERAND_MASK | base | (how as u64) << 36).with_slots(
            Origin::Cfa,
            Slot::SAME,
            Slot::SAME,
        )
    }

    /// A rule whose operand is two halves. Of base and upper half, what [does not fit](Self::fitting_halves) is cut off.
    pub const fn halves(how: RuleKind, base: u8, low: i16, high: i16) -> Self {
        Self::packed(how, base, low as u16 as i64 | (high as i64) << 16)
    }

    /// As [`new`](Self::new); none if the operand does not fit.
    pub const fn fitting(how: RuleKind, base: u8, operand: i64) -> Option<Self> {
        if operand >= MIN_OPERAND && operand <= OPERAND_MASK as i64 + MIN_OPERAND {
            Some(Self::new(how, base, operand as i32))
        } else {
            None
        }
    }

    /// As [`halves`](Self::halves); none if one of them does not fit.
    pub const fn fitting_halves(how: RuleKind, base: u8, low: i64, high: i64) -> Option<Self> {
        if fits(low, 16) && fits(high, HIGH_BITS) {
            Some(Self::halves(how, base, low as i16, high as i16))
        } else {
            None
        }
    }

    /// The same rule with other slots for the frame pointer and the [saved](crate::walk::arch::SAVED) register.
    #[must_use]
    pub const fn with_slots(self, origin: Origin, fp: Slot, saved: Slot) -> Self {
        let slots = (fp.0 as u64 & SLOT_MASK) << 42 | (saved.0 as u64 & SLOT_MASK) << 53;
        Self(self.0 & 0xff_ffff_ffff | (origin as u64) << 40 | slots)
    }

    /// The kind.
    #[inline(always)]
    pub const fn how(self) -> RuleKind {
        RuleKind::from_code((self.0 >> 36 & 15) as u8)
    }

    /// The same rule, as one that user space read from the code itself, not from unwind instructions. Only
    /// [`RuleKind::Offset`] and [`RuleKind::Memory`] can say so.
    #[must_use]
    pub const fn from_code(self) -> Self {
        match self.how() {
            RuleKind::Offset | RuleKind::Memory if !self.is_from_code() => {
                Self(self.0 + (FROM_CODE << 36))
            }
            _ => self,
        }
    }

    /// Whether it was read from the code itself.
    #[inline(always)]
    pub const fn is_from_code(self) -> bool {
        let code = self.0 >> 36 & 15;
        code > FROM_CODE && code < KEPT_FRAME_POINTER
    }

    /// Whether it is [`FRAME_POINTER`](Self::FRAME_POINTER).
    #[inline(always)]
    pub const fn is_frame_pointer(self) -> bool {
        self.0 >> 36 & 15 == KEPT_FRAME_POINTER
    }

    /// Whether it says no more than distances: of the CFA from the stack or frame pointer, and of saved registers from the
    /// CFA. Those of compiled code with few exceptions. None that was [read from code](Self::is_from_code) is.
    #[inline(always)]
    pub const fn is_plain(self) -> bool {
        let has_plain_base = self.base() == STACK_POINTER || self.base() == FRAME_POINTER;
        has_plain_base
            && (self.0 >> 36 & 15 == RuleKind::Offset as u64 || self.is_frame_pointer())
            && self.0 >> 40 & 3 == Origin::Cfa as u64
    }

    /// Whether what returns to code with this rule was not called by the instruction before: signal handlers, whose trampoline
    /// begins where they return to, and [`ROOT_BEHIND`](Self::ROOT_BEHIND).
    #[inline(always)]
    pub const fn is_behind_no_call(self) -> bool {
        matches!(self.how(), RuleKind::Signal) || self.0 == Self::ROOT_BEHIND.0
    }

    /// The base register's number in DWARF.
    #[inline(always)]
    pub const fn base(self) -> u8 {
        (self.0 >> OPERAND_BITS & (BASES - 1)) as u8
    }

    /// The operand as one number.
    #[inline(always)]
    pub const fn operand(self) -> i64 {
        (self.0 & OPERAND_MASK) as i64 + MIN_OPERAND
    }

    /// The lower half of the operand.
    #[inline(always)]
    pub const fn low(self) -> i64 {
        self.0 as i16 as i64
    }

    /// The upper half of the operand.
    #[inline(always)]
    pub const fn high(self) -> i64 {
        // Shifts up and down again to extend the sign, here and below.
        (self.0 << (64 - OPERAND_BITS)) as i64 >> (64 - HIGH_BITS)
    }

    /// The origin of the slots.
    #[inline(always)]
    pub const fn origin(self) -> Origin {
        Origin::from_code((self.0 >> 40) as u8)
    }

    /// Where the caller's frame pointer is.
    #[inline(always)]
    pub const fn fp(self) -> Slot {
        Slot(((self.0 << 11) as i64 >> 53) as i16)
    }

    /// Where the caller's [saved](crate::walk::arch::SAVED) register is.
    #[inline(always)]
    pub const fn saved(self) -> Slot {
        Slot((self.0 as i64 >> 53) as i16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    #[test]
    fn every_kind_and_origin_is_found_by_its_code() {
        for code in 0..=9 {
            assert_eq!(RuleKind::from_code(code) as u8, code);
        }
        assert_eq!(RuleKind::from_code(13), RuleKind::Unsupported);
        assert_eq!(
            [10, 11, 12].map(RuleKind::from_code),
            [RuleKind::Offset, RuleKind::Memory, RuleKind::Offset]
        );
        for code in 0..4 {
            assert_eq!(Origin::from_code(code) as u8, code);
        }
    }

    #[test]
    fn rules_without_parts_have_their_documented_meaning() {
        assert_eq!(Rule::MISSING.how(), RuleKind::Missing);
        assert_eq!(Rule::ROOT.how(), RuleKind::Root);
        assert_eq!(Rule::ROOT_BEHIND.how(), RuleKind::Root);
        assert_eq!(Rule::UNSUPPORTED.how(), RuleKind::Unsupported);
    }

    #[test]
    fn only_distances_from_the_stack_or_frame_pointer_are_plain() {
        for how in (0..16).map(RuleKind::from_code) {
            for base in 0..32 {
                let is_plain = how == RuleKind::Offset && (base == 6 || base == 7);
                assert_eq!(
                    Rule::new(how, base, 16).is_plain(),
                    is_plain,
                    "{how:?} {base}"
                );
            }
        }
        let rule = Rule::new(RuleKind::Offset, 7, 16);
        assert!(!rule.from_code().is_plain());
        for origin in (1..4).map(Origin::from_code) {
            assert!(!rule.with_slots(origin, Slot(-2), Slot::SAME).is_plain());
        }
    }

    #[test]
    fn the_rule_of_kept_frame_pointers_is_plain_and_not_read_from_code() {
        let rule = Rule::FRAME_POINTER;
        assert!(rule.is_frame_pointer() && rule.is_plain() && !rule.is_from_code());
        let parts = (rule.how(), rule.base(), rule.operand());
        assert_eq!(parts, (RuleKind::Offset, 6, 16));
        assert_eq!((rule.fp(), rule.saved()), (Slot(-2), Slot::LOST));
        let alike = Rule::new(RuleKind::Offset, 6, 16);
        assert!(!alike.is_frame_pointer() && !alike.from_code().is_frame_pointer());
    }

    #[test]
    fn a_slot_is_a_whole_number_of_words_within_reach() {
        assert_eq!(Slot::at(-16), Some(Slot(-2)));
        assert_eq!(Slot::at(-12), None);
        assert_eq!(Slot::at(-1024 * 8), None);
        assert_eq!(Slot::at(1023 * 8), None);
        assert_eq!(Slot::at(-1023 * 8).map(Slot::bytes), Some(-8184));
    }

    proptest! {
        #[test]
        fn a_packed_rule_returns_its_parts(
            how in 0u8..10, base in 0u8..32, operand in -1i32 << 29..3 << 29, origin in 0u8..4,
            fp in -1024i16..1024, saved in -1024i16..1024,
        ) {
            let rule = Rule::new(RuleKind::from_code(how), base, operand)
                .with_slots(Origin::from_code(origin), Slot(fp), Slot(saved));
            prop_assert_eq!((rule.how() as u8, rule.base(), rule.operand()), (how, base, i64::from(operand)));
            prop_assert_eq!((rule.origin() as u8, rule.fp(), rule.saved()), (origin, Slot(fp), Slot(saved)));
            let read = rule.from_code();
            prop_assert_eq!(read.is_from_code(), matches!(rule.how(), RuleKind::Offset | RuleKind::Memory));
            prop_assert_eq!(read.from_code(), read);
            prop_assert_eq!(read.how(), rule.how());
            prop_assert_eq!((read.base(), read.operand(), read.fp()), (rule.base(), rule.operand(), rule.fp()));
        }

        #[test]
        fn the_halves_of_a_word_are_separate(low: i16, high in -1i16 << 14..1 << 14, base in 0u8..32) {
            let rule = Rule::halves(RuleKind::Memory, base, low, high);
            prop_assert_eq!((rule.low(), rule.high()), (i64::from(low), i64::from(high)));
            prop_assert_eq!((rule.how(), rule.base()), (RuleKind::Memory, base));
        }

        #[test]
        fn what_fits_is_kept_and_all_else_is_refused(operand: i32, low: i32, high: i32) {
            let (operand, low, high) = (i64::from(operand), i64::from(low >> 15), i64::from(high >> 16));
            match Rule::fitting(RuleKind::Offset, 31, operand) {
                Some(rule) => prop_assert_eq!((rule.base(), rule.operand()), (31, operand)),
                None => prop_assert!(!(-1 << 29..3 << 29).contains(&operand)),
            }
            match Rule::fitting_halves(RuleKind::Memory, 31, low, high) {
                Some(rule) => prop_assert_eq!((rule.low(), rule.high()), (low, high)),
                None => prop_assert!(low.abs() >= 1 << 15 || high.abs() >= 1 << 14),
            }
        }
    }
}
