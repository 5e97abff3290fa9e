//! What DWARF tells of code: functions, those that were compiled into them, lines.
//!
//! In: an object with DWARF, the file that it shares with others if there is one, and addresses. Out: for
//! each address the functions that it lies in, the outermost first. Sections are read into memory, and
//! what is made of them is made for the compilation units that were asked for alone. Costs much more
//! than a symbol table, in time and memory; so it is asked only for what no symbol table knows.

use crate::object::{DebugFile, Elf, ElfAddress};
use addr2line::{Context, Location};
use gimli::{EndianSlice, RunTimeEndian, SectionId};
use object::Endianness;
use std::fs::File;

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

/// The functions at each of `addresses`, the outermost first; none where nothing is told.
pub(super) fn look_up(
    file: &File,
    elf: &Elf,
    shared: Option<&DebugFile>,
    addresses: &[ElfAddress],
) -> Vec<Vec<Level>> {
    let own = Sections::read(file, elf);
    let shared = shared.map(|shared| Sections::read(&shared.file, &shared.elf));
    let mut levels = vec![Vec::new(); addresses.len()];
    let Some(context) = context(&own, shared.as_ref()) else {
        return levels;
    };
    for (levels, address) in levels.iter_mut().zip(addresses) {
        *levels = at(&context, address.0).unwrap_or_default();
    }
    levels
}

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

fn context<'a>(own: &'a Sections, shared: Option<&'a Sections>) -> Option<Context<Slice<'a>>> {
    let mut dwarf = gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(own.get(id))).ok()?;
    if let Some(shared) = shared {
        dwarf
            .load_sup(|id| Ok::<_, gimli::Error>(shared.get(id)))
            .ok()?;
    }
    Context::from_dwarf(dwarf).ok()
}

fn at(context: &Context<Slice<'_>>, address: u64) -> Option<Vec<Level>> {
    let mut frames = context.find_frames(address).skip_all_loads().ok()?;
    let mut levels = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let name = frame
            .function
            .map(|function| function.name.slice().to_vec());
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

/// The sections of one file, unpacked.
struct Sections {
    endian: RunTimeEndian,
    bytes: Vec<(SectionId, Vec<u8>)>,
}

impl Sections {
    fn read(file: &File, elf: &Elf) -> Self {
        let endian = match elf.layout.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let read = |id: SectionId| {
            let section = elf.debug.section(id.name().as_bytes())?;
            Some((id, section.read(file)?))
        };
        let bytes = match elf.debug.has_dwarf() {
            true => WANTED.into_iter().filter_map(read).collect(),
            false => Vec::new(),
        };
        Self { endian, bytes }
    }

    fn get(&self, id: SectionId) -> Slice<'_> {
        let found = self.bytes.iter().find(|(known, _)| *known == id);
        let bytes = found.map_or(&[] as &[u8], |(_, bytes)| bytes);
        EndianSlice::new(bytes, self.endian)
    }
}
