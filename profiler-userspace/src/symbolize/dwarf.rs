//! Functions, inlined functions and lines of code, from DWARF.
//!
//! In: an object with DWARF, the file it shares with others if there is one, and addresses. Out: for each
//! address the functions it is in, the outermost first. Files are read page by page, and only the compilation
//! units that are asked for are parsed. This costs much more time and memory than a symbol table, so it is
//! asked only for what no symbol table knows.
//!
//! Parsed units are kept until they reach the memory limit, because the next address is likely in one of
//! them. Then everything is freed and symbolization goes on with the next address: a new round.

mod budget;
mod section;
mod split;

use crate::object::{DebugFile, DebugSection, ElfAddress, Search};
use addr2line::{Context, Location, LookupContinuation as _, LookupResult};
use budget::DwarfBudget;
use gimli::{RunTimeEndian, SectionId};
use object::Endianness;
use section::{Cursor, Pages, Section};
use split::Split;
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The most rounds for one object. What is left then would take as many again.
const MAX_ROUNDS: usize = 64;

/// The longest function name read, in bytes.
const MAX_NAME_BYTES: usize = 16 << 10;

/// The longest path of a source file that is kept as it is, in bytes. Of a longer one it is the name, and no more of it
/// than this.
const MAX_PATH_BYTES: usize = 1024;

/// The deepest nesting of inlined functions at one address; compilers stop far below.
const MAX_LEVELS: usize = 64;

/// The sections with functions and lines. The others hold variables, types and macros.
const WANTED: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// One function at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Level {
    /// Its name before demangling.
    pub(super) name: Option<Vec<u8>>,
    /// In the innermost function where the address is, in the others where they call the next.
    pub(super) line: Option<SourceLine>,
}

/// A place in source code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, with its directories.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

/// The paths of source files, each kept once.
#[derive(Default)]
struct Paths(HashSet<Arc<str>>);

impl Paths {
    fn path(&mut self, path: &str) -> Arc<str> {
        if let Some(known) = self.0.get(path) {
            return Arc::clone(known);
        }
        let new: Arc<str> = path.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

/// The outcome of asking for addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct QueryOutcome {
    /// How many addresses were skipped, because they would have exceeded the memory or time limit.
    pub(super) left: usize,
    /// Whether several rounds were needed.
    pub(super) again: bool,
    /// How many files with split debug information were missing.
    pub(super) missing: usize,
    /// One of them.
    pub(super) such_as: Option<PathBuf>,
}

impl QueryOutcome {
    /// Adds what came of other addresses of the same object.
    pub(super) fn add(&mut self, other: Self) {
        self.left += other.left;
        self.again |= other.again;
        self.missing = self.missing.max(other.missing);
        self.such_as = self.such_as.take().or(other.such_as);
    }
}

/// Question to DWARF: the files that have it, and limits.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    /// The object, or its debug file.
    pub(super) source: &'a DebugFile,
    /// The file that it shares with others.
    pub(super) shared: Option<&'a DebugFile>,
    /// Where the object was mapped from.
    pub(super) path: &'a Path,
    /// Where to search for further files.
    pub(super) search: Search<'a>,
    /// How much memory may be used, results included.
    pub(super) bytes: u64,
}

/// Calls `take` with the index of each address and its functions, the outermost first.
pub(super) fn look_up(
    question: Question<'_>,
    addresses: &[ElfAddress],
    mut take: impl FnMut(usize, Vec<Level>),
) -> QueryOutcome {
    let pages = Rc::new(Pages::new(DwarfBudget::new(question.bytes)));
    let files = [Some(question.source), question.shared];
    let open = |file| Sections::open(file, &pages, WANTED, own_name);
    let [own, shared] = files.map(|file| file.map(open));
    let mut asked = QueryOutcome::default();
    let mut paths = Paths::default();
    let Some(own) = own.filter(|_| !pages.budget.is_over()) else {
        asked.left = addresses.len();
        return asked;
    };
    let split = Split::new(question.search, question.path, question.source, &pages);
    let mut rest = 0;
    for round in 0..MAX_ROUNDS {
        if rest == addresses.len() || !pages.budget.resume() {
            break;
        }
        let context = context(&own, shared.as_ref());
        if pages.budget.is_over() {
            // The header of all units does not fit and will not fit in the next round either.
            break;
        }
        let Some(context) = context else {
            return asked;
        };
        asked.again |= round > 0;
        split.begin_round();
        let first = rest;
        while let Some(address) = addresses.get(rest) {
            let levels = at(&context, &split, address.0, &mut paths).unwrap_or_default();
            if pages.budget.is_over() {
                // Results that do not fit after everything was freed will never fit.
                if rest == first {
                    asked.left += 1;
                    rest += 1;
                }
                break;
            }
            take(rest, levels);
            rest += 1;
        }
    }
    asked.left += addresses.len() - rest;
    // Some pages of any large file are read twice.
    let file_bytes = files.into_iter().flatten().map(wanted_bytes);
    asked.again |= pages.bytes_again() > file_bytes.fold(0, u64::saturating_add);
    (asked.missing, asked.such_as) = split.missing();
    asked
}

