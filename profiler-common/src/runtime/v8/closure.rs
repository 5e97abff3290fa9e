//! Closures: from a `JSFunction` to what it has in common with the others of its function literal.

use super::layout::{
    FUNCTION_BYTES, FUNCTION_MAPS, Offsets, Types, address_of, is_object, is_of_types,
};
use crate::runtime::Process;

/// The `SharedFunctionInfo` of a `JSFunction`.
#[inline(always)]
pub(super) fn shared_of_function(process: &impl Process, function: u64) -> Option<u64> {
    if !is_object(function) || !process.fetch(address_of(function), FUNCTION_BYTES) {
        return None;
    }
    let shared = process.fetched_at(Offsets::shared(process));
    let functions = (
        Types::first_function(process),
        Types::last_function(process),
    );
    let is_function = is_of_types(process, process.fetched(0), functions, FUNCTION_MAPS);
    (is_function && is_object(shared)).then_some(address_of(shared))
}

/// As [`shared_of_function`], of what is taken for a `JSFunction` because one stood there before. What comes of it is to be compared.
#[inline(always)]
pub(super) fn known_shared(process: &impl Process, function: u64) -> Option<u64> {
    let [shared] = process.read(address_of(function).wrapping_add(Offsets::shared(process)))?;
    is_object(shared).then_some(address_of(shared))
}
