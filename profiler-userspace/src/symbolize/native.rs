//! Names for code of one object.
//!
//! In: an open object and offsets into it. Out: for each offset a name, or the address that a
//! disassembler would show for it. Sources in order, each asked for what the former left: the object's
//! own symbol table; if it was stripped, that of its debug file, or the minimal one that it carries
//! packed in itself; the symbols for other objects; and DWARF, if there was no symbol table at all.
//!
//! Symbols come first because they are there for the whole of an object and cost milliseconds; reading
//! DWARF can cost seconds and hundreds of megabytes. Next to a symbol table it has nothing to add: what
//! no symbol covers is a linker's stub or padding.

use super::demangle::demangle;
use super::dwarf;
use super::symbol_table::{self, Found};
use crate::object::{BuildId, DebugFile, Elf, ElfAddress, Fetch, FileOffset, RegularFile, Search};
use crate::process::Opened;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Where names may come from, beside the objects themselves.
#[derive(Clone, Copy, Default)]
pub(super) struct Sources<'a> {
    /// Directories of debug files.
    pub(super) directories: &'a [PathBuf],
    /// Whom to ask for those that are not here.
    pub(super) fetch: Option<&'a Fetch<'a>>,
}

/// What is known of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// An index into the names.
    Named(usize),
    /// No name, but where it lies in the object.
    At(ElfAddress),
    /// Nothing: the file is no object, or does not load that part of itself.
    Unknown,
}

/// What is known of some offsets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// Names for readers.
    pub(super) names: Vec<String>,
    /// For each offset what is known.
    pub(super) of: Vec<Symbol>,
    /// Whether it is an object at all.
    pub(super) is_object: bool,
    /// Whether there was a source that names all of its functions.
    pub(super) has_symbols: bool,
    /// Which build of the object it is.
    pub(super) build_id: Option<BuildId>,
}

/// Names the `offsets` into the object that was mapped under `path`.
pub(super) fn name(
    opened: &Opened,
    path: &Path,
    offsets: &[FileOffset],
    sources: Sources<'_>,
) -> Named {
    // The object may be anything, also one made to break whoever reads it. It shall not take the
    // recording with it.
    catch_unwind(AssertUnwindSafe(|| read(opened, path, offsets, sources)))
        .unwrap_or_else(|_| Named::nothing(offsets.len()))
}

fn read(opened: &Opened, path: &Path, offsets: &[FileOffset], sources: Sources<'_>) -> Named {
    let mut named = Named::nothing(offsets.len());
    let file = &opened.file.file;
    let Some(elf) = Elf::read(file) else {
        return named;
    };
    let mut unnamed = Vec::with_capacity(offsets.len());
    for (at, offset) in offsets.iter().enumerate() {
        if let Some(address) = elf.segments.address(*offset) {
            named.of[at] = Symbol::At(address);
            unnamed.push((address, at));
        }
    }
    unnamed.sort_unstable();
    let roots = roots(opened);
    let search = Search {
        directories: sources.directories,
        roots: &roots,
        fetch: sources.fetch,
    };
    let stripped = elf.symbols.is_none();
    let debug = stripped
        .then(|| search.find(path, &elf, |found| found.symbols.is_some()))
        .flatten();
    let minimal = (stripped && debug.is_none())
        .then(|| minimal(file, &elf))
        .flatten();
    let tables = [
        elf.symbols.as_ref().map(|table| (file, &elf, table)),
        debug.as_ref().and_then(symbols),
        minimal.as_ref().and_then(symbols),
        elf.dynamic_symbols
            .as_ref()
            .map(|table| (file, &elf, table)),
    ];
    for (file, elf, table) in tables.into_iter().flatten() {
        named.take(&mut unnamed, |addresses| {
            symbol_table::look_up(file, elf, table, addresses)
        });
    }
    let only_dwarf = stripped && debug.is_none() && minimal.is_none() && elf.debug.has_dwarf();
    if only_dwarf {
        let own = DebugFile::of(file, &elf);
        let shared = own.as_ref().and_then(|own| search.find_shared(own));
        named.take(&mut unnamed, |addresses| {
            functions(file, &elf, shared.as_ref(), addresses)
        });
    }
    named.is_object = true;
    named.has_symbols = !stripped || debug.is_some() || minimal.is_some() || only_dwarf;
    named.build_id = elf.build_id;
    named
}

fn symbols(debug: &DebugFile) -> Option<(&File, &Elf, &crate::object::SymbolTable)> {
    let table = debug.elf.symbols.as_ref()?;
    Some((&debug.file, &debug.elf, table))
}

/// The object that a stripped one carries in itself, packed: the symbols of those of its functions that
/// are not for other objects.
fn minimal(file: &File, elf: &Elf) -> Option<DebugFile> {
    let bytes = elf.debug.minimal_object(file)?;
    let memory = RegularFile::in_memory("minimal debug information", &bytes).ok()?;
    drop(bytes);
    let found = DebugFile::of(&memory.file, &Elf::read(&memory.file)?)?;
    found.elf.symbols.is_some().then_some(found)
}

impl Named {
    /// Nothing is known of any offset.
    pub(super) fn nothing(offsets: usize) -> Self {
        Self {
            of: vec![Symbol::Unknown; offsets],
            ..Self::default()
        }
    }

    /// Asks one source for what has no name yet, and keeps its answers.
    fn take(
        &mut self,
        unnamed: &mut Vec<(ElfAddress, usize)>,
        ask: impl FnOnce(&[ElfAddress]) -> Found,
    ) {
        if unnamed.is_empty() {
            return;
        }
        let addresses: Vec<ElfAddress> = unnamed.iter().map(|(address, _)| *address).collect();
        let found = ask(&addresses);
        let first = self.names.len();
        self.names
            .extend(found.names.iter().map(|name| demangle(name)));
        let mut answers = found.of.into_iter();
        unnamed.retain(|(_, at)| match answers.next().flatten() {
            Some(index) => {
                self.of[*at] = Symbol::Named(first + index);
                false
            }
            None => true,
        });
    }
}

/// The root directories to look for debug files under: ours, and where the object was found. What is
/// found under either must prove itself.
fn roots(opened: &Opened) -> Vec<&Path> {
    let ours = Path::new("/");
    if opened.root == ours {
        vec![ours]
    } else {
        vec![ours, &opened.root]
    }
}

/// The functions that DWARF tells of, without those that were compiled into them.
fn functions(
    file: &File,
    elf: &Elf,
    shared: Option<&DebugFile>,
    addresses: &[ElfAddress],
) -> Found {
    let mut found = Found {
        names: Vec::new(),
        of: vec![None; addresses.len()],
    };
    let levels = dwarf::look_up(file, elf, shared, addresses);
    for (of, levels) in found.of.iter_mut().zip(levels) {
        let outermost = levels.into_iter().next();
        if let Some(name) = outermost.and_then(|level| level.name) {
            if found.names.last() != Some(&name) {
                found.names.push(name);
            }
            *of = Some(found.names.len() - 1);
        }
    }
    found
}
