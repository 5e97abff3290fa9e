//! Index of the descriptions of code (FDEs) in an image's `.eh_frame`.
//!
//! In: an [`Image`], or the sections of one. Out: where each description's code begins and ends, and where the
//! description is. Read where it is asked for, by bisecting `.eh_frame_hdr`; where there is none, the whole section is
//! scanned. Trusts no size and no offset in a file. See the Linux Standard Base 5.0, core, section 10.6.

mod window;

use super::{Image, Part};
use gimli::{
    BaseAddresses, CallFrameInstruction, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Pointer,
    UnwindSection as _,
};
use memmap2::{Advice, MmapMut};
use object::elf::PT_GNU_EH_FRAME;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use window::Window;

/// The most bytes of the section. The largest known, a browser's, has a third of that.
pub const MAX_FRAMES_BYTES: u64 = 64 << 20;

/// The most bytes of `.eh_frame_hdr`: eight for each description, and few have less than this in the section itself.
const MAX_HEADER_BYTES: u64 = 16 << 20;

/// The head of `.eh_frame_hdr` as all linkers write it: the version; the addresses of the section and of functions as
/// signed halves, relative to themselves and to the header; an unsigned number of entries.
const HEAD: u32 = u32::from_le_bytes([1, 0x1b, 0x03, 0x3b]);

/// The bytes of the head, and of an entry.
const HEAD_BYTES: usize = 12;
const ENTRY_BYTES: usize = 8;

/// So many bytes of the section are read at once.
const BLOCK_BYTES: usize = 4096;

/// From one of [`FrameSections::steps`] to the next: the entries of a block.
const STEP: usize = BLOCK_BYTES / ENTRY_BYTES;

/// From so many searches on the steps are read, which takes as long as a dozen searches.
const MANY_SEARCHES: usize = 16;

/// Descriptions of more bytes than this are left out: ten times the largest known.
const MAX_DESCRIPTION_BYTES: usize = 1 << 20;

/// Shared entries of more bytes than this are not read: they have some forty, and each description reads its own.
const MAX_SHARED_BYTES: usize = 4096;

/// Where the descriptions of an image are, and their index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSections {
    /// `.eh_frame_hdr`, if there is one.
    pub header: Option<Part>,
    /// `.eh_frame`.
    pub frames: Part,
    /// The bases that addresses in them may be relative to.
    pub bases: BaseAddresses,
    /// Where the code of each so manieth description begins; empty where nobody [asked](FrameIndex::steps).
    pub steps: Arc<[u64]>,
}

impl FrameSections {
    /// Those of an image, by its section headers, or by the program header of the index.
    pub fn of(image: &Image<'_>) -> Option<Self> {
        let segment = || image.of_type(PT_GNU_EH_FRAME).next().map(Part::from);
        let header = image.section(b".eh_frame_hdr").map(Part::from);
        let header = header.or_else(segment);
        let frames = image.section(b".eh_frame").map(Part::from);
        let frames = frames.or_else(|| by_header(image, header?.address))?;
        Some(Self {
            header,
            frames,
            bases: bases(image).set_eh_frame(frames.address),
            steps: Arc::default(),
        })
    }
}

/// `.eh_frame` as its index says: it ends somewhere in its segment.
fn by_header(image: &Image<'_>, header: u64) -> Option<Part> {
    let head = image.bytes(header, 64);
    let bases = BaseAddresses::default().set_eh_frame_hdr(header);
    let parsed = EhFrameHdr::from(EndianSlice::new(&head, LittleEndian)).parse(&bases, 8);
    let Pointer::Direct(address) = parsed.ok()?.eh_frame_ptr() else {
        return None;
    };
    let part = image.loaded_at(address)?;
    let bytes = part.bytes.min(MAX_FRAMES_BYTES);
    Some(Part { bytes, ..part })
}

/// The bases that addresses in descriptions may be relative to.
pub fn bases(image: &Image<'_>) -> BaseAddresses {
    let mut bases = BaseAddresses::default();
    if let Some(text) = image.section(b".text").map(Part::from) {
        bases = bases.set_text(text.address);
    }
    if let Some(got) = image.section(b".got").map(Part::from) {
        bases = bases.set_got(got.address);
    }
    bases
}

/// One description.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The addresses of its code.
    pub addresses: Range<u64>,
    /// Where the next entry is in the section.
    pub next: usize,
    /// Its first instruction.
    pub first: Option<CallFrameInstruction<usize>>,
}

/// The descriptions of an image in the order of their code, and what was read of them.
pub struct FrameIndex<'f> {
    entries: Entries<'f>,
    /// Descriptions on their way to where they are copied.
    copied: Window<'f>,
    /// The shared entry that was read last.
    shared: Option<usize>,
    frames: Cached<'f>,
    bases: BaseAddresses,
    steps: Arc<[u64]>,
    /// How often the index was searched.
    searches: usize,
}

