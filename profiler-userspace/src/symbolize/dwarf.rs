//! What DWARF tells of code: functions, those that were compiled into them, lines.
//!
//! In: an object with DWARF, the file that it shares with others if there is one, and addresses. Out: for
//! each address the functions that it lies in, the outermost first. Files are read where they are looked at,
//! and what is made of them is made for the compilation units that were asked for alone. Costs much more
//! than a symbol table, in time and memory; so it is asked only for what no symbol table knows.
//!
//! What is made of units is kept, for the next address is likely in one of them, until it takes all that may
//! be held. Then all is given back, and naming begins anew where it stopped: in several rounds, if need be.

mod allowance;
mod section;
mod split;

use crate::object::{DebugFile, DebugSection, ElfAddress, Search};
use addr2line::{Context, Location, LookupContinuation as _, LookupResult};
use allowance::Allowance;
use gimli::{RunTimeEndian, SectionId};
use object::Endianness;
use section::{Cursor, Pages, Section};
use split::Split;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// So many rounds are made for one object. What is left then would take as many again.
const MAX_ROUNDS: usize = 64;

/// The longest name of a function that is read, in bytes.
const MAX_NAME_BYTES: usize = 16 << 10;

/// The longest file name that a line is told with, in bytes.
const MAX_FILE_NAME_BYTES: usize = 256;

/// So many functions may lie within each other at one address; compilers stop far below.
const MAX_LEVELS: usize = 64;

/// The sections that tell of functions and lines. The others are of variables, types and macros.
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
    /// Its name, as the linker knows it.
    pub(super) name: Option<Vec<u8>>,
    /// The file, without directories, and line: in the innermost function where the address is, in the
    /// others where they call the next.
    pub(super) line: Option<String>,
}

/// What asking for addresses came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// How many addresses were left, because they would have taken more memory or time than allowed.
    pub(super) left: usize,
    /// Whether all was read more than once, because not all could be held.
    pub(super) again: bool,
    /// How many files were missing that hold parts of the debug information.
    pub(super) missing: usize,
    /// One of them.
    pub(super) such_as: Option<PathBuf>,
}

/// Whom to ask.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    /// The object, or its debug file.
    pub(super) source: &'a DebugFile,
    /// The file that it shares with others.
    pub(super) shared: Option<&'a DebugFile>,
    /// Where the object was mapped from.
    pub(super) path: &'a Path,
    /// Where to look for further files.
    pub(super) search: Search<'a>,
    /// How much memory may be held meanwhile, what is made of the answers included.
    pub(super) bytes: u64,
}

/// Hands to `take` what is told at each of `addresses`: its number, and the functions there, the outermost
/// first.
pub(super) fn look_up(
    question: Question<'_>,
    addresses: &[ElfAddress],
    mut take: impl FnMut(usize, Vec<Level>),
) -> Asked {
    let pages = Rc::new(Pages::new(Allowance::new(question.bytes)));
    let files = [Some(question.source), question.shared];
    let open = |file| Sections::open(file, &pages, WANTED, own_name);
    let [own, shared] = files.map(|file| file.map(open));
    let mut asked = Asked::default();
    let Some(own) = own.filter(|_| !pages.allowance.is_over()) else {
        asked.left = addresses.len();
        return asked;
    };
    let split = Split::new(question.search, question.path, question.source, &pages);
    let mut rest = 0;
    for round in 0..MAX_ROUNDS {
        if rest == addresses.len() || !pages.allowance.resume() {
            break;
        }
        let context = context(&own, shared.as_ref());
        if pages.allowance.is_over() {
            // What all units begin with does not fit, and will not the next time either.
            break;
        }
        let Some(context) = context else {
            return asked;
        };
        asked.again |= round > 0;
        split.begin_round();
        let first = rest;
        while let Some(address) = addresses.get(rest) {
            let levels = at(&context, &split, address.0).unwrap_or_default();
            if pages.allowance.is_over() {
                // What does not fit when all else was given back will never fit.
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
    // Here and there a page is read again of any large file.
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

fn at(context: &Context<Cursor>, split: &Split<'_>, address: u64) -> Option<Vec<Level>> {
    // There is no address behind the last, at which a range that holds it could end.
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
            line: frame.location.and_then(line),
        });
        if levels.len() == MAX_LEVELS {
            break;
        }
    }
    levels.reverse();
    Some(levels)
}

/// `file.c:12`, without the directories, of which there may be many.
fn line(location: Location<'_>) -> Option<String> {
    let file = location.file?;
    let name = file.rsplit('/').next().filter(|name| !name.is_empty())?;
    let number = location.line.filter(|number| *number > 0)?;
    let cut = name
        .chars()
        .take(MAX_FILE_NAME_BYTES / 4)
        .collect::<String>();
    Some(format!("{cut}:{number}"))
}

/// The sections of one file.
struct Sections {
    all: Vec<(SectionId, Rc<Section>)>,
    empty: Rc<Section>,
}

/// How a section is called in one kind of file, if it is there.
type Called = fn(SectionId) -> Option<&'static str>;

/// How a section is called in an object, or its debug file.
fn own_name(id: SectionId) -> Option<&'static str> {
    Some(id.name())
}

impl Sections {
    /// Those of a file, which stays open. If one of them has to be unpacked and does not fit, the allowance is
    /// over.
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

    /// Those of a file, as a whole. If they do not fit, the allowance is over.
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
            pages.allowance.expect(section.bytes);
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

    /// What is read where there is no section.
    fn none(&self) -> Cursor {
        Cursor::new(&self.empty)
    }
}

/// How many bytes of a file there may be to be looked at, unpacked.
pub(super) fn wanted_bytes(source: &DebugFile) -> u64 {
    let sections = WANTED
        .into_iter()
        .filter_map(|id| source.elf.debug.section(id.name().as_bytes()));
    sections.fold(0, |sum, section| sum.saturating_add(section.bytes))
}