fn context(own: &Sections, shared: Option<&Sections>) -> Option<Context<Cursor>> {
    let mut dwarf = gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(own.get(id))).ok()?;
    if let Some(shared) = shared {
        dwarf
            .load_sup(|id| Ok::<_, gimli::Error>(shared.get(id)))
            .ok()?;
    }
    Context::from_dwarf(dwarf).ok()
}

fn at(
    context: &Context<Cursor>,
    split: &Split<'_>,
    address: u64,
    paths: &mut Paths,
) -> Option<Vec<Level>> {
    // A range that contains the highest address could have no end.
    address.checked_add(1)?;
    let mut result = context.find_frames(address);
    let mut frames = loop {
        result = match result {
            LookupResult::Output(frames) => break frames.ok()?,
            LookupResult::Load { load, continuation } => continuation.resume(split.load(&load)),
        };
    };
    let mut levels = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let name = frame
            .function
            .and_then(|function| function.name.bytes(MAX_NAME_BYTES).ok());
        levels.push(Level {
            name: name.filter(|name| !name.is_empty()),
            line: (frame.location).and_then(|location| line(location, paths)),
        });
        if levels.len() == MAX_LEVELS {
            break;
        }
    }
    levels.reverse();
    Some(levels)
}

fn line(location: Location<'_>, paths: &mut Paths) -> Option<SourceLine> {
    let path = location.file?;
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
    let line = location.line.filter(|number| *number > 0)?;
    let kept = match path.len() > MAX_PATH_BYTES {
        true => &name[..name.floor_char_boundary(MAX_PATH_BYTES)],
        false => path,
    };
    Some(SourceLine {
        file: paths.path(kept),
        line,
    })
}

/// The sections of one file.
struct Sections {
    all: Vec<(SectionId, Rc<Section>)>,
    empty: Rc<Section>,
}

/// The name of a section in one kind of file, if it exists there.
type Called = fn(SectionId) -> Option<&'static str>;

/// The name of a section in an object or its debug file.
fn own_name(id: SectionId) -> Option<&'static str> {
    Some(id.name())
}

impl Sections {
    /// The sections of a file, which stays open. If a compressed one does not fit, the budget is used up.
    fn open(
        source: &DebugFile,
        pages: &Rc<Pages>,
        wanted: impl IntoIterator<Item = SectionId>,
        called: Called,
    ) -> Self {
        let file = source.file.try_clone().ok().map(Rc::new);
        Self::with(source, pages, wanted, called, |_, section, endian| {
            Section::open(file.as_ref()?, section, endian, pages)
        })
    }

    /// The sections of a file, read whole. If they do not fit, the budget is used up.
    fn read(
        source: &DebugFile,
        pages: &Rc<Pages>,
        wanted: impl IntoIterator<Item = SectionId>,
        called: Called,
    ) -> Self {
        Self::with(source, pages, wanted, called, |file, section, endian| {
            Section::read(file, section, endian, pages)
        })
    }

    fn with(
        source: &DebugFile,
        pages: &Rc<Pages>,
        wanted: impl IntoIterator<Item = SectionId>,
        called: Called,
        open: impl Fn(&File, &DebugSection, RunTimeEndian) -> Option<Section>,
    ) -> Self {
        let endian = match source.elf.layout.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let open = |id: SectionId| {
            let section = source.elf.debug.section(called(id)?.as_bytes())?;
            pages.budget.expect(section.bytes);
            Some((id, Rc::new(open(&source.file, section, endian)?)))
        };
        Self {
            all: wanted.into_iter().filter_map(open).collect(),
            empty: Rc::new(Section::empty(endian, pages)),
        }
    }

    fn get(&self, id: SectionId) -> Cursor {
        let found = self.all.iter().find(|(known, _)| *known == id);
        found.map_or_else(|| self.none(), |(_, section)| Cursor::new(section))
    }

    /// An absent section.
    fn none(&self) -> Cursor {
        Cursor::new(&self.empty)
    }
}

/// How many bytes of a file may have to be read, unpacked.
pub(super) fn wanted_bytes(source: &DebugFile) -> u64 {
    let sections = WANTED
        .into_iter()
        .filter_map(|id| source.elf.debug.section(id.name().as_bytes()));
    sections.fold(0, |sum, section| sum.saturating_add(section.bytes))
}
