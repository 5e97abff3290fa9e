//! Scopes of functions: their names and where they begin (`scope-info.tq`).

use super::{
    layout::{MANY_LOCALS, Offsets, Types, address_of, integer, is_object, type_of_map},
    string::{is_string, piece},
};
use crate::runtime::Process;

/// Bits of a scope's flags: that a word is left free in front of the name; that there is the name that the function has in
/// itself; and that there is one that the parser gave it (`ScopeFlags`).
const HAS_CLASS_VARIABLE: u64 = 1 << 10;
/// See [`HAS_CLASS_VARIABLE`].
const HAS_NAME: u64 = 3 << 12;
/// See [`HAS_CLASS_VARIABLE`].
const HAS_INFERRED_NAME: u64 = 1 << 14;

/// The first version that has the place in the script in front of names, not behind them.
const PLACE_IN_FRONT: u64 = 13 << 16;
/// Where it is there.
const PLACE: u64 = 32;

/// The scope of a function: a `ScopeInfo`.
pub(super) struct Scope {
    address: u64,
    /// Where the names are.
    names: u64,
    flags: u64,
}

impl Scope {
    /// That which a word refers to.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, word: u64) -> Option<Self> {
        if !is_object(word) {
            return None;
        }
        let address = address_of(word);
        let [map, flags, _, locals] = process.read::<4>(address)?;
        if type_of_map(process, map)? != Types::scope(process) {
            return None;
        }
        // A small integer in earlier versions.
        let flags = integer(flags).unwrap_or(flags);
        let locals = integer(locals)?;
        let names = if locals < MANY_LOCALS { locals } else { 1 };
        // Behind the names of local variables is a word on each.
        let words = Offsets::first_local(process)
            .wrapping_add(names)
            .wrapping_add(locals)
            .wrapping_add(u64::from(flags & HAS_CLASS_VARIABLE != 0));
        Some(Self {
            address,
            names: address.wrapping_add(words.wrapping_mul(8)),
            flags,
        })
    }

    /// The reference to the name.
    #[inline(always)]
    pub(super) fn name(&self, process: &impl Process) -> Option<u64> {
        if self.flags & HAS_NAME != 0 {
            let [name] = process.read(self.names)?;
            // Zero where the function has no name in itself.
            if is_string(process, name) && piece(process, name)?.0.bytes != 0 {
                return Some(name);
            }
        }
        if self.flags & HAS_INFERRED_NAME == 0 {
            return None;
        }
        let [name] = process.read(self.behind_name())?;
        Some(name)
    }

    /// Behind the name and the word on it, if there is one.
    #[inline(always)]
    fn behind_name(&self) -> u64 {
        let words = if self.flags & HAS_NAME != 0 { 2 } else { 0 };
        self.names.wrapping_add(8 * words)
    }

    /// Where the function begins in its script, in characters.
    pub(super) fn start(&self, process: &impl Process) -> Option<u32> {
        let inferred = u64::from(self.flags & HAS_INFERRED_NAME != 0);
        let place = if process.descriptor(0) >> 8 >= PLACE_IN_FRONT {
            self.address.wrapping_add(PLACE)
        } else {
            self.behind_name().wrapping_add(8 * inferred)
        };
        let [word] = process.read(place)?;
        Some(integer(word)? as u32)
    }
}
