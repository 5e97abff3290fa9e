//! Names from an object's symbol table.
//!
//! In: an open file, where its table is, and addresses. Out: a symbol for each. The table is read once, in
//! blocks: only the few addresses are sorted, and no part of the file stays in memory. That takes about as
//! long as reading the table, without the memory of an index, which only a table has that is asked again and again. Never trusts the size the
//! table claims.

use crate::object::{Elf, ElfAddress, SymbolTable, read_into};
use object::elf::{
    SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym32, Sym64,
};
use object::pod::{from_bytes, slice_from_all_bytes};
use object::read::elf::Sym;
use object::{BigEndian, Endianness, LittleEndian};
use std::fs::File;

mod index;
mod names;
mod sieve;
mod sorted;

pub(super) use sorted::Sorted;

use index::Index;
use sieve::{FEW, Sieve};

/// How much of a table is read at a time, in bytes: whole symbols of either width.
const BLOCK_BYTES: usize = 24 * 16 * 256;

/// How much of a table is read at most, in bytes: ten million symbols.
const MAX_TABLE_BYTES: u64 = 256 << 20;

/// How many addresses all symbols may cover together. Honest symbols hardly overlap, so this is a hundred
/// times what they cover.
const MAX_CLAIMS: u64 = 1 << 24;

/// How many aliases of one address are considered.
const MAX_ALIASES: usize = 6;

/// Symbols that start at the same address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Candidate {
    /// Their address.
    start: u64,
    /// The offsets of their names in the string table.
    names: [u32; MAX_ALIASES],
    /// Their number.
    aliases: usize,
}

/// Symbols found so far for one address.
#[derive(Clone, Copy, Debug, Default)]
struct Nearest {
    /// The innermost symbols that cover it.
    covering: Option<Candidate>,
    /// The nearest symbols that start at or before it.
    before: Option<Candidate>,
    /// The section of those, if none of them has a size: the bytes behind them may still be theirs.
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
pub(super) struct SymbolLookup {
    /// Each symbol's name before demangling.
    pub names: Vec<Vec<u8>>,
    /// For each address the index of its symbol, if there is one.
    pub of: Vec<Option<usize>>,
    /// The addresses, by their numbers, that no symbol covers and that lie behind one without a size, and where that begins.
    pub behind: Vec<(usize, ElfAddress)>,
}

/// Finds the symbol of each of `addresses`, which ascend: the innermost symbol that covers it; else the
/// nearest before it in the same section, if its size is unknown, as in assembly. A symbol of known size is
/// never stretched over the gap behind it. `sorted`: the same table, if it was read before.
pub(super) fn look_up(
    file: &File,
    elf: &Elf,
    table: &SymbolTable,
    addresses: &[ElfAddress],
    sorted: Option<&Sorted>,
) -> SymbolLookup {
    debug_assert!(addresses.is_sorted());
    let mut nearest = vec![Nearest::default(); addresses.len()];
    let question = Question {
        file,
        elf,
        table,
        addresses,
    };
    let found = &mut nearest;
    let near = sorted.and_then(|sorted| sorted.near(addresses));
    let swept = match (elf.layout.wide, elf.layout.endian) {
        _ if near.is_some() => question.pick(&near.unwrap_or_default(), found),
        (true, Endianness::Little) => question.sweep::<Sym64<_>>(LittleEndian, found),
        (true, Endianness::Big) => question.sweep::<Sym64<_>>(BigEndian, found),
        (false, Endianness::Little) => question.sweep::<Sym32<_>>(LittleEndian, found),
        (false, Endianness::Big) => question.sweep::<Sym32<_>>(BigEndian, found),
    };
    if swept.is_none() {
        return SymbolLookup {
            of: vec![None; addresses.len()],
            ..SymbolLookup::default()
        };
    }
    // Each symbol was recorded only at the first address behind its start.
    for at in 1..nearest.len() {
        if nearest[at].before.is_none() {
            nearest[at].before = nearest[at - 1].before;
            nearest[at].unsized_in = nearest[at - 1].unsized_in;
        }
    }
    // Adjacent addresses are often in the same function.
    let mut functions: Vec<Candidate> = Vec::new();
    let mut of = Vec::with_capacity(addresses.len());
    let mut behind = Vec::new();
    for (number, (nearest, address)) in nearest.iter().zip(addresses).enumerate() {
        let best = nearest.best(elf, *address);
        if let Some(best) = best.filter(|best| nearest.covering.is_none() && best.start < address.0)
        {
            behind.push((number, ElfAddress(best.start)));
        }
        functions.extend(best.filter(|best| functions.last() != Some(best)));
        of.push(best.map(|_| functions.len() - 1));
    }
    let mut names = Vec::with_capacity(functions.len());
    let chosen = names::choose(file, &table.names, &functions);
    let numbers: Vec<Option<usize>> = chosen
        .into_iter()
        .map(|name| {
            names.push(name?);
            Some(names.len() - 1)
        })
        .collect();
    let of = of.into_iter().map(|of| numbers[of?]).collect();
    SymbolLookup { names, of, behind }
}

/// Question to a symbol table: the addresses to look up in it.
struct Question<'a> {
    file: &'a File,
    elf: &'a Elf,
    table: &'a SymbolTable,
    addresses: &'a [ElfAddress],
}

