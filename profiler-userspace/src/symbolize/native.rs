//! Names for code of one object.
//!
//! In: an open object and offsets into it. Out: for each offset a name, or the address that a
//! disassembler would show for it. Sources in order, each asked for what the former left: the object's
//! own symbol table; if it was stripped, that of its debug file, or the minimal one that it carries
//! packed in itself; the symbols for other objects, if there are more of them than in a full table; the table that
//! Go's runtime has of its functions; and DWARF, if there
//! was no symbol table at all.
//!
//! Symbols come first because they are there for the whole of an object and cost milliseconds; reading
//! DWARF can cost seconds and hundreds of megabytes. Next to a symbol table it has nothing to add: what
//! no symbol covers is a linker's stub or padding. What is left then is shown as the function that it lies in, as far
//! as [`crate::code`] finds it.

use super::Naming;
use super::demangle::{Demangling, demangle, visible};
use super::dwarf::{self, QueryOutcome, Question, SourceLine};
use super::memory_budget::{MemoryBudget, MemoryPermit, NAMES_BYTES};
use super::symbol_cache::{CachedFile, SymbolCache};
use super::symbol_table::{self, SymbolLookup};
use super::{go, nameless};
use crate::code::{self, GoFunctions};
use crate::object::{
    BuildId, DebugFile, Elf, ElfAddress, Fetch, FileOffset, Image, RegularFile, Search, Segment,
    Segments,
};
use crate::process::Opened;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// So much may the names of one object take, in bytes, before their beginnings have to do. A hundred
/// thousand functions of C++ take a tenth of it.
const MAX_NAMES_BYTES: usize = 64 << 20;

/// The most that is kept of each name beyond that, in bytes.
const MAX_SHORT_BYTES: usize = 256;

/// Suffix of the name of the function that a stub of the linkage table leads to.
const STUB: &str = "@plt";

/// How names are wanted, and where they may come from beside the objects themselves.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    /// Options of naming.
    pub(super) naming: &'a Naming,
    /// Fetches debug files that are not here.
    pub(super) fetch: Option<&'a Fetch<'a>>,
    /// How much memory may be held.
    pub(super) memory: &'a MemoryBudget,
    /// Tables that were read before; none where nobody will ask again.
    pub(super) cache: Option<&'a SymbolCache>,
}

/// The functions at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Function {
    /// The one that has code there.
    pub(super) outermost: Level,
    /// Those that were compiled into it there, each into the one before. Empty unless asked for.
    pub(super) inlined: Vec<Level>,
}

/// One function at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Level {
    /// Its name, for readers.
    pub(super) name: String,
    /// The linker's name for it; empty where that is the same.
    pub(super) system_name: String,
    /// Where in its source, if that was asked for.
    pub(super) source: Option<SourceLine>,
}

/// Result for an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// An index into the functions.
    Named(usize),
    /// No name, but the function that it lies in begins there.
    Within(ElfAddress),
    /// No name.
    Unsymbolized,
}

/// Where the code of an object lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CodeRange {
    /// As the object sees it.
    pub(super) addresses: Range<u64>,
    /// Where the first of these addresses lies in the file.
    pub(super) offset: u64,
}

impl CodeRange {
    fn of(segments: &Segments) -> Option<Self> {
        let code = segments.all().iter().filter(|segment| segment.executable);
        let end = |segment: &Segment| {
            let bytes = segment.file.end.saturating_sub(segment.file.start);
            segment.address.saturating_add(bytes)
        };
        let first = code.clone().min_by_key(|segment| segment.address)?;
        Some(Self {
            addresses: first.address..code.map(end).max()?,
            offset: first.file.start,
        })
    }
}

/// Results for some offsets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// Functions; the same one may occur several times.
    pub(super) functions: Vec<Function>,
    /// For each offset what is known.
    pub(super) of: Vec<Symbol>,
    /// For each offset where it lies in the object; none where the file is no object, or does not load that part.
    pub(super) addresses: Vec<Option<ElfAddress>>,
    /// Where the object's code lies.
    pub(super) code: Option<CodeRange>,
    /// Whether it is an object at all.
    pub(super) is_object: bool,
    /// Whether there was a source that names all of its functions.
    pub(super) has_symbols: bool,
    /// Which build of the object it is.
    pub(super) build_id: Option<BuildId>,
    /// Result of asking its DWARF.
    pub(super) asked: QueryOutcome,
    // How much the names of functions take, in bytes.
    name_bytes: usize,
    // Offsets named by the last dynamic symbol before them, which has no size: their address, their
    // number, and where that symbol's function begins.
    behind: Vec<(ElfAddress, usize, ElfAddress)>,
}

