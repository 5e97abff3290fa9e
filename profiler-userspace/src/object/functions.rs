//! Finds functions and variables by name.
//!
//! In: an open file and its tables. Out: each function in its symbol tables, or variables that have names of some kind. Never trusts
//! the size a table claims: reading stops at a limit.

use super::{Elf, ElfAddress, Layout, SymbolTable};
use foldhash::HashMap;
use object::Endianness;
use object::elf::{SHN_UNDEF, STT_FUNC, STT_GNU_IFUNC, STT_OBJECT, Sym32, Sym64};
use object::pod::slice_from_all_bytes;
use object::read::elf::Sym;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// How much of a symbol table is read at most, in bytes: ten million symbols.
const MAX_TABLE_BYTES: u64 = 256 << 20;

/// How much of a string table is read at most, in bytes. The largest browser's has 50 MB.
const MAX_NAMES_BYTES: u64 = 128 << 20;

/// One function, or variable, in a symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name before demangling.
    pub name: &'a [u8],
    /// Its address; none if the file imports it.
    pub address: Option<ElfAddress>,
    /// Its size in bytes; zero if unknown.
    pub size: u64,
    /// Whether it is an IFUNC: called once, to choose the implementation.
    pub chooses: bool,
}

impl Elf {
    /// Calls `visit` for each function in the file's symbol tables. Exported functions are in both tables
    /// and come twice.
    pub fn each_function(&self, file: &File, mut visit: impl FnMut(Function<'_>)) {
        for table in [&self.symbols, &self.dynamic_symbols].into_iter().flatten() {
            let kinds = &[STT_FUNC, STT_GNU_IFUNC];
            self.each_of(kinds, file, table, &mut visit);
        }
    }

    /// The addresses of variables, which the file need not export, by their names, as far as these begin like one of `prefixes`. Takes
    /// long: a program may have millions of symbols.
    pub fn hidden_variables(&self, file: &File, prefixes: &[&str]) -> HashMap<String, ElfAddress> {
        let mut found = HashMap::default();
        if let Some(table) = &self.symbols {
            self.each_of(&[STT_OBJECT], file, table, &mut |variable| {
                let mut prefixes = prefixes.iter();
                if prefixes.any(|prefix| variable.name.starts_with(prefix.as_bytes()))
                    && let (Ok(name), Some(address)) =
                        (str::from_utf8(variable.name), variable.address)
                {
                    found.insert(name.to_owned(), address);
                }
            });
        }
        found
    }

    /// Calls `visit` for each symbol of a table that is of one of these kinds (`STT_…`).
    fn each_of(
        &self,
        kinds: &[u8],
        file: &File,
        table: &SymbolTable,
        visit: &mut impl FnMut(Function<'_>),
    ) {
        let names = read(file, &table.names, MAX_NAMES_BYTES);
        let symbols = read(file, &table.symbols, MAX_TABLE_BYTES);
        if self.layout.wide {
            each::<Sym64<Endianness>>(&symbols, &names, self.layout, kinds, visit);
        } else {
            each::<Sym32<Endianness>>(&symbols, &names, self.layout, kinds, visit);
        }
    }

    /// Whether the file has any symbol table.
    pub fn names_functions(&self) -> bool {
        let has = |table: &Option<SymbolTable>| table.is_some();
        has(&self.symbols) || has(&self.dynamic_symbols)
    }
}

fn each<S: Sym<Endian = Endianness>>(
    symbols: &[u8],
    names: &[u8],
    layout: Layout,
    kinds: &[u8],
    visit: &mut impl FnMut(Function<'_>),
) {
    let whole = symbols.len() - symbols.len() % size_of::<S>();
    let symbols: &[S] = slice_from_all_bytes(&symbols[..whole]).unwrap_or_default();
    for symbol in symbols {
        let endian = layout.endian;
        let kind = symbol.st_type();
        if !kinds.contains(&kind) {
            continue;
        }
        let Some(name) = usize::try_from(symbol.st_name(endian))
            .ok()
            .and_then(|start| names.get(start..))
            .and_then(|rest| rest.split(|&byte| byte == 0).next())
            .filter(|name| !name.is_empty())
        else {
            continue;
        };
        visit(Function {
            name,
            address: (symbol.st_shndx(endian) != SHN_UNDEF)
                .then(|| ElfAddress(symbol.st_value(endian).into())),
            size: symbol.st_size(endian).into(),
            chooses: kind == STT_GNU_IFUNC,
        });
    }
}

/// The bytes of a range of the file, at most `most`, fewer if the file ends.
fn read(file: &File, part: &Range<u64>, most: u64) -> Vec<u8> {
    // Memory grows as it is filled: the claimed size may be a lie.
    const STEP_BYTES: usize = 1 << 20;
    let wanted = part.end.saturating_sub(part.start).min(most);
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    while bytes.len() < wanted {
        let filled = bytes.len();
        bytes.resize(wanted.min(filled + STEP_BYTES), 0);
        let at = part.start.saturating_add(filled as u64);
        match file.read_at(&mut bytes[filled..], at) {
            Ok(0) => {
                bytes.truncate(filled);
                break;
            }
            Ok(count) => bytes.truncate(filled + count),
            Err(error) if error.kind() == ErrorKind::Interrupted => bytes.truncate(filled),
            Err(_) => {
                bytes.truncate(filled);
                break;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn functions_of_this_program_are_found_at_their_addresses() {
        let file = File::open("/proc/self/exe").unwrap();
        let elf = Elf::read(&file).unwrap();
        let mut main = None;
        let mut calls_malloc = false;
        elf.each_function(&file, |function| match function.name {
            b"main" => main = main.or(function.address),
            b"malloc" => calls_malloc |= function.address.is_none(),
            _ => {}
        });
        let main = main.expect("a program has a main");
        assert!(elf.segments.offset(main).is_some());
        assert!(calls_malloc && elf.names_functions());
    }

    #[test]
    fn variables_that_are_not_exported_are_found_by_how_their_names_begin() {
        let file = File::open("/proc/self/exe").unwrap();
        let elf = Elf::read(&file).unwrap();
        // Every program has it, for destructors (`crtstuff.c` of GCC), and none exports it.
        let found = elf.hidden_variables(&file, &["__dso_hand", "no name"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(elf.segments.offset(found["__dso_handle"]).is_some());
        assert!(elf.hidden_variables(&file, &["__dso_handle_"]).is_empty());
    }

    #[test]
    fn an_oversized_symbol_table_is_read_to_the_files_end() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"\0one\0two").unwrap();
        assert_eq!(read(&file, &(1..u64::MAX), 1 << 40), b"one\0two");
        assert_eq!(read(&file, &(1..u64::MAX), 2), b"on");
        assert_eq!(read(&file, &Range { start: 9, end: 1 }, 9), b"");
        let mut seen = 0;
        let layout = Layout {
            wide: true,
            endian: Endianness::Little,
        };
        each::<Sym64<Endianness>>(&[0xff; 50], b"x", layout, &[15], &mut |_| seen += 1);
        assert_eq!(seen, 0);
    }
}
