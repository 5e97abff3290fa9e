//! Machine code that no symbol names: where its functions begin, and what the file says of them besides.
//!
//! In: an open ELF file, and addresses in its code. Out: for each the [`Function`] that it lies in. Reads what
//! other tables than those of symbols give away: unwind descriptions, linkage tables, the entry point, arrays of functions,
//! dynamic symbols, and, where these leave a gap, the bytes before the address. Files may be hostile: every read has
//! a bound, and what contradicts itself is nothing known.

mod around;
mod context;
mod descriptions;
mod go;
mod kept;
mod linkage;
mod listed;
pub(crate) mod listing;
mod padding;
mod relocations;
mod start;
mod undescribed;
mod x86_64;

pub(crate) use around::{EndOfStacks, Functions};
#[cfg(test)]
pub(crate) use go::testing;
pub(crate) use go::{Frames, GoFunctions};
pub(crate) use undescribed::{Undescribed, WithoutTable};

use crate::object::{Elf, ElfAddress, Image};
use descriptions::Descriptions;
use std::fs::File;
use std::ops::Range;
use std::sync::OnceLock;
use x86_64 as arch;

/// Name or beginning of the function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// The name that all programs have for it: `main`, `_start`, `__start_context`.
    Named(String),
    /// A stub of the linkage table: the linker's name of the function that it leads to.
    Stub(String),
    /// Where it begins.
    Begins(ElfAddress),
}

/// Where the stacks of coroutines begin, if this file is a C library that makes some: `__start_context`. What was started returns
/// to its first byte, so its callees are looked up one byte before.
pub(crate) fn start_context(image: &Image<'_>) -> Option<u64> {
    context::start_context(image)
}

/// Where functions begin that a file lists for whatever reason, ascending.
#[derive(Debug, Default)]
pub(crate) struct Beginnings(Vec<u64>);

/// The functions that `addresses`, which ascend, lie in; none for what is no code, or no known file. `cached`: what is kept of the file from
/// one call to the next.
pub(crate) fn functions(
    file: &File,
    elf: &Elf,
    addresses: &[ElfAddress],
    cached: Option<&OnceLock<Beginnings>>,
) -> Vec<Option<Function>> {
    let Ok(image) = Image::read(file) else {
        return vec![None; addresses.len()];
    };
    let stubs = linkage::stubs(&image, elf, addresses);
    let mut described = Descriptions::of(&image);
    let start = start::Start::find(&image).with_context(&image);
    let mut has_gaps = false;
    let placed: Vec<Option<Placed>> = addresses
        .iter()
        .zip(stubs)
        .map(|(&ElfAddress(address), stub)| {
            if let Some(stub) = stub {
                return Some(Placed::Known(stub));
            }
            if let Some(function) = start.returned_to(address) {
                return Some(Placed::Known(function));
            }
            let code = image.code_at(address)?;
            let around = match described.around(address) {
                Ok(begin) => return Some(Placed::Known(start.function(begin))),
                Err(gap) => gap.start.max(code.start)..gap.end.min(code.end),
            };
            has_gaps = true;
            Some(Placed::Between(around))
        })
        .collect();
    let (once, none) = (OnceLock::new(), Beginnings::default());
    let Beginnings(begins) = match has_gaps {
        true => { cached.unwrap_or(&once) }.get_or_init(|| Beginnings::of(&image, elf, &start)),
        false => &none,
    };
    placed
        .into_iter()
        .zip(addresses)
        .map(|(placed, address)| match placed? {
            Placed::Known(function) => Some(function),
            Placed::Between(gap) => {
                let behind = begins.partition_point(|begin| *begin <= address.0);
                let listed = begins[..behind].last().copied();
                let listed = listed.filter(|begin| gap.contains(begin));
                let by_bytes = around::begin(&image, address.0, &gap);
                let begin = listed.max(by_bytes);
                Some(start.function(begin.unwrap_or_else(|| padding::skip(&image, gap.start))))
            }
        })
        .collect()
}

/// Place of an address before gaps are searched.
enum Placed {
    Known(Function),
    /// In code between descriptions.
    Between(Range<u64>),
}

impl Beginnings {
    fn of(image: &Image<'_>, elf: &Elf, start: &start::Start) -> Self {
        let mut found: Vec<u64> = start.addresses().collect();
        found.extend(listed::listed(image));
        let dynamic = Elf {
            symbols: None,
            ..elf.clone()
        };
        dynamic.each_function(image.file, |function| {
            found.extend(function.address.map(|at| at.0));
        });
        found.sort_unstable();
        found.dedup();
        found.shrink_to_fit();
        Self(found)
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

#[cfg(test)]
mod tests;