/// Names the `offsets` into the object that was mapped under `path`.
pub(super) fn name(
    opened: &Opened,
    path: &Path,
    offsets: &[FileOffset],
    sources: Sources<'_>,
) -> Named {
    // The object may be anything, also one made to break its readers. It shall not take the
    // recording with it.
    catch_unwind(AssertUnwindSafe(|| read(opened, path, offsets, sources)))
        .unwrap_or_else(|_| Named::nothing(offsets.len()))
}

/// Names the `offsets` into an object that is not here, of which only an outline is known: as far as its
/// debug file tells.
pub(super) fn name_absent(
    elf: &Elf,
    path: &Path,
    offsets: &[FileOffset],
    sources: Sources<'_>,
) -> Named {
    let object = Object {
        file: None,
        elf,
        path,
        roots: &[Path::new("/")],
    };
    catch_unwind(AssertUnwindSafe(|| {
        let permit = sources.memory.acquire(NAMES_BYTES);
        object.name(offsets, sources, permit)
    }))
    .unwrap_or_else(|_| Named::nothing(offsets.len()))
}

fn read(opened: &Opened, path: &Path, offsets: &[FileOffset], sources: Sources<'_>) -> Named {
    let file = &opened.file.file;
    let permit = sources.memory.acquire(NAMES_BYTES);
    let Some(elf) = Elf::read(file) else {
        return Named::nothing(offsets.len());
    };
    let object = Object {
        file: Some(file),
        elf: &elf,
        path,
        roots: &roots(opened),
    };
    object.name(offsets, sources, permit)
}

/// An object, whose own file is there or not.
struct Object<'a> {
    file: Option<&'a File>,
    elf: &'a Elf,
    /// Where it was mapped from.
    path: &'a Path,
    /// The root directories to look for debug files under.
    roots: &'a [&'a Path],
}

/// Addresses, ascending, and the places of their offsets.
type Places = Vec<(ElfAddress, usize)>;

