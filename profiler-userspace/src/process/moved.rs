//! Text of files that processes moved to other memory in place, as they do to have huge pages under their code.
//!
//! In: the mappings of a process. Out: executable memory between those of a file that holds what the file has there, byte for
//! byte, and so has its names and its unwind instructions. Never believes an address alone: code that a program made for
//! itself may lie there, too.

use super::backing::{Backing, BackingId, Backings};
use super::liveness::Liveness;
use super::mapping::Moved;
use super::mappings::Reading;
use super::opening::{self, Owner};
use super::proc_maps::{self, Entry};
use super::{MappedFile, ProcessKey};
use crate::object::image::ProgramHeader;
use crate::object::{Image, Part};
use object::LittleEndian as Little;
use object::elf::{PF_X, PT_LOAD};
use object::read::elf::ProgramHeader as _;
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// How many pages are compared.
const COMPARED: u64 = 16;

/// A mapping of a file.
struct Beside {
    range: Range<u64>,
    offset: u64,
    backing: BackingId,
}

/// Finds text that was moved among the mappings that were read, and changes these to say so.
pub(super) fn find(
    process_key: ProcessKey,
    reading: &mut Reading,
    backings: &mut Backings,
    liveness: &Liveness,
) {
    let candidates: Vec<usize> = { reading.mappings.iter().enumerate() }
        .filter(|(_, mapping)| may_be_moved(backings.get(mapping.backing)))
        .map(|(at, _)| at)
        .collect();
    if candidates.is_empty() {
        return;
    }
    let (files, shared) = files(process_key.tgid, backings);
    let memory = File::open(format!("/proc/{}/mem", process_key.tgid)).ok();
    let mut objects = HashMap::new();
    for at in candidates {
        let mapping = &reading.mappings[at];
        let found = beside(&files, &mapping.range).find_map(|file| {
            let mapped = backings.get(file.backing).file()?;
            let object = objects.entry(file.backing).or_insert_with(|| {
                let owner = Owner::new(process_key, file.range.clone(), reading.taken);
                let code = backings.code(file.backing);
                let opened = opening::reach(mapped, &[owner], code, liveness).ok()?;
                let segments = Image::read(&opened.file.file).ok()?.segments;
                Some((opened.file.file, segments))
            });
            let (object, segments) = object.as_ref()?;
            let memory = memory.as_ref()?;
            let mut texts = texts_at(segments, file, &mapping.range);
            let text = texts.find(|text| is_same(object, text, memory, &mapping.range))?;
            Some((file.backing, text))
        });
        if let Some((backing, text)) = found {
            let mapping = &mut reading.mappings[at];
            let offset = shared.get(&mapping.range.start);
            mapping.moved = Some(offset.map_or(Moved::Anonymous, |offset| Moved::Shared(*offset)));
            mapping.backing = backing;
            mapping.offset = text.offset;
            mapping.range.end = mapping.range.start + text.bytes;
        }
    }
}

/// Whether text may have been moved there: memory, or a file that nobody else finds.
fn may_be_moved(backing: &Backing) -> bool {
    match backing {
        Backing::File(MappedFile { deleted, .. }) => *deleted,
        backing => backing.may_be_made(),
    }
}

/// All mappings of files that can be opened by their names; and the offsets of others in what the kernel holds as their
/// files, by their addresses.
fn files(tgid: u32, backings: &mut Backings) -> (Vec<Beside>, HashMap<u64, u64>) {
    let (mut files, mut shared) = (Vec::new(), HashMap::new());
    let Ok(maps) = File::open(format!("/proc/{tgid}/maps")) else {
        return (files, shared);
    };
    let of_file = |entry: Entry<'_>| {
        if !entry.number.is_none() && entry.name.starts_with(b"/") {
            let backing = backings.intern(&entry);
            if may_be_moved(backings.get(backing)) {
                shared.insert(entry.range.start, entry.offset);
            } else {
                files.push(Beside {
                    range: entry.range,
                    offset: entry.offset,
                    backing,
                });
            }
        }
        true
    };
    // Lines read before an error are right.
    let _ended = proc_maps::each(BufReader::new(maps), of_file);
    (files, shared)
}

/// The mappings of files that are the next ones below and above a range.
fn beside<'f>(files: &'f [Beside], range: &Range<u64>) -> impl Iterator<Item = &'f Beside> {
    let after = files.partition_point(|file| file.range.start < range.start);
    let below = after.checked_sub(1).and_then(|at| files.get(at));
    below.into_iter().chain(files.get(after))
}

