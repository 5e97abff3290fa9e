//! Sections of debug files, read page by page.
//!
//! In: an open file and where its sections are. Out: [`Cursor`]s, through which libraries read. Of
//! uncompressed sections only the pages used last are kept, least recently used first out; compressed ones
//! are unpacked whole. Never holds more than the [`DwarfBudget`] grants.

use super::budget::DwarfBudget;
use crate::object::{DebugSection, Packing};
use gimli::{Error, Reader, ReaderOffsetId, Result, RunTimeEndian};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

/// The size of a page, in bytes.
const PAGE_BYTES: usize = 32 << 10;

/// The least number of pages that are kept, whatever the budget.
const MIN_PAGES: usize = 16;

/// Searching through so many bytes counts as one step.
const BYTES_A_STEP: u64 = 16;

/// The section's number in a marker; the bits below are the offset.
const NUMBER_SHIFT: u32 = 40;

/// The bytes of a page, and when they were last used.
struct Page {
    bytes: Rc<[u8]>,
    used: u64,
}

/// The cached pages of all sections.
pub(super) struct Pages {
    pub(super) budget: DwarfBudget,
    most: usize,
    kept: RefCell<HashMap<(u64, u64), Page>>,
    // Pages that were evicted.
    gone: RefCell<HashSet<(u64, u64)>>,
    used: Cell<u64>,
    again: Cell<u64>,
    sections: Cell<u64>,
}

impl Pages {
    pub(super) fn new(budget: DwarfBudget) -> Self {
        let most = usize::try_from(budget.page_bytes()).unwrap_or(usize::MAX) / PAGE_BYTES;
        Self {
            budget,
            most: most.max(MIN_PAGES),
            kept: RefCell::default(),
            gone: RefCell::default(),
            used: Cell::new(0),
            again: Cell::new(0),
            sections: Cell::new(0),
        }
    }

    /// How many bytes were read again after eviction.
    pub(super) fn bytes_again(&self) -> u64 {
        self.again.get() * PAGE_BYTES as u64
    }

    fn get(&self, key: (u64, u64), read: impl FnOnce() -> Result<Rc<[u8]>>) -> Result<Rc<[u8]>> {
        let used = self.used.get() + 1;
        self.used.set(used);
        let mut kept = self.kept.borrow_mut();
        if let Some(page) = kept.get_mut(&key) {
            page.used = used;
            return Ok(Rc::clone(&page.bytes));
        }
        if kept.len() >= self.most {
            let oldest = kept.iter().min_by_key(|(_, page)| page.used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                kept.remove(&oldest);
                self.gone.borrow_mut().insert(oldest);
            }
        }
        if self.gone.borrow().contains(&key) {
            self.again.set(self.again.get() + 1);
        }
        let bytes = read()?;
        kept.insert(
            key,
            Page {
                bytes: Rc::clone(&bytes),
                used,
            },
        );
        Ok(bytes)
    }
}

/// Where a section's bytes are.
enum Bytes {
    Unpacked(Vec<u8>),
    Stored {
        file: Rc<File>,
        start: u64,
        // The page used last.
        latest: RefCell<Option<(u64, Rc<[u8]>)>>,
    },
}

/// One section.
pub(super) struct Section {
    bytes: Bytes,
    len: u64,
    number: u64,
    endian: RunTimeEndian,
    pages: Rc<Pages>,
}

impl Section {
    /// A section of a file; none if it cannot be unpacked.
    pub(super) fn open(
        file: &Rc<File>,
        section: &DebugSection,
        endian: RunTimeEndian,
        pages: &Rc<Pages>,
    ) -> Option<Self> {
        if section.packing != Packing::None {
            return Self::read(file, section, endian, pages);
        }
        let bytes = Bytes::Stored {
            file: Rc::clone(file),
            start: section.file.start,
            latest: RefCell::default(),
        };
        Some(Self::new(bytes, section.bytes, endian, pages))
    }