impl Object<'_> {
    /// Names offsets by the object's tables.
    fn name(
        &self,
        offsets: &[FileOffset],
        sources: Sources<'_>,
        permit: MemoryPermit<'_>,
    ) -> Named {
        let elf = self.elf;
        let mut named = Named::nothing(offsets.len());
        let mut unsymbolized: Places = Vec::with_capacity(offsets.len());
        for (at, offset) in offsets.iter().enumerate() {
            if let Some(address) = elf.segments.address(*offset) {
                named.addresses[at] = Some(address);
                unsymbolized.push((address, at));
            }
        }
        unsymbolized.sort_unstable();
        let asked = unsymbolized.clone();
        let search = Search {
            directories: &sources.naming.debug_directories,
            roots: self.roots,
            fetch: sources.fetch,
        };
        let stripped = elf.symbols.is_none();
        let debug = stripped
            .then(|| search.find(self.path, elf, |found| found.symbols.is_some()))
            .flatten();
        let has_debug_file = debug.is_some();
        let minimal = (stripped && debug.is_none())
            .then(|| minimal(self.file?, elf))
            .flatten();
        let own = |table| self.file.zip(table).map(|(file, table)| (file, elf, table));
        let cached = { sources.cache.zip(self.file) }.and_then(|(cache, file)| cache.of(file));
        let cached = cached.as_deref();
        let full = own(elf.symbols.as_ref()).or_else(|| debug.as_ref().and_then(symbols));
        // Linkers put all of these into the full table, too, and tools that shorten the full table remove nearly all of it.
        let dynamic = elf.dynamic_symbols.as_ref().filter(|dynamic| {
            full.is_none_or(|(_, _, full)| length(&full.symbols) < length(&dynamic.symbols))
        });
        let tables = [full, minimal.as_ref().and_then(symbols), own(dynamic)];
        for (file, elf, table) in tables.into_iter().flatten() {
            // Where only what other objects need has a symbol, most functions behind one have none.
            named.behind.clear();
            named.take(&mut unsymbolized, sources.naming.demangling, |addresses| {
                let sorted = cached.filter(|_| std::ptr::eq(elf, self.elf));
                let sorted = sorted.and_then(|cached| cached.sorted(file, elf, table));
                symbol_table::look_up(file, elf, table, addresses, sorted)
            });
        }
        if dynamic.is_none() {
            named.behind.clear();
        }
        let image = self.file.and_then(|file| Image::read(file).ok());
        let go = image.as_ref().and_then(GoFunctions::find);
        if let Some(go) = &go {
            named.take(&mut unsymbolized, Demangling::Off, |addresses| {
                go::names(go, addresses)
            });
        }
        let only_dwarf = stripped
            && !has_debug_file
            && minimal.is_none()
            && go.is_none()
            && elf.debug.has_dwarf();
        named.is_object = true;
        named.code = CodeRange::of(&elf.segments);
        named.has_symbols =
            !stripped || has_debug_file || minimal.is_some() || go.is_some() || only_dwarf;
        named.build_id.clone_from(&elf.build_id);
        let detailed = sources.naming.inlined || sources.naming.lines;
        drop((permit, minimal));
        if only_dwarf || detailed {
            let places = if detailed { asked } else { unsymbolized };
            let found = self.detail(&mut named, &places, debug, search, sources);
            if let Some(go) = go.filter(|_| !found) {
                let addresses = places.iter().map(|(address, _)| *address);
                go::details(&go, addresses, |number, levels| {
                    named.detail(places[number].1, levels, sources.naming);
                });
            }
        }
        if let Some(file) = self.file {
            let _permit = sources.memory.acquire(NAMES_BYTES);
            named.take_back(file, elf, cached);
            let places = match sources.naming.addresses {
                true => Places::new(),
                false => named.nameless(),
            };
            nameless::place(file, elf, cached, places, |at, function| {
                named.place(at, function, sources.naming.demangling);
            });
        }
        named
    }

    /// Adds what DWARF has: the object's own, or that of its debug file, which may be known already. Says
    /// whether there is any.
    fn detail(
        &self,
        named: &mut Named,
        places: &Places,
        debug: Option<DebugFile>,
        search: Search<'_>,
        sources: Sources<'_>,
    ) -> bool {
        let has_dwarf = |found: &Elf| found.debug.has_dwarf();
        let source = match debug.filter(|debug| has_dwarf(&debug.elf)) {
            Some(debug) => Some(debug),
            None if has_dwarf(self.elf) => self.file.and_then(|file| DebugFile::of(file, self.elf)),
            None => search.find(self.path, self.elf, has_dwarf),
        };
        let Some(source) = source else {
            return false;
        };
        let shared = search.find_shared(&source);
        let wanted = [Some(&source), shared.as_ref()];
        let wanted = wanted.into_iter().flatten().map(dwarf::wanted_bytes);
        // Parsed, the contents of a file take about as much memory again.
        let wanted = wanted.fold(0, u64::saturating_add).saturating_mul(2);
        let permit = sources.memory.acquire(wanted);
        let addresses: Vec<ElfAddress> = places.iter().map(|(address, _)| *address).collect();
        let take = |number: usize, levels| named.detail(places[number].1, levels, sources.naming);
        let question = Question {
            source: &source,
            shared: shared.as_ref(),
            path: self.path,
            search,
            bytes: permit.bytes,
        };
        let asked = dwarf::look_up(question, &addresses, take);
        named.asked = asked;
        true
    }
}