/// The parts of the file's text that may belong at a range of addresses, and begin there, by where another part of the file
/// is. A page of the file may be in two segments, so there may be several.
fn texts_at<'s>(
    segments: &'s [ProgramHeader],
    beside: &Beside,
    range: &Range<u64>,
) -> impl Iterator<Item = Part> + use<'s> {
    let loads = || { segments.iter() }.filter(|segment| segment.p_type(Little) == PT_LOAD);
    let (offset, start) = (beside.offset, beside.range.start);
    // Segments are mapped from the beginning of a page on.
    let biases = loads().filter_map(move |load| {
        let part = Part::from(load);
        let end = part.offset.checked_add(part.bytes)?;
        let is_within = part.offset / PAGE * PAGE <= offset && offset < end;
        let place = part.address.wrapping_add(offset.wrapping_sub(part.offset));
        is_within.then(|| start.wrapping_sub(place))
    });
    let is_code = |load: &&ProgramHeader| load.p_flags(Little) & PF_X != 0;
    let range = range.clone();
    biases.flat_map(move |bias| {
        let address = range.start.wrapping_sub(bias);
        let bytes = range.end - range.start;
        loads().filter(is_code).filter_map(move |load| {
            let part = Part::from(load);
            let into = part.address % PAGE;
            let from = address.checked_sub(part.address - into)?;
            let left = part.bytes.checked_add(into)?.checked_sub(from)?;
            Some(Part {
                address,
                offset: part.offset.checked_sub(into)?.checked_add(from)?,
                bytes: bytes.min(left.checked_next_multiple_of(PAGE)?),
            })
            .filter(|text| text.bytes > 0)
        })
    })
}

/// Whether memory holds what a part of a file does. A debugger, or a probe, may have changed a few of the pages.
fn is_same(file: &File, text: &Part, memory: &File, range: &Range<u64>) -> bool {
    let pages = text.bytes / PAGE;
    let compared = pages.min(COMPARED);
    let mut same = 0;
    for number in 0..compared {
        let at = number * pages / compared * PAGE;
        let (mut ours, mut theirs) = ([0; PAGE as usize], [0; PAGE as usize]);
        // The offset is what the file says of itself.
        let read = file.read_at(&mut ours, text.offset.saturating_add(at));
        let read = read.unwrap_or(0);
        let is_read = memory.read_exact_at(&mut theirs, range.start + at).is_ok();
        same += u64::from(is_read && read > 0 && ours[..read] == theirs[..read]);
    }
    same > 0 && same * 4 >= compared * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_below_and_above_are_asked() {
        let backing = Backings::default().vdso();
        let files = [0x1000..0x2000, 0x5000..0x6000].map(|range| Beside {
            range,
            offset: 0,
            backing,
        });
        let starts = |range: Range<u64>| {
            let found = beside(&files, &range);
            found.map(|file| file.range.start).collect::<Vec<_>>()
        };
        assert_eq!(starts(0..0x1000), [0x1000]);
        assert_eq!(starts(0x3000..0x4000), [0x1000, 0x5000]);
        assert_eq!(starts(0x9000..0xa000), [0x5000]);
    }

    #[test]
    fn text_belongs_where_the_rest_of_its_file_says() {
        let file = File::open("/proc/self/exe").unwrap();
        let image = Image::read(&file).unwrap();
        let loads: Vec<Part> = image.of_type(PT_LOAD).map(Part::from).collect();
        let code = image
            .of_type(PT_LOAD)
            .position(|load| load.p_flags(Little) & PF_X != 0);
        let (first, code) = (loads[0], loads[code.unwrap()]);
        let bias = 0x7000_0000;
        let begin = |part: &Part| part.address / PAGE * PAGE + bias;
        let beside = Beside {
            range: begin(&first)..begin(&first) + PAGE,
            offset: first.offset / PAGE * PAGE,
            backing: Backings::default().vdso(),
        };
        let there = begin(&code) + PAGE..begin(&code) + 2 * PAGE;
        let text = texts_at(&image.segments, &beside, &there).next().unwrap();
        assert_eq!(text.offset, code.offset / PAGE * PAGE + PAGE);
        assert_eq!((text.address, text.bytes), (there.start - bias, PAGE));
        // Neither below the file nor behind it.
        for outside in [0..PAGE, bias * 8..bias * 8 + PAGE] {
            assert_eq!(texts_at(&image.segments, &beside, &outside).count(), 0);
        }
    }

    #[test]
    fn memory_with_other_bytes_is_not_the_files() {
        let file = File::open("/proc/self/exe").unwrap();
        let memory = File::open("/proc/self/mem").unwrap();
        let mut copy = vec![0; 4 * PAGE as usize];
        file.read_exact_at(&mut copy, 0).unwrap();
        let text = Part {
            address: 0,
            offset: 0,
            bytes: copy.len() as u64,
        };
        let is_same = |copy: &[u8]| {
            let start = copy.as_ptr() as u64;
            is_same(&file, &text, &memory, &(start..start + text.bytes))
        };
        assert!(is_same(&copy));
        copy[0] ^= 1;
        assert!(is_same(&copy), "a probe may have changed a page");
        copy[PAGE as usize] ^= 1;
        assert!(!is_same(&copy));
    }
}
