//! Functions of Go programs, from the table that their own runtime makes stack traces from (`.gopclntab`). It is in
//! every Go program, also where symbols and debug information are removed.
//!
//! In: an open ELF file. Out: the functions at an address, inlined ones too, with file and line. The formats are those of Go
//! 1.16, 1.18 and 1.20, told apart by their magic numbers; see Go's `runtime/symtab.go`, `internal/abi/symtab.go` and
//! `cmd/link/internal/ld/pcln.go`. A file may be hostile: every table is read within its bounds, and all
//! lookups together take a bounded number of steps.

mod frames;
mod module;
mod table;

pub(crate) use frames::Frames;

use crate::object::{Image, Part};
use module::Module;
use table::Table;

/// One function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// Its name: package, type and function.
    pub(crate) name: Vec<u8>,
    /// Its file and the line there, from 1: where the address is, or where it calls the next.
    pub(crate) source: Option<(Vec<u8>, u32)>,
}

/// The most levels at one address: compilers nest a tenth of these.
const MAX_LEVELS: usize = 256;

/// Which of a function's tables says what is inlined where (`PCDATA_InlTreeIndex`).
const INLINED_INDEX: u32 = 2;

/// Which of a function's data are its inlined functions (`FUNCDATA_InlTree`).
const INLINED_TREE: u32 = 3;

/// A Go program's functions.
pub(crate) struct GoFunctions<'f> {
    image: &'f Image<'f>,
    table: Table<'f>,
    module: Module,
}

/// A function of which one address is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Function {
    /// Where it begins.
    entry: u64,
    /// Where its record is in the table.
    record: u64,
}

impl<'f> GoFunctions<'f> {
    /// Those of an object; none if it is not Go's.
    pub(crate) fn find(image: &'f Image<'f>) -> Option<Self> {
        let names: [&[u8]; 2] = [b".gopclntab", b".data.rel.ro.gopclntab"];
        let table = match names.iter().find_map(|name| image.section(name)) {
            Some(section) => Table::read(image.file, section.into())?,
            // A linker of C makes one section of several.
            None => {
                image.section(b".go.buildinfo")?;
                let section = image.section(b".data.rel.ro")?;
                Table::search(image.file, Part::from(section))?
            }
        };
        let module = Module::find(image, &table)?;
        Some(Self {
            image,
            table,
            module,
        })
    }

    /// The name of the function that has code at an address.
    pub(crate) fn name(&self, address: u64) -> Option<Vec<u8>> {
        let function = self.at(address)?;
        self.table.function_name(function.record)
    }

    /// The functions at an address, the outermost first; none where Go has no code.
    pub(crate) fn levels(&self, address: u64) -> Vec<Level> {
        self.read_levels(address).unwrap_or_default()
    }

    fn at(&self, address: u64) -> Option<Function> {
        self.image.code_at(address)?;
        self.table.function(address, self.module.text)
    }

    fn read_levels(&self, address: u64) -> Option<Vec<Level>> {
        let function = self.at(address)?;
        let mut levels = Vec::new();
        let mut at = address.checked_sub(function.entry)?;
        let tree = self.tree(function);
        while levels.len() < MAX_LEVELS {
            let source = self.source(function, at);
            let inlined = tree.and_then(|tree| {
                let values = self.table.inlined_values(function.record, INLINED_INDEX)?;
                let index = u32::try_from(self.table.value(values, at)?).ok()?;
                self.inlined(tree, index)
            });
            let Some((name, parent)) = inlined else {
                let name = self.table.function_name(function.record)?;
                levels.push(Level { name, source });
                break;
            };
            levels.push(Level { name, source });
            at = parent;
        }
        levels.reverse();
        Some(levels)
    }

    /// Where a function's inlined functions are listed, as an address.
    fn tree(&self, function: Function) -> Option<u64> {
        let offset = self.table.data(function.record, INLINED_TREE)?;
        self.module.data?.checked_add(offset.into())
    }

    /// The name of an inlined function, and the offset in the outermost function of what stands for its call.
    fn inlined(&self, tree: u64, index: u32) -> Option<(Vec<u8>, u64)> {
        let layout = self.table.inlined_layout()?;
        let at = tree.checked_add(u64::from(index).checked_mul(layout.bytes)?)?;
        let wanted = usize::try_from(layout.bytes).ok()?;
        let call = self.image.bytes(at, wanted);
        let word = |at: usize| Some(u32::from_le_bytes(*call.get(at..)?.first_chunk()?));
        let name = self.table.name(word(layout.name)?)?;
        Some((name, word(layout.parent)?.into()))
    }

    fn source(&self, function: Function, at: u64) -> Option<(Vec<u8>, u32)> {
        let (files, lines) = self.table.line_values(function.record)?;
        let line = u32::try_from(self.table.value(lines, at)?).ok()?;
        let file = u32::try_from(self.table.value(files, at)?).ok()?;
        let file = self.table.file(function.record, file)?;
        (line > 0).then_some((file, line))
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