/// Where each description's code begins, ascending, and where the description is.
enum Entries<'f> {
    /// `.eh_frame_hdr`, and how many entries it has.
    Header(Window<'f>, usize),
    /// The addresses of code, and offsets in the section.
    Scanned(Vec<(u64, usize)>),
}

impl<'f> FrameIndex<'f> {
    /// That of an image; none if it has no descriptions.
    pub fn of(image: &Image<'f>) -> Option<Self> {
        let sections = FrameSections::of(image)?;
        Self::open(image.file, &sections).or_else(|| Self::scan(image.file, &sections))
    }

    /// By the header; none if there is none, or not of the usual kind.
    pub fn open(file: &'f File, sections: &FrameSections) -> Option<Self> {
        let header = sections.header?;
        if header.bytes > MAX_HEADER_BYTES {
            return None;
        }
        let mut entries = Window::new(file, header);
        let kinds = half(&mut entries, 0)?;
        let count = usize::try_from(half(&mut entries, 8)?).ok()?;
        let bytes = usize::try_from(header.bytes).ok()?;
        let is_whole = count <= bytes.saturating_sub(HEAD_BYTES) / ENTRY_BYTES;
        (kinds == HEAD && is_whole).then_some(Self {
            entries: Entries::Header(entries, count),
            copied: Window::new(file, sections.frames),
            shared: None,
            frames: Cached::new(file, sections.frames, MAX_FRAMES_BYTES)?,
            bases: sections.bases.clone(),
            steps: Arc::clone(&sections.steps),
            searches: 0,
        })
    }

    fn scan(file: &'f File, sections: &FrameSections) -> Option<Self> {
        let mut index = Self {
            entries: Entries::Scanned(Vec::new()),
            copied: Window::new(file, sections.frames),
            shared: None,
            frames: Cached::new(file, sections.frames, MAX_FRAMES_BYTES)?,
            bases: sections.bases.clone(),
            steps: Arc::default(),
            searches: 0,
        };
        let (mut entries, mut at) = (Vec::new(), 0);
        while let Some(bytes) = index.frames.read_entry(at) {
            entries.extend(index.frame_at(at).map(|frame| (frame.addresses.start, at)));
            at += bytes;
        }
        entries.sort_unstable();
        index.entries = Entries::Scanned(entries);
        Some(index)
    }

    /// How many descriptions there are.
    pub fn count(&self) -> usize {
        match &self.entries {
            Entries::Header(_, count) => *count,
            Entries::Scanned(entries) => entries.len(),
        }
    }

    /// Bytes of the section.
    pub fn section_bytes(&self) -> usize {
        self.frames.bytes.len()
    }

    /// The section, as far as it was read, and the bases of its addresses.
    pub fn section(&self) -> (EhFrame<EndianSlice<'_, LittleEndian>>, &BaseAddresses) {
        (self.frames.section(), &self.bases)
    }

    /// Where the code of a description begins.
    pub fn begin(&mut self, number: usize) -> Option<u64> {
        match &mut self.entries {
            Entries::Header(header, _) => relative(header, HEAD_BYTES + number * ENTRY_BYTES),
            Entries::Scanned(entries) => Some(entries.get(number)?.0),
        }
    }

    /// Where a description is in the section.
    pub fn offset(&mut self, number: usize) -> Option<usize> {
        match &mut self.entries {
            Entries::Header(header, _) => {
                let address = relative(header, HEAD_BYTES + number * ENTRY_BYTES + 4)?;
                usize::try_from(address.checked_sub(self.frames.part.address)?).ok()
            }
            Entries::Scanned(entries) => Some(entries.get(number)?.1),
        }
    }

    /// The number of the first description whose code does not begin before an address.
    pub fn first_from(&mut self, address: u64) -> usize {
        self.searches += 1;
        if self.searches == MANY_SEARCHES && self.steps.is_empty() {
            self.steps = self.steps();
        }
        let mut range = 0..self.count();
        let behind = self.steps.partition_point(|begin| *begin < address);
        if let Some(before) = behind.checked_sub(1) {
            range = before * STEP..range.end.min(behind * STEP);
        }
        while range.start < range.end {
            let middle = range.start.midpoint(range.end);
            match self.begin(middle).is_some_and(|begin| begin < address) {
                true => range.start = middle + 1,
                false => range.end = middle,
            }
        }
        range.start
    }

    /// Where the code begins of each so manieth description, for [`FrameSections`]: with these, [`first_from`](Self::first_from)
    /// need not read a dozen blocks of the header. For an index in order.
    pub fn steps(&mut self) -> Arc<[u64]> {
        (0..self.count())
            .step_by(STEP)
            .map_while(|number| self.begin(number))
            .collect()
    }

    /// A description, by its number.
    pub fn frame(&mut self, number: usize) -> Option<Frame> {
        let offset = self.offset(number)?;
        self.frame_at(offset)
    }