    /// A section of a file, read whole; none if it cannot be read.
    pub(super) fn read(
        file: &File,
        section: &DebugSection,
        endian: RunTimeEndian,
        pages: &Rc<Pages>,
    ) -> Option<Self> {
        if !pages.budget.grant(section.bytes) {
            return None;
        }
        let mut bytes = section.read(file)?;
        bytes.shrink_to_fit();
        Some(Self::new(
            Bytes::Unpacked(bytes),
            section.bytes,
            endian,
            pages,
        ))
    }

    /// An empty section.
    pub(super) fn empty(endian: RunTimeEndian, pages: &Rc<Pages>) -> Self {
        Self::new(Bytes::Unpacked(Vec::new()), 0, endian, pages)
    }

    fn new(bytes: Bytes, len: u64, endian: RunTimeEndian, pages: &Rc<Pages>) -> Self {
        let number = pages.sections.get();
        pages.sections.set(number + 1);
        Self {
            bytes,
            len,
            number,
            endian,
            pages: Rc::clone(pages),
        }
    }

    /// Copies the bytes at an offset, all of which must be in the section.
    fn copy(&self, at: u64, to: &mut [u8]) -> Result<()> {
        match &self.bytes {
            Bytes::Unpacked(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let from = at.checked_add(to.len()).and_then(|end| bytes.get(at..end));
                to.copy_from_slice(from.ok_or(Error::Io)?);
                Ok(())
            }
            Bytes::Stored { latest, .. } => {
                let (page, into) = place(at);
                if let Some((number, bytes)) = &*latest.borrow()
                    && *number == page
                    && let Some(from) = bytes.get(into..into + to.len())
                {
                    to.copy_from_slice(from);
                    return Ok(());
                }
                self.copy_from_pages(at, to)
            }
        }
    }

    #[cold]
    fn copy_from_pages(&self, mut at: u64, mut to: &mut [u8]) -> Result<()> {
        while !to.is_empty() {
            let into = place(at).1;
            let page = self.page(at)?;
            let here = page.get(into..).unwrap_or_default();
            let count = here.len().min(to.len());
            if count == 0 {
                return Err(Error::Io);
            }
            let (now, later) = to.split_at_mut(count);
            now.copy_from_slice(&here[..count]);
            to = later;
            at += count as u64;
        }
        Ok(())
    }

    /// The page of a stored section that contains an offset.
    fn page(&self, at: u64) -> Result<Rc<[u8]>> {
        let Bytes::Stored {
            file,
            start,
            latest,
        } = &self.bytes
        else {
            return Err(Error::Io);
        };
        let number = place(at).0;
        if let Some((latest, bytes)) = &*latest.borrow()
            && *latest == number
        {
            return Ok(Rc::clone(bytes));
        }
        let bytes = self.pages.get((self.number, number), || {
            let from = number * PAGE_BYTES as u64;
            let count = (self.len - from).min(PAGE_BYTES as u64);
            let mut bytes = vec![0; usize::try_from(count).map_err(|_| Error::Io)?];
            let from = start.checked_add(from).ok_or(Error::Io)?;
            file.read_exact_at(&mut bytes, from)
                .map_err(|_| Error::Io)?;
            Ok(bytes.into())
        })?;
        *latest.borrow_mut() = Some((number, Rc::clone(&bytes)));
        Ok(bytes)
    }