impl Question<'_> {
    /// Reads all symbols and keeps, for each address, those that matter; none if the table is invalid.
    fn sweep<S: Sym>(&self, endian: S::Endian, nearest: &mut [Nearest]) -> Option<()> {
        let index = Index::new(self.addresses);
        let mut sieve = Sieve::new(self.addresses, &self.elf.code)?;
        let mut places = [0; FEW];
        let mut claims = 0;
        each_block::<S>(self.file, self.table, |_, symbols| {
            // Linkers write most symbols in ascending order: the last is the nearest, so others need no look.
            for few in symbols.rchunks(FEW) {
                let kept = sieve.sift(few, endian, &mut places);
                for &place in kept.iter().rev() {
                    let Some(function) = function(&few[usize::from(place)], endian) else {
                        continue;
                    };
                    claims += claim(&function, self.elf, &index, &mut sieve, nearest);
                    if claims > MAX_CLAIMS {
                        return None;
                    }
                }
            }
            Some(())
        })
    }

    /// As [`sweep`](Self::sweep), but reads no more than these symbols, which are all that may matter.
    fn pick(&self, numbers: &[u32], nearest: &mut [Nearest]) -> Option<()> {
        let index = Index::new(self.addresses);
        let mut sieve = Sieve::new(self.addresses, &self.elf.code)?;
        let mut claims = 0;
        for number in numbers {
            let mut bytes = [0; size_of::<sorted::Symbol>()];
            let at = u64::from(*number) * bytes.len() as u64;
            let at = self.table.symbols.start.saturating_add(at);
            let read = read_into(self.file, &mut bytes, at);
            let (symbol, _) = from_bytes::<sorted::Symbol>(&bytes[..read]).ok()?;
            if let Some(function) = function(symbol, LittleEndian) {
                claims += claim(&function, self.elf, &index, &mut sieve, nearest);
            }
            if claims > MAX_CLAIMS {
                return None;
            }
        }
        Some(())
    }
}

/// Calls `visit` with all symbols of a table, many at a time, and with the number of the first of them; none if that is none, or the table
/// is invalid.
fn each_block<S: Sym>(
    file: &File,
    table: &SymbolTable,
    mut visit: impl FnMut(u64, &[S]) -> Option<()>,
) -> Option<()> {
    let table = &table.symbols;
    let most = table.start.saturating_add(MAX_TABLE_BYTES);
    let end = table.end.min(most);
    let mut block = vec![0; BLOCK_BYTES];
    let mut at = table.start;
    while at < end {
        let wanted = usize::try_from(end - at)
            .unwrap_or(usize::MAX)
            .min(BLOCK_BYTES);
        let read = read_into(file, &mut block[..wanted], at);
        let whole = read - read % size_of::<S>();
        if whole == 0 {
            break;
        }
        let symbols: &[S] = slice_from_all_bytes(&block[..whole]).ok()?;
        visit((at - table.start) / size_of::<S>() as u64, symbols)?;
        at += whole as u64;
    }
    Some(())
}

/// The function of a symbol, if it is a function defined here.
fn function<S: Sym>(symbol: &S, endian: S::Endian) -> Option<Function> {
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

/// Records the function for each address it covers and for the first behind its start. Returns how many it
/// covers.
fn claim(
    function: &Function,
    elf: &Elf,
    index: &Index<'_>,
    sieve: &mut Sieve,
    nearest: &mut [Nearest],
) -> u64 {
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
    if let Some(nearest) = nearest.get_mut(from) {
        let known = nearest.before.map(|known| known.start);
        if let Some(first_there) = add(&mut nearest.before, function) {
            let sized = function.size > 0 || !first_there && nearest.unsized_in.is_none();
            nearest.unsized_in = (!sized).then_some(function.section);
            if first_there {
                let lower = || index.addresses[..from].last().map_or(0, |lower| lower.0);
                sieve.narrow(known.unwrap_or_else(lower), function.start);
            }
        }
    }
    (until - from) as u64
}

/// Adds a function to the candidates if none of them starts nearer to the address. Returns whether it is the
/// first that starts there.
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

/// Whether the section is code and contains this address.
fn lies_in(elf: &Elf, section: u16, address: u64) -> bool {
    let code = elf.code.get(usize::from(section)).and_then(Option::as_ref);
    code.is_some_and(|code| code.contains(&address))
}

#[cfg(test)]
mod tests;