fn symbols(debug: &DebugFile) -> Option<(&File, &Elf, &crate::object::SymbolTable)> {
    let table = debug.elf.symbols.as_ref()?;
    Some((&debug.file, &debug.elf, table))
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// The object that a stripped one carries in itself, packed: the symbols of those of its functions that
/// are not for other objects.
fn minimal(file: &File, elf: &Elf) -> Option<DebugFile> {
    let unpack = |to: &mut File| elf.debug.unpack_minimal(file, to);
    let memory = RegularFile::written_in_memory("minimal debug information", unpack).ok()?;
    let found = DebugFile::of(&memory.file, &Elf::read(&memory.file)?)?;
    found.elf.symbols.is_some().then_some(found)
}

impl Named {
    /// Nothing is known of any offset.
    pub(super) fn nothing(offsets: usize) -> Self {
        Self {
            of: vec![Symbol::Unsymbolized; offsets],
            addresses: vec![None; offsets],
            ..Self::default()
        }
    }

    /// Offsets without a name: address and number.
    fn nameless(&self) -> Places {
        let all = self.of.iter().zip(&self.addresses).enumerate();
        let nameless = all.filter(|(_, (symbol, _))| **symbol == Symbol::Unsymbolized);
        nameless
            .filter_map(|(at, (_, address))| Some(((*address)?, at)))
            .collect()
    }

    /// Takes back the names of dynamic symbols without a size where another function begins behind them.
    fn take_back(&mut self, file: &File, elf: &Elf, cached: Option<&CachedFile>) {
        let behind = std::mem::take(&mut self.behind);
        let places = behind.iter().enumerate();
        let places = places
            .map(|(number, (address, ..))| (*address, number))
            .collect();
        nameless::place(file, elf, cached, places, |number, function| {
            let (_, at, symbol) = behind[number];
            let is_its = matches!(function, code::Function::Begins(begin) if begin <= symbol);
            if !is_its && matches!(self.of[at], Symbol::Named(_)) {
                self.of[at] = Symbol::Unsymbolized;
            }
        });
    }

    /// Notes in which function something lies.
    fn place(&mut self, at: usize, function: code::Function, demangling: Demangling) {
        let outermost = match function {
            code::Function::Begins(begin) => {
                self.of[at] = Symbol::Within(begin);
                return;
            }
            code::Function::Named(name) => self.level(name.as_bytes(), Demangling::Off),
            code::Function::Stub(name) => self.stub(name.as_bytes(), demangling),
        };
        self.of[at] = Symbol::Named(self.functions.len());
        self.functions.push(Function {
            outermost,
            inlined: Vec::new(),
        });
    }

    /// Asks one source for what has no name yet, and keeps its answers.
    fn take(
        &mut self,
        unsymbolized: &mut Vec<(ElfAddress, usize)>,
        demangling: Demangling,
        ask: impl FnOnce(&[ElfAddress]) -> SymbolLookup,
    ) {
        if unsymbolized.is_empty() {
            return;
        }
        let addresses: Vec<ElfAddress> = unsymbolized.iter().map(|(address, _)| *address).collect();
        let found = ask(&addresses);
        let behind = found.behind.iter();
        self.behind.extend(behind.map(|&(number, begin)| {
            let (address, at) = unsymbolized[number];
            (address, at, begin)
        }));
        let first = self.functions.len();
        for name in &found.names {
            let outermost = self.level(name, demangling);
            self.functions.push(Function {
                outermost,
                inlined: Vec::new(),
            });
        }
        let mut answers = found.of.into_iter();
        unsymbolized.retain(|(_, at)| match answers.next().flatten() {
            Some(index) => {
                self.of[*at] = Symbol::Named(first + index);
                false
            }
            None => true,
        });
    }
}

impl Named {
    /// A function by the linker's name. Where names take more than they do anywhere, it is the beginning of one.
    fn level(&mut self, linker: &[u8], demangling: Demangling) -> Level {
        let mut name = demangle(linker, demangling);
        let mut system_name = String::new();
        if self.name_bytes > MAX_NAMES_BYTES {
            name.truncate(name.floor_char_boundary(MAX_SHORT_BYTES));
            name.shrink_to_fit();
        } else if name.as_bytes() != linker {
            system_name = visible(linker);
        }
        self.name_bytes += name.len() + system_name.len();
        Level {
            name,
            system_name,
            source: None,
        }
    }

    /// A stub of the linkage table, as perf and objdump call it: by the function that it leads to.
    fn stub(&mut self, function: &[u8], demangling: Demangling) -> Level {
        let mut level = self.level(function, demangling);
        level.name.push_str(STUB);
        if !level.system_name.is_empty() {
            level.system_name.push_str(STUB);
        }
        level
    }

    /// Adds what DWARF has of an offset, as far as that is wanted.
    fn detail(&mut self, at: usize, levels: Vec<dwarf::Level>, naming: &Naming) {
        let mut levels = levels.into_iter();
        let Some(outermost) = levels.next() else {
            return;
        };
        // The linker's name is the one that the function has without all this.
        let known = match (self.of[at], &outermost.name) {
            (Symbol::Named(index), _) => self.functions[index].outermost.clone(),
            (Symbol::Within(_) | Symbol::Unsymbolized, Some(name)) => {
                self.level(name, naming.demangling)
            }
            (Symbol::Within(_) | Symbol::Unsymbolized, None) => return,
        };
        let source = |line: Option<SourceLine>| line.filter(|_| naming.lines);
        let function = Function {
            outermost: Level {
                source: source(outermost.line),
                ..known
            },
            inlined: levels
                .take_while(|_| naming.inlined)
                .map(|level| {
                    let name = level.name.as_deref();
                    let named = name.map(|name| self.level(name, naming.demangling));
                    Level {
                        source: source(level.line),
                        ..named.unwrap_or_else(|| Level {
                            name: "[unknown]".to_owned(),
                            ..Level::default()
                        })
                    }
                })
                .collect(),
        };
        // Addresses in one function follow each other.
        if self.functions.last() != Some(&function) {
            self.functions.push(function);
        }
        self.of[at] = Symbol::Named(self.functions.len() - 1);
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
