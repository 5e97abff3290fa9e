//! Names from an object's symbol table.
//!
//! In: an open file, where its table lies, and the addresses asked for. Out: a symbol for each. The
//! table goes by once, in blocks: nothing is sorted but the few addresses, and no part of the file
//! stays in memory. For the hundred thousand symbols of a large program that takes a fifth of the time
//! of an index over them all, and none of the memory.
//! Never believes what the table says of its size.

use crate::object::{Elf, ElfAddress, Layout, SymbolTable};
use object::Endianness;
use object::elf::{
    SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym32, Sym64,
};
use object::pod::slice_from_all_bytes;
use object::read::elf::Sym;
use rustix::fs::Advice;
use std::fs::File;
use std::io::ErrorKind;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

mod index;

use index::Index;

/// How much of a table is read at a time, in bytes: whole symbols of either width.
const BLOCK_BYTES: usize = 24 * 16 * 256;

/// The most of a table that is read, in bytes: ten million symbols.
const MAX_TABLE_BYTES: u64 = 256 << 20;

/// The most addresses that all symbols of a table may claim together. Honest symbols hardly overlap,
/// so this is a hundred times what they claim.
const MAX_CLAIMS: u64 = 1 << 24;

/// Other names of one address that are looked at.
const MAX_ALIASES: usize = 6;

/// The longest name that is read, in bytes.
const MAX_NAME_BYTES: usize = 16 << 10;

/// What is read of a name at first, in bytes; nearly every one fits.
const FIRST_BYTES: usize = 256;

/// What is read ahead around a name, in bytes.
const PAGE_BYTES: u64 = 4096;

/// So much may all names take, in bytes, before their beginnings have to do. A hundred thousand functions of
/// C++ take half of it.
const MAX_NAMES_BYTES: usize = 16 << 20;

/// Symbols that start at one address.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    /// Where they start.
    start: u64,
    /// Where their names start, in the table of names.
    names: [u32; MAX_ALIASES],
    /// How many they are.
    aliases: usize,
}

/// What is known so far of one address.
#[derive(Clone, Copy, Debug, Default)]
struct Nearest {
    /// The innermost symbols that cover it.
    covering: Option<Candidate>,
    /// The nearest symbols that start in front of it, or at it.
    before: Option<Candidate>,
    /// The section of those, if none of them has a size: what lies behind them may still be theirs.
    unsized_in: Option<u16>,
}

/// A symbol that names code.
struct Function {
    start: u64,
    size: u64,
    name: u32,
    section: u16,
}

/// The symbols of some addresses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Each symbol's name, as the linker knows it.
    pub names: Vec<Vec<u8>>,
    /// For each address the index of its symbol, if it lies in one.
    pub of: Vec<Option<usize>>,
}

/// Finds the symbol that each of `addresses`, ascending, lies in: the innermost of those that cover it;
/// else the nearest in front of it in the same section, if its size is unknown, as assembly leaves it.
/// No symbol of known size is stretched over the gap behind it.
pub(super) fn look_up(
    file: &File,
    elf: &Elf,
    table: &SymbolTable,
    addresses: &[ElfAddress],
) -> Found {
    debug_assert!(addresses.is_sorted());
    let mut nearest = vec![Nearest::default(); addresses.len()];
    let swept = if elf.layout.wide {
        sweep::<Sym64<Endianness>>(file, elf, table, addresses, &mut nearest)
    } else {
        sweep::<Sym32<Endianness>>(file, elf, table, addresses, &mut nearest)
    };
    let mut found = Found {
        names: Vec::new(),
        of: vec![None; addresses.len()],
    };
    if swept.is_none() {
        return found;
    }
    // Each symbol was noted at the first address behind its start alone.
    for at in 1..nearest.len() {
        if nearest[at].before.is_none() {
            nearest[at].before = nearest[at - 1].before;
            nearest[at].unsized_in = nearest[at - 1].unsized_in;
        }
    }
    let best: Vec<_> = nearest
        .iter()
        .zip(addresses)
        .map(|(nearest, address)| nearest.best(elf, *address))
        .collect();
    read_ahead(file, &table.names, best.iter().flatten());
    let mut name_bytes = 0;
    // Addresses in one function follow each other.
    let mut last: Option<(Candidate, Option<usize>)> = None;
    for (symbol, of) in best.into_iter().zip(&mut found.of) {
        let Some(symbol) = symbol else { continue };
        *of = match last {
            Some((known, index)) if known.start == symbol.start && known.names == symbol.names => {
                index
            }
            _ => {
                let most = match name_bytes > MAX_NAMES_BYTES {
                    true => FIRST_BYTES,
                    false => MAX_NAME_BYTES,
                };
                choose_name(file, &table.names, &symbol, most).map(|name| {
                    name_bytes += name.len();
                    found.names.push(name);
                    found.names.len() - 1
                })
            }
        };
        last = Some((symbol, *of));
    }
    found
}

