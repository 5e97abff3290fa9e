//! Loads split debug information.
//!
//! In: a compilation unit's reference to its part. Out: the part, once its identifier matches; or a record
//! that it is missing. Keeps few files open: of all but large parts, the bytes are kept instead.

use super::Sections;
use super::section::{Cursor, Pages};
use crate::object::{DebugFile, Search};
use addr2line::SplitDwarfLoad;
use gimli::{Dwarf, DwarfPackage, DwoId, SectionId};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The longest path that is searched for, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// A part larger than this, in bytes, is read page by page, which keeps its file open.
const LARGE_BYTES: u64 = 4 << 20;

/// The most files kept open.
const MAX_OPEN: usize = 64;

/// The sections of a part.
const OF_PART: [SectionId; 6] = [
    SectionId::DebugAbbrev,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The sections of a package besides those of its parts. Its index covers all of them, also those that are
/// never read.
const OF_PACKAGE: [SectionId; 7] = [
    SectionId::DebugCuIndex,
    SectionId::DebugTuIndex,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugTypes,
];

/// Finds the parts of one object.
pub(super) struct Split<'a> {
    search: Search<'a>,
    object: &'a Path,
    source: &'a DebugFile,
    pages: &'a Rc<Pages>,
    package: OnceCell<Option<DwarfPackage<Cursor>>>,
    open: Cell<usize>,
    missing: RefCell<HashSet<u64>>,
    first_missing: RefCell<Option<PathBuf>>,
}

impl<'a> Split<'a> {
    /// The parts of the `object`, whose debug information is in `source`.
    pub(super) fn new(
        search: Search<'a>,
        object: &'a Path,
        source: &'a DebugFile,
        pages: &'a Rc<Pages>,
    ) -> Self {
        Self {
            search,
            object,
            source,
            pages,
            package: OnceCell::new(),
            open: Cell::new(0),
            missing: RefCell::default(),
            first_missing: RefCell::default(),
        }
    }

    /// Frees everything.
    pub(super) fn begin_round(&self) {
        self.open.set(0);
    }

    /// How many parts were missing, and one of them.
    pub(super) fn missing(&self) -> (usize, Option<PathBuf>) {
        let count = self.missing.borrow().len();
        (count, self.first_missing.borrow().clone())
    }

    /// The part a compilation unit refers to.
    pub(super) fn load(&self, asked: &SplitDwarfLoad<Cursor>) -> Option<Arc<Dwarf<Cursor>>> {
        let found = self.packed(asked).or_else(|| self.single(asked));
        // A part that was not read for lack of memory is not missing.
        if found.is_none()
            && !self.pages.budget.is_over()
            && self.missing.borrow_mut().insert(asked.dwo_id.0)
        {
            let mut first = self.first_missing.borrow_mut();
            let path = path(asked).or_else(|| first.clone());
            *first = match first.take() {
                Some(known) => path.map(|path| path.min(known)),
                None => path,
            };
        }
        found.map(Arc::new)
    }

    /// The part from the package.
    fn packed(&self, asked: &SplitDwarfLoad<Cursor>) -> Option<Dwarf<Cursor>> {
        let package = self.package.get_or_init(|| {
            let open = |file: DebugFile| {
                let wanted = || OF_PACKAGE.into_iter().chain(OF_PART);
                file.elf.debug.section(b".debug_cu_index")?;
                let sections = Sections::open(&file, self.pages, wanted(), dwo_name);
                let load = |id| Ok::<_, gimli::Error>(sections.get(id));
                DwarfPackage::load(load, sections.none()).ok()
            };
            self.search.find_package(self.object, self.source, open)
        });
        let found = package.as_ref()?.find_cu(asked.dwo_id, &asked.parent);
        // The index may claim another part's data.
        let is_asked_for = |part: &Dwarf<Cursor>| first_id(part) == Some(asked.dwo_id);
        found.ok().flatten().filter(is_asked_for)
    }

    /// The part from a file of its own.
    fn single(&self, asked: &SplitDwarfLoad<Cursor>) -> Option<Dwarf<Cursor>> {
        let open = |file: DebugFile| {
            let sections = OF_PART.into_iter().filter_map(dwo_name);
            let sections = sections.filter_map(|name| file.elf.debug.section(name.as_bytes()));
            let bytes = sections.fold(0u64, |sum, section| sum.saturating_add(section.bytes));
            let sections = match bytes > LARGE_BYTES && self.open.get() < MAX_OPEN {
                true => {
                    self.open.set(self.open.get() + 1);
                    Sections::open(&file, self.pages, OF_PART, dwo_name)
                }
                false => Sections::read(&file, self.pages, OF_PART, dwo_name),
            };
            let mut part = Dwarf::load(|id| Ok::<_, gimli::Error>(sections.get(id))).ok()?;
            part.make_dwo(&asked.parent);
            (first_id(&part) == Some(asked.dwo_id)).then_some(part)
        };
        self.search.find_part(self.object, &path(asked)?, open)
    }
}

/// The name of a section in a part.
fn dwo_name(id: SectionId) -> Option<&'static str> {
    id.dwo_name()
}

/// The part's identifier, the only proof that it is the right one.
fn first_id(part: &Dwarf<Cursor>) -> Option<DwoId> {
    let header = part.units().next().ok()??;
    part.unit(header).ok()?.dwo_id
}

/// The path the compiler recorded.
fn path(asked: &SplitDwarfLoad<Cursor>) -> Option<PathBuf> {
    let read = |cursor: &Cursor| {
        let bytes = cursor.bytes(MAX_PATH_BYTES).ok()?;
        Some(PathBuf::from(OsString::from_vec(bytes)))
    };
    let path = read(asked.path.as_ref()?)?;
    match asked.comp_dir.as_ref() {
        Some(directory) => Some(read(directory)?.join(path)),
        None => Some(path),
    }
}