    /// The description at an offset in the section.
    pub fn frame_at(&mut self, offset: usize) -> Option<Frame> {
        let bytes = self.read(offset)?;
        let section = self.frames.section();
        let partial = section.partial_fde_from_offset(&self.bases, offset.into());
        let shared =
            |section: &EhFrame<_>, bases: &BaseAddresses, at| section.cie_from_offset(bases, at);
        let entry = partial.ok()?.parse(shared).ok()?;
        let begin = entry.initial_address();
        Some(Frame {
            addresses: begin..begin.checked_add(entry.len())?,
            next: offset + bytes,
            first: entry
                .instructions(&section, &self.bases)
                .next()
                .ok()
                .flatten(),
        })
    }

    /// Appends a description of at most so many bytes to others, and reads what it shares with them. Returns where it is.
    pub fn copy(
        &mut self,
        offset: usize,
        most: usize,
        others: &mut Vec<u8>,
    ) -> Option<Range<usize>> {
        let bytes = entry_bytes(half(&mut self.copied, offset)?).filter(|bytes| *bytes <= most)?;
        let pointer = offset.checked_add(4)?;
        let back = usize::try_from(half(&mut self.copied, pointer)?).ok()?;
        let shared = pointer.checked_sub(back)?;
        if self.shared != Some(shared) {
            let bytes = self.frames.read_entry(shared)?;
            self.shared = (bytes <= MAX_SHARED_BYTES).then_some(shared);
            self.shared?;
        }
        let begin = others.len();
        others.extend_from_slice(self.copied.get(offset, bytes)?);
        Some(begin..others.len())
    }

    /// Reads a description, whose bytes it returns, and what it shares with others.
    pub fn read(&mut self, offset: usize) -> Option<usize> {
        let bytes = self.frames.read_entry(offset)?;
        let pointer = offset + 4;
        let back = usize::try_from(self.frames.half(pointer)?).ok()?;
        let shared = self.frames.read_entry(pointer.checked_sub(back)?)?;
        (shared <= MAX_SHARED_BYTES).then_some(bytes)
    }
}

/// Bytes of an entry of the section that says that so many follow; none for one that is not believed.
fn entry_bytes(length: u32) -> Option<usize> {
    let bytes = usize::try_from(length).ok()?.checked_add(4)?;
    (8..=MAX_DESCRIPTION_BYTES)
        .contains(&bytes)
        .then_some(bytes)
}

/// The address that an entry of the header has here, relative to the header.
fn relative(header: &mut Window<'_>, at: usize) -> Option<u64> {
    let distance = half(header, at)?.cast_signed();
    Some(header.part.address.wrapping_add_signed(distance.into()))
}

fn half(window: &mut Window<'_>, at: usize) -> Option<u32> {
    let bytes = window.get(at, 4)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// A section of which only some is read; the rest is zero.
struct Cached<'f> {
    file: &'f File,
    part: Part,
    /// Memory that is never written to takes none.
    bytes: MmapMut,
    /// Which blocks were read.
    is_read: Vec<bool>,
}

impl<'f> Cached<'f> {
    fn new(file: &'f File, part: Part, max: u64) -> Option<Self> {
        let is_plausible = (1..=max).contains(&part.bytes);
        let length = usize::try_from(part.bytes).ok().filter(|_| is_plausible)?;
        let bytes = MmapMut::map_anon(length).ok()?;
        // Few of its pages are written to.
        let _advised = bytes.advise(Advice::NoHugePage);
        Some(Self {
            file,
            part,
            bytes,
            is_read: vec![false; length.div_ceil(BLOCK_BYTES)],
        })
    }

    fn section(&self) -> EhFrame<EndianSlice<'_, LittleEndian>> {
        EhFrame::from(EndianSlice::new(&self.bytes, LittleEndian))
    }

    /// Reads an entry of the section, and returns how many bytes it has.
    fn read_entry(&mut self, at: usize) -> Option<usize> {
        let bytes = entry_bytes(self.half(at)?)?;
        self.read(at, bytes)?;
        Some(bytes)
    }

    fn half(&mut self, at: usize) -> Option<u32> {
        self.read(at, 4)?;
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    /// Reads these bytes of the section.
    fn read(&mut self, at: usize, bytes: usize) -> Option<()> {
        let end = at.checked_add(bytes)?;
        if end > self.bytes.len() {
            return None;
        }
        for block in at / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            if self.is_read[block] {
                continue;
            }
            let begin = block * BLOCK_BYTES;
            let end = self.bytes.len().min(begin + BLOCK_BYTES);
            let offset = self.part.offset.checked_add(begin as u64)?;
            let block_bytes = &mut self.bytes[begin..end];
            self.file.read_exact_at(block_bytes, offset).ok()?;
            self.is_read[block] = true;
        }
        Some(())
    }
}