/// Lets all symbols go by, and notes for each address those that matter; none if the table makes no
/// sense.
fn sweep<S: Sym<Endian = Endianness>>(
    file: &File,
    elf: &Elf,
    table: &SymbolTable,
    addresses: &[ElfAddress],
    nearest: &mut [Nearest],
) -> Option<()> {
    let last = addresses.last()?.0;
    let end = table
        .symbols
        .end
        .min(table.symbols.start.saturating_add(MAX_TABLE_BYTES));
    let index = Index::new(addresses);
    let mut block = vec![0; BLOCK_BYTES];
    let mut claims = 0;
    let mut at = table.symbols.start;
    while at < end {
        let wanted = usize::try_from(end - at)
            .unwrap_or(usize::MAX)
            .min(BLOCK_BYTES);
        let read = read_at(file, &mut block[..wanted], at);
        let whole = read - read % size_of::<S>();
        if whole == 0 {
            break;
        }
        let symbols: &[S] = slice_from_all_bytes(&block[..whole]).ok()?;
        for function in symbols
            .iter()
            .filter_map(|symbol| function(symbol, elf.layout))
        {
            if function.start <= last {
                claims += claim(&function, elf, &index, nearest);
            }
            if claims > MAX_CLAIMS {
                return None;
            }
        }
        at += whole as u64;
    }
    Some(())
}

/// The function that a symbol names, if it names one that is defined here.
fn function<S: Sym<Endian = Endianness>>(symbol: &S, layout: Layout) -> Option<Function> {
    let endian = layout.endian;
    let section = symbol.st_shndx(endian);
    let defined = section != SHN_UNDEF && (section < SHN_LORESERVE || section == SHN_XINDEX);
    let code = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC | STT_NOTYPE);
    (defined && code).then(|| Function {
        start: symbol.st_value(endian).into(),
        size: symbol.st_size(endian).into(),
        name: symbol.st_name(endian),
        section,
    })
}

/// Notes the function for each address that it covers and for the first behind its start; says how
/// many it covers.
fn claim(function: &Function, elf: &Elf, index: &Index<'_>, nearest: &mut [Nearest]) -> u64 {
    // A label that is not code, such as the end of all data, ends no function.
    if function.size == 0 && !lies_in(elf, function.section, function.start) {
        return 0;
    }
    let from = index.first_from(function.start);
    let covered = index.addresses[from..]
        .iter()
        .take_while(|address| address.0 - function.start < function.size);
    let until = from + covered.count();
    for nearest in &mut nearest[from..until] {
        add(&mut nearest.covering, function);
    }
    if let Some(nearest) = nearest.get_mut(from)
        && let Some(first_there) = add(&mut nearest.before, function)
    {
        let sized = function.size > 0 || !first_there && nearest.unsized_in.is_none();
        nearest.unsized_in = (!sized).then_some(function.section);
    }
    (until - from) as u64
}

