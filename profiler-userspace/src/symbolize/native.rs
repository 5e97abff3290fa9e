//! Names for code of one object.
//!
//! In: an open object and offsets into it. Out: for each offset a name, or the address that a
//! disassembler would show for it. Sources in order, each asked for what the former left: the object's
//! own symbol table; if it was stripped, that of its debug file; the symbols for other objects; and
//! DWARF, if there was no symbol table at all.
//!
//! Symbols come first because they are there for the whole of an object and cost milliseconds; reading
//! DWARF can cost seconds and hundreds of megabytes. Next to a symbol table it has nothing to add: what
//! no symbol covers is a linker's stub or padding.

use super::debug_file;
use super::demangle::demangle;
use super::symbol_table::{self, Found};
use crate::object::{BuildId, Elf, ElfAddress, FileOffset};
use crate::process::Opened;
use blazesym::symbolize::source::{self, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

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
pub(super) fn name(opened: &Opened, path: &Path, offsets: &[FileOffset]) -> Named {
    // The object may be anything, also one made to break whoever reads it. It shall not take the
    // recording with it.
    catch_unwind(AssertUnwindSafe(|| read(opened, path, offsets)))
        .unwrap_or_else(|_| Named::nothing(offsets.len()))
}

fn read(opened: &Opened, path: &Path, offsets: &[FileOffset]) -> Named {
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
    let stripped = elf.symbols.is_none();
    let debug = stripped
        .then(|| debug_file::find(&roots(opened), path, &elf))
        .flatten();
    let own = elf.symbols.as_ref().map(|table| (file, &elf, table));
    let separate = debug.as_ref().and_then(|debug| {
        let table = debug.elf.symbols.as_ref()?;
        Some((&debug.file, &debug.elf, table))
    });
    let dynamic = elf
        .dynamic_symbols
        .as_ref()
        .map(|table| (file, &elf, table));
    for (file, elf, table) in [own, separate, dynamic].into_iter().flatten() {
        named.take(&mut unnamed, |addresses| {
            symbol_table::look_up(file, elf, table, addresses)
        });
    }
    let only_dwarf = stripped && debug.is_none() && elf.has_dwarf;
    if only_dwarf {
        named.take(&mut unnamed, |addresses| dwarf(file, addresses));
    }
    named.is_object = true;
    named.has_symbols = !stripped || debug.is_some() || only_dwarf;
    named.build_id = elf.build_id;
    named
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

/// The functions that DWARF tells of.
fn dwarf(file: &File, addresses: &[ElfAddress]) -> Found {
    let symbolizer = Symbolizer::builder()
        .enable_code_info(false)
        .enable_inlined_fns(false)
        .enable_demangling(false)
        .enable_auto_reload(false)
        .build();
    // By descriptor, so that it reads the file that was opened and not what its path leads to.
    let elf = source::Elf::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let numbers: Vec<u64> = addresses.iter().map(|address| address.0).collect();
    let mut found = Found {
        names: Vec::new(),
        of: vec![None; addresses.len()],
    };
    if let Ok(symbols) = symbolizer.symbolize(&Source::Elf(elf), Input::VirtOffset(&numbers)) {
        for (of, symbol) in found.of.iter_mut().zip(symbols) {
            if let Symbolized::Sym(symbol) = symbol
                && !symbol.name.is_empty()
            {
                *of = Some(found.names.len());
                found.names.push(symbol.name.as_bytes().to_vec());
            }
        }
    }
    found
}
