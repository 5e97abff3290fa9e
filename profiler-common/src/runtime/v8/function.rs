//! Functions: what tells them apart, what they are called and where they are.

use super::{
    V8,
    closure::shared_of_function,
    layout::{
        KINDS_OF_FRAMES, Offsets, SCRIPT_ID, SCRIPT_NAME, SHARED_BYTES, SHARED_MAPS, Types,
        address_of, integer, is_object, is_of_types,
    },
    scope::Scope,
    string::{is_string, piece},
};
use crate::runtime::{COMPILED, ChainFrame, FunctionInfo, Process, RemoteString, Strings};

/// The number of the literal of what is in no script: builtins and functions of C++ (`kInvalidInfoId`).
const NO_LITERAL: u32 = u32::MAX;

/// Spreads numbers so far that numbers of literals added to them are not others' (the golden ratio, of 32 bits).
const SPREAD: u32 = 0x9e37_79b1;

/// The common part of the closures of one function literal: a `SharedFunctionInfo`.
pub(super) struct Shared {
    address: u64,
    check: u32,
    name: u64,
    script: u64,
}

impl Shared {
    /// That at an address, if there is one, and it is of a script.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, address: u64) -> Option<Self> {
        if !process.fetch(address, SHARED_BYTES) {
            return None;
        }
        let (map, name) = (
            process.fetched(0),
            process.fetched_at(Offsets::name(process)),
        );
        let kind = Types::shared(process);
        if !is_of_types(process, map, (kind, kind), SHARED_MAPS) {
            return None;
        }
        let (check, script) = check_and_script(process)?;
        Some(Self {
            address,
            check,
            name,
            script,
        })
    }

    /// The check of that at an address which had one before.
    #[inline(always)]
    pub(super) fn known_check(process: &impl Process, address: u64) -> Option<u32> {
        process.fetch(address, SHARED_BYTES).then_some(())?;
        Some(check_and_script(process)?.0)
    }

    /// The reference to the function's name.
    #[inline(always)]
    fn name(&self, process: &impl Process) -> Option<u64> {
        if is_string(process, self.name) {
            Some(self.name)
        } else {
            Scope::read(process, self.name)?.name(process)
        }
    }

    /// A frame that is at this place in the function.
    #[inline(always)]
    pub(super) const fn frame(&self, position: u32) -> ChainFrame {
        ChainFrame {
            function: self.address,
            check: self.check,
            position,
            flags: ChainFrame::FRAME,
        }
    }
}

/// The check and the script of what was fetched, if it is of a script.
#[inline(always)]
fn check_and_script(process: &impl Process) -> Option<(u32, u64)> {
    let field = |offset: u64| process.fetched_at(offset);
    let script = field(Offsets::script(process));
    let literal = field(Offsets::literal(process)) as u32;
    let unique = Offsets::unique(process);
    let mut number = field(unique) as u32;
    if literal == NO_LITERAL || !is_object(script) {
        return None;
    }
    if unique == 0 {
        // Literals are numbered in their script, and scripts in the isolate.
        let [id] = process.read(address_of(script).wrapping_add(SCRIPT_ID))?;
        number = integer(id)? as u32;
    }
    let check = number.wrapping_mul(SPREAD).wrapping_add(literal);
    Some((check, address_of(script)))
}

impl FunctionInfo for V8 {
    const FRAMES_ARE_NATIVE: bool = true;

    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        Some(Shared::read(process, function)?.check)
    }

    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        if function < KINDS_OF_FRAMES {
            return Some(Strings::default());
        }
        Shared::read(process, function)?.strings(process)
    }

    #[inline(always)]
    fn strings_in_frame(process: &impl Process, function: u64, own_frame: u64) -> Option<Strings> {
        if function & COMPILED == 0 {
            return Self::strings(process, function);
        }
        let [function] = process.read(own_frame)?;
        let shared = shared_of_function(process, function)?;
        Self::strings(process, shared)
    }
}

impl Shared {
    /// Functions without a name have none here. `extra`: the address of the `SharedFunctionInfo`, and [`NAME_GOES_ON`].
    #[inline(always)]
    fn strings(&self, process: &impl Process) -> Option<Strings> {
        let (name, is_whole) = self
            .name(process)
            .and_then(|name| piece(process, name))
            .unwrap_or((RemoteString::default(), true));
        let [file] = process.read(self.script.wrapping_add(SCRIPT_NAME))?;
        let (file, _) = piece(process, file).unwrap_or_default();
        let more = if is_whole { 0 } else { NAME_GOES_ON };
        Some(Strings {
            owner: RemoteString::default(),
            name,
            file,
            first_line: 0,
            extra: self.address | more,
        })
    }
}

/// A bit in [`Strings::extra`], beside an address: the name is the first of two strings.
pub const NAME_GOES_ON: u64 = 1;

/// The reference to the name of the function whose `SharedFunctionInfo` is at an address.
pub fn name_of(process: &impl Process, shared: u64) -> Option<u64> {
    Shared::read(process, shared)?.name(process)
}

/// The address of the `Script` of such a function.
pub fn script_of(process: &impl Process, shared: u64) -> Option<u64> {
    Some(Shared::read(process, shared)?.script)
}

/// Where such a function begins in its script, in characters.
pub fn start_of(process: &impl Process, shared: u64) -> Option<u32> {
    let shared = Shared::read(process, shared)?;
    Scope::read(process, shared.name)?.start(process)
}
