//! Code that no source of names knows.
//!
//! In: places of it in an object. Out: the function that each lies in.

use super::symbol_cache::CachedFile;
use crate::code::{self, Function};
use crate::object::{Elf, ElfAddress};
use std::fs::File;

/// Calls `take` with the number of each place whose function is found. Places may be in any order. `cached`: what was read of the file
/// before.
pub(super) fn place(
    file: &File,
    elf: &Elf,
    cached: Option<&CachedFile>,
    mut places: Vec<(ElfAddress, usize)>,
    mut take: impl FnMut(usize, Function),
) {
    if places.is_empty() {
        return;
    }
    places.sort_unstable();
    let addresses: Vec<ElfAddress> = places.iter().map(|(address, _)| *address).collect();
    let beginnings = cached.map(|cached| &cached.beginnings);
    let functions = code::functions(file, elf, &addresses, beginnings);
    for ((_, at), function) in places.into_iter().zip(functions) {
        if let Some(function) = function {
            take(at, function);
        }
    }
}