/// Adds a function to the candidates if none of them starts nearer to the address; says then whether
/// it is the first of those that start there.
fn add(candidate: &mut Option<Candidate>, function: &Function) -> Option<bool> {
    match candidate {
        Some(known) if known.start > function.start => None,
        Some(known) if known.start == function.start => {
            if let Some(place) = known.names.get_mut(known.aliases) {
                *place = function.name;
                known.aliases += 1;
            }
            Some(false)
        }
        _ => {
            let mut names = [0; MAX_ALIASES];
            names[0] = function.name;
            *candidate = Some(Candidate {
                start: function.start,
                names,
                aliases: 1,
            });
            Some(true)
        }
    }
}

impl Nearest {
    fn best(&self, elf: &Elf, address: ElfAddress) -> Option<Candidate> {
        let still_theirs = || lies_in(elf, self.unsized_in?, address.0).then_some(self.before?);
        self.covering.or_else(still_theirs)
    }
}

/// Whether the section holds code, and this address of it.
fn lies_in(elf: &Elf, section: u16, address: u64) -> bool {
    let code = elf.code.get(usize::from(section)).and_then(Option::as_ref);
    code.is_some_and(|code| code.contains(&address))
}

/// The name to show of several for one function: the one that callers write, which libraries surround
/// with others of more and more underscores; then the shortest. In the kernel's own library it is the
/// one that does not look like the C library's.
fn choose_name(
    file: &File,
    names: &Range<u64>,
    symbol: &Candidate,
    most: usize,
) -> Option<Vec<u8>> {
    symbol.names[..symbol.aliases]
        .iter()
        .filter_map(|&name| read_name(file, names, name, most))
        // Marks of the ARM assembler, `$x` and `$d`, name no function.
        .filter(|name| !name.is_empty() && name[0] != b'$')
        .min_by_key(|name| {
            let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
            (
                !name.starts_with(b"__vdso_"),
                underscores,
                name.len(),
                name.clone(),
            )
        })
}

/// Has the system read the names of these symbols ahead. They lie apart: of a file that is not in memory, each would be
/// waited for by itself.
fn read_ahead<'a>(file: &File, names: &Range<u64>, symbols: impl Iterator<Item = &'a Candidate>) {
    let offsets = symbols.flat_map(|symbol| &symbol.names[..symbol.aliases]);
    let mut pages: Vec<u64> = offsets
        .map(|&offset| names.start.saturating_add(offset.into()) / PAGE_BYTES)
        .collect();
    pages.sort_unstable();
    for near in pages.chunk_by(|page, next| next - page <= 1) {
        let (Some(first), Some(last)) = (near.first(), near.last()) else {
            continue;
        };
        let bytes = NonZeroU64::new((last - first + 1) * PAGE_BYTES);
        let start = first * PAGE_BYTES;
        let _only_slower = rustix::fs::fadvise(file, start, bytes, Advice::WillNeed);
    }
}

/// The NUL-terminated name that starts at `offset` of the names; of a longer one than `most` bytes the
/// beginning.
fn read_name(file: &File, names: &Range<u64>, offset: u32, most: usize) -> Option<Vec<u8>> {
    let start = names
        .start
        .checked_add(offset.into())
        .filter(|start| *start < names.end)?;
    let most = usize::try_from(names.end - start)
        .unwrap_or(usize::MAX)
        .min(most);
    for bytes in [FIRST_BYTES.min(most), most] {
        let mut name = vec![0; bytes];
        let read = read_at(file, &mut name, start);
        name.truncate(read);
        if let Some(end) = name.iter().position(|&byte| byte == 0) {
            name.truncate(end);
            name.shrink_to_fit();
            return Some(name);
        }
        if bytes == most {
            return Some(name);
        }
    }
    None
}

/// Reads as much as there is; says how much.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> usize {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    filled
}

#[cfg(test)]
mod tests;
