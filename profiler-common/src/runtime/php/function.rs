//! `zend_function`s: what tells them apart, and where their names and files are.

use super::{
    Php,
    layout::{
        CLASS_NAME, EVAL, FRAME_VALUES, FUNCTION_BYTES, INTERNAL, OP_BYTES, OP_LINE, PARAMETERS,
        STRING_BYTES, STRING_HASH, USER, at,
    },
};
use crate::{
    intern::Hash,
    runtime::{Encoding, FunctionInfo, Process, RemoteString, Strings, check_of},
};

/// The longest string that is believed, in bytes.
const MAX_STRING: u64 = 1 << 20;

/// Fields of a function, as far as they are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    kind: u64,
    /// A `zend_string`; zero of the code of a file, and of `eval`'s.
    name: u64,
    /// A `zend_class_entry`, or zero.
    class: u64,
    /// Its file, a `zend_string`, and the line at which it begins; zeros of one written in C.
    pub(super) file: u64,
    line: u32,
}

impl Function {
    /// The function at an address; none if there is none.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, address: u64) -> Option<Self> {
        let file = process.descriptor(at::FILE);
        let is_whole = process.fetch(address, file.wrapping_add(16));
        // One written in C is shorter.
        if !is_whole && !process.fetch(address, FUNCTION_BYTES) {
            return None;
        }
        let kind = process.fetched(0) & 0xff;
        if !(kind == INTERNAL || is_whole && (kind == USER || kind == EVAL)) {
            return None;
        }
        let (mut file, mut line) = (
            process.fetched_at(file),
            process.fetched_at(file.wrapping_add(8)),
        );
        if kind == INTERNAL {
            (file, line) = (0, 0);
        }
        Some(Self {
            kind,
            name: process.fetched(1),
            class: process.fetched(2),
            file,
            line: line as u32,
        })
    }

    /// Whether it is written in PHP.
    #[inline(always)]
    pub(super) const fn is_user(&self) -> bool {
        self.kind != INTERNAL
    }

    /// Whether it stands for nothing that is called: what fibers begin with.
    #[inline(always)]
    pub(super) const fn is_dummy(&self) -> bool {
        !self.is_user() && self.name == 0
    }

    /// Its class's name, a `zend_string`, or zero.
    #[inline(always)]
    fn class_name(&self, process: &impl Process) -> Option<u64> {
        if self.class == 0 {
            return Some(0);
        }
        let [name] = process.read(self.class.wrapping_add(CLASS_NAME))?;
        Some(name)
    }

    /// Check that distinguishes functions at one address: of name, file and line, not of where they
    /// are written, because requests use the same memory in turn. Of a class, its address: files
    /// and lines of its methods are its own. `file_mark` is the file's [`mark_of`].
    #[inline(always)]
    pub(super) fn check(&self, process: &impl Process, file_mark: u64) -> Option<u32> {
        let hash = Hash::new(u64::from(self.line)).with(self.kind);
        let hash = hash.with(self.class).with(mark_of(process, self.name)?);
        Some(check_of(hash.with(file_mark)))
    }
}

impl FunctionInfo for Php {
    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        let function = Function::read(process, function)?;
        function.check(process, mark_of(process, function.file)?)
    }

    /// `extra` is 1 of a function written in C, which has no file, else zero.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        let function = Function::read(process, function)?;
        Some(Strings {
            owner: string(process, function.class_name(process)?).unwrap_or_default(),
            name: string(process, function.name).unwrap_or_default(),
            file: string(process, function.file).unwrap_or_default(),
            first_line: function.line,
            extra: u64::from(!function.is_user()),
        })
    }
}

/// How many values a frame of a function takes that was called with so many arguments (`zend_vm_calc_used_stack`).
#[inline(always)]
pub(super) fn values(process: &impl Process, function: u64, arguments: u64) -> Option<u64> {
    let count = process.descriptor(at::OPCODE_COUNT);
    if !process.fetch(function, count.wrapping_add(4)) {
        return None;
    }
    let lower = |word: u64| word & 0xffff_ffff;
    let temporaries = lower(process.fetched_at(process.descriptor(at::TEMPORARIES)));
    let variables = lower(process.fetched_at(count.wrapping_sub(4)));
    let parameters = lower(process.fetched(PARAMETERS));
    let always = FRAME_VALUES.wrapping_add(arguments);
    match process.fetched(0) & 0xff {
        USER => Some(
            always
                .wrapping_add(temporaries)
                .wrapping_add(variables)
                .wrapping_sub(parameters.min(arguments)),
        ),
        // In 8.1 these have none, and what stands there is no number of values.
        INTERNAL if temporaries <= 1 => Some(always.wrapping_add(temporaries)),
        INTERNAL => Some(always),
        _ => None,
    }
}

/// Whether there is a function at an address, written in PHP.
#[inline(always)]
pub(super) fn is_user(process: &impl Process, function: u64) -> bool {
    if !process.fetch(function, 8) {
        return false;
    }
    let kind = process.fetched(0) & 0xff;
    kind == USER || kind == EVAL
}

/// Whether an address is that of an instruction of a function that is written in PHP.
#[inline(always)]
pub(super) fn has_instruction(process: &impl Process, function: u64, address: u64) -> bool {
    let opcodes = function.wrapping_add(process.descriptor(at::OPCODES));
    let [opcodes] = process.read(opcodes).unwrap_or([0]);
    let count = function.wrapping_add(process.descriptor(at::OPCODE_COUNT));
    let [count] = process.read(count).unwrap_or([0]);
    let offset = address.wrapping_sub(opcodes);
    offset < (count & 0xffff_ffff) * OP_BYTES && offset & (OP_BYTES - 1) == 0
}

/// The line of an instruction; none if it cannot be read.
#[inline(always)]
pub(super) fn line(process: &impl Process, instruction: u64) -> Option<u32> {
    let [line] = process.read(instruction.wrapping_add(OP_LINE))?;
    Some(line as u32)
}

/// Mark of a string: the runtime's hash of it; without one, its length and end. Zero of none.
#[inline(always)]
pub(super) fn mark_of(process: &impl Process, string: u64) -> Option<u64> {
    if string == 0 {
        return Some(0);
    }
    let [own, length] = process.read(string.wrapping_add(STRING_HASH))?;
    if own != 0 {
        return Some(own);
    }
    // A string ends with a zero, up to which its memory reaches. Before its first byte stands its length.
    let end = string.wrapping_add(STRING_BYTES).wrapping_add(length);
    let [last] = process.read(end.wrapping_sub(8))?;
    Some(Hash::new(length).with(last).0)
}

/// Where the bytes of a string are; none if there is no string that can be believed.
#[inline(always)]
fn string(process: &impl Process, string: u64) -> Option<RemoteString> {
    if string == 0 {
        return None;
    }
    let [_, length] = process.read(string.wrapping_add(STRING_HASH))?;
    (length <= MAX_STRING).then_some(RemoteString::new(
        string.wrapping_add(STRING_BYTES),
        length as u32,
        Encoding::Bytes,
    ))
}
