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

use crate::object::{DebugFile, ElfAddress};
use addr2line::{Context, Location};
use allowance::Allowance;
use gimli::{RunTimeEndian, SectionId};
use object::Endianness;
use section::{Cursor, Pages, Section};
use std::rc::Rc;

/// So many rounds are made for one object. What is left then would take as many again.
const MAX_ROUNDS: usize = 16;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// How many addresses were left, because they would have taken more memory or time than allowed.
    pub(super) left: usize,
    /// Whether all was read more than once, because not all could be held.
    pub(super) again: bool,
}

/// Hands to `take` what is told at each of `addresses`: its number, and the functions there, the outermost
/// first. `bytes` is how much memory may be held meanwhile, what `take` keeps included.
pub(super) fn look_up(
    source: &DebugFile,
    shared: Option<&DebugFile>,
    addresses: &[ElfAddress],
    bytes: u64,
    mut take: impl FnMut(usize, Vec<Level>),
) -> Asked {
    let pages = Rc::new(Pages::new(Allowance::new(bytes)));
    let mut asked = Asked::default();
    let mut rest = 0;
    let opened = Sections::open(source, &pages);
    let shared_file = shared;
    let shared = shared_file.map(|shared| Sections::open(shared, &pages));
    if pages.allowance.is_over() {
        asked.left = addresses.len();
        return asked;
    }
    for round in 0..MAX_ROUNDS {
        if rest == addresses.len() || !pages.allowance.resume() {
            break;
        }
        let context = context(&opened, shared.as_ref());
        if pages.allowance.is_over() {
            // What all units begin with does not fit, and will not the next time either.
            break;
        }
        let Some(context) = context else {
            return asked;
        };
        asked.again |= round > 0;
        let first = rest;
        while let Some(address) = addresses.get(rest) {
            let levels = at(&context, address.0).unwrap_or_default();
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
    let file_bytes = [Some(source), shared_file].into_iter().flatten();
    asked.again |= pages.bytes_again() > file_bytes.map(wanted_bytes).fold(0, u64::saturating_add);
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

fn at(context: &Context<Cursor>, address: u64) -> Option<Vec<Level>> {
    let mut frames = context.find_frames(address).skip_all_loads().ok()?;
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

impl Sections {
    /// Those of a file. If one of them has to be unpacked and does not fit, the allowance is over.
    fn open(source: &DebugFile, pages: &Rc<Pages>) -> Self {
        let endian = match source.elf.layout.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let file = source.file.try_clone().ok().map(Rc::new);
        let open = |id: SectionId| {
            let section = source.elf.debug.section(id.name().as_bytes())?;
            pages.allowance.expect(section.bytes);
            let section = Section::open(file.as_ref()?, section, endian, pages)?;
            Some((id, Rc::new(section)))
        };
        let all = match source.elf.debug.has_dwarf() {
            true => WANTED.into_iter().filter_map(open).collect(),
            false => Vec::new(),
        };
        Self {
            all,
            empty: Rc::new(Section::empty(endian, pages)),
        }
    }

    fn get(&self, id: SectionId) -> Cursor {
        let found = self.all.iter().find(|(known, _)| *known == id);
        Cursor::new(found.map_or(&self.empty, |(_, section)| section))
    }
}

/// How many bytes of a file there may be to be looked at, unpacked.
pub(super) fn wanted_bytes(source: &DebugFile) -> u64 {
    let sections = WANTED
        .into_iter()
        .filter_map(|id| source.elf.debug.section(id.name().as_bytes()));
    sections.fold(0, |sum, section| sum.saturating_add(section.bytes))
}