    /// The distance from an offset to the first such byte before `end`.
    fn find(&self, byte: u8, at: u64, end: u64) -> Result<Option<u64>> {
        let mut from = at;
        while from < end {
            let page;
            let here = match &self.bytes {
                Bytes::Unpacked(bytes) => {
                    let from = usize::try_from(from).unwrap_or(usize::MAX);
                    bytes.get(from..).unwrap_or_default()
                }
                Bytes::Stored { .. } => {
                    page = self.page(from)?;
                    page.get(place(from).1..).unwrap_or_default()
                }
            };
            let most = usize::try_from(end - from).unwrap_or(usize::MAX);
            let here = &here[..here.len().min(most)];
            if here.is_empty() {
                return Err(Error::Io);
            }
            let found = here.iter().position(|known| *known == byte);
            let looked_at = found.unwrap_or(here.len()) as u64;
            if !self.pages.budget.step(1 + looked_at / BYTES_A_STEP) {
                return Err(Error::Io);
            }
            if found.is_some() {
                return Ok(Some(from + looked_at - at));
            }
            from += looked_at;
        }
        Ok(None)
    }
}

/// The page of an offset, and the offset in that page.
fn place(at: u64) -> (u64, usize) {
    let bytes = PAGE_BYTES as u64;
    (at / bytes, (at % bytes) as usize)
}

/// A range of a section, read from its beginning.
#[derive(Clone)]
pub(super) struct Cursor {
    section: Rc<Section>,
    at: u64,
    end: u64,
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#x}..{:#x}", self.at, self.end)
    }
}

impl Cursor {
    pub(super) fn new(section: &Rc<Section>) -> Self {
        Self {
            section: Rc::clone(section),
            at: 0,
            end: section.len,
        }
    }

    fn left(&self) -> u64 {
        self.end - self.at
    }

    fn too_short<T>(&self) -> Result<T> {
        Err(Error::UnexpectedEof(self.offset_id()))
    }

    /// The bytes up to the end, cut if there are very many.
    pub(super) fn bytes(&self, most: usize) -> Result<Vec<u8>> {
        let count = usize::try_from(self.left()).unwrap_or(usize::MAX).min(most);
        let budget = &self.section.pages.budget;
        if !budget.grant(count as u64) || !budget.step(1 + count as u64 / BYTES_A_STEP) {
            return Err(Error::Io);
        }
        let mut bytes = vec![0; count];
        self.section.copy(self.at, &mut bytes)?;
        Ok(bytes)
    }
}

impl Reader for Cursor {
    type Endian = RunTimeEndian;
    type Offset = usize;

    fn endian(&self) -> RunTimeEndian {
        self.section.endian
    }

    fn len(&self) -> usize {
        usize::try_from(self.left()).unwrap_or(usize::MAX)
    }

    fn empty(&mut self) {
        self.end = self.at;
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        if len as u64 > self.left() {
            return self.too_short();
        }
        self.end = self.at + len as u64;
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> usize {
        usize::try_from(self.at.saturating_sub(base.at)).unwrap_or(usize::MAX)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId((self.section.number << NUMBER_SHIFT) + self.at)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let at = id.0.checked_sub(self.section.number << NUMBER_SHIFT)?;
        (self.at..=self.end)
            .contains(&at)
            .then(|| usize::try_from(at - self.at).ok())
            .flatten()
    }

    fn find(&self, byte: u8) -> Result<usize> {
        match self.section.find(byte, self.at, self.end)? {
            Some(found) => usize::try_from(found).map_err(|_| Error::Io),
            None => self.too_short(),
        }
    }

    fn skip(&mut self, len: usize) -> Result<()> {
        if len as u64 > self.left() {
            return self.too_short();
        }
        self.at += len as u64;
        Ok(())
    }

    fn split(&mut self, len: usize) -> Result<Self> {
        let mut first = self.clone();
        first.truncate(len)?;
        self.skip(len)?;
        Ok(first)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.bytes(usize::MAX).map(Cow::Owned)
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        let text = String::from_utf8(self.bytes(usize::MAX)?);
        text.map(Cow::Owned).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        let bytes = self.bytes(usize::MAX)?;
        Ok(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        let count = buffer.len() as u64;
        if count > self.left() {
            return self.too_short();
        }
        if !self.section.pages.budget.step(1) {
            return Err(Error::Io);
        }
        self.section.copy(self.at, buffer)?;
        self.at += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
