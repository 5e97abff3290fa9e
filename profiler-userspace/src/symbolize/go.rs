//! Names, inlined functions and lines of Go programs.
//!
//! In: a program's own table, and addresses. Out: what symbol tables and DWARF would have said.

use super::demangle::visible;
use super::dwarf::{Level, SourceLine};
use super::symbol_table::SymbolLookup;
use crate::code::GoFunctions;
use crate::object::ElfAddress;
use std::collections::HashMap;
use std::sync::Arc;

/// The function of each address.
pub(super) fn names(go: &GoFunctions<'_>, addresses: &[ElfAddress]) -> SymbolLookup {
    let mut found = SymbolLookup::default();
    for address in addresses {
        let name = go.name(address.0);
        found.of.push(name.map(|name| {
            // Addresses ascend: those in one function follow each other.
            if found.names.last() != Some(&name) {
                found.names.push(name);
            }
            found.names.len() - 1
        }));
    }
    found
}

/// Calls `take` for each address, by its number, with the functions there, the outermost first.
pub(super) fn details(
    go: &GoFunctions<'_>,
    addresses: impl Iterator<Item = ElfAddress>,
    mut take: impl FnMut(usize, Vec<Level>),
) {
    let mut files: HashMap<Vec<u8>, Arc<str>> = HashMap::new();
    for (number, address) in addresses.enumerate() {
        let levels = go.levels(address.0).into_iter().map(|level| Level {
            name: Some(level.name),
            line: level.source.map(|(path, line)| SourceLine {
                file: match files.get(&path) {
                    Some(file) => Arc::clone(file),
                    None => {
                        let file: Arc<str> = visible(&path).into();
                        files.insert(path, Arc::clone(&file));
                        file
                    }
                },
                line,
            }),
        });
        take(number, levels.collect());
    }
}
