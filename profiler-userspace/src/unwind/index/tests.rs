use super::*;
use crate::object::{ElfAddress, FrameSections, Part};
use crate::unwind::{Depth, UnwindTable, compact};
use gimli::BaseAddresses;
use profiler_common::abi::{READ_TOGETHER_BITS, Rule};
use proptest::prelude::*;
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

fn this_program() -> File {
    File::open("/proc/self/exe").unwrap()
}

/// Where a large table is read in stretches, each has the rows of the whole.
#[test]
fn stretches_have_the_rows_that_the_whole_section_has() {
    const STEP: usize = 101;
    let file = this_program();
    let outline = UnwindTable::read_expecting(&file, Depth::Outline, None, |_| ()).unwrap();
    let whole = UnwindTable::read_expecting(&file, Depth::Described, None, |_| ()).unwrap();
    assert!(outline.rows.len() * 100 < whole.rows.len());
    let code: Vec<_> = whole
        .ranges
        .iter()
        .map(|range| range.addresses.clone())
        .collect();
    let text = code
        .iter()
        .max_by_key(|code| code.end - code.start)
        .unwrap();
    let (mut compared, mut undescribed) = (0, 0);
    for number in [1, 2, 5] {
        let stretch = (text.start >> READ_TOGETHER_BITS) + number;
        let stretch = stretch << READ_TOGETHER_BITS..(stretch + 1) << READ_TOGETHER_BITS;
        let places = outline.index.as_ref().unwrap();
        let mut index = FrameIndex::open(&file, places).unwrap();
        let found = read(&mut index, std::slice::from_ref(&stretch), &code);
        assert_eq!(found.statistics.broken, 0);
        let mut rows = compact::lay_out(std::slice::from_ref(&stretch), &found);
        rows.rules = found.rules.rules().to_vec();
        for address in stretch.step_by(STEP).map(ElfAddress) {
            let (known, expected) = (outline.rule_at(address), whole.rule_at(address));
            compared += 1;
            match known {
                Some(Rule::UNREAD) => assert_eq!(rows.rule_at(address), expected, "{address:?}"),
                known => {
                    assert_eq!(known, expected, "{address:?}");
                    undescribed += 1;
                }
            }
        }
    }
    assert!(undescribed * 100 < compared, "{undescribed} of {compared}");
}

/// A file with an index at this address with these entries, and a section behind it that begins so.
fn index(address: u64, entries: &[(i32, i32)], section: &[u8]) -> (File, FrameSections) {
    let mut bytes = [1, 0x1b, 0x03, 0x3b].to_vec();
    bytes.extend(0i32.to_le_bytes());
    bytes.extend((entries.len() as u32).to_le_bytes());
    for (begin, description) in entries {
        bytes.extend(begin.to_le_bytes());
        bytes.extend(description.to_le_bytes());
    }
    let place = |address, offset, bytes| Part {
        address,
        offset,
        bytes,
    };
    let index = place(address, 0, bytes.len() as u64);
    let frames = place(0x1000, index.bytes, 300 << 10);
    bytes.extend(section);
    bytes.resize((index.bytes + frames.bytes) as usize, 0);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let bases = BaseAddresses::default();
    let places = FrameSections {
        header: Some(index),
        frames,
        bases,
        steps: Arc::default(),
    };
    (file, places)
}

#[test]
fn an_index_out_of_order_or_cut_is_not_used() {
    let code = 0..1 << 40;
    let code = std::slice::from_ref(&code);
    let runs = |entries: &[(i32, i32)], cut| {
        let (file, mut places) = index(0x2000, entries, &[]);
        places.header.as_mut().unwrap().bytes -= cut;
        described(&mut FrameIndex::open(&file, &places)?, code)
    };
    let near = [(0x100, 0x10), (0x200, 0x20)];
    // Where the last one ends is not known.
    let first = std::iter::once(0x2100..0x2200);
    assert_eq!(runs(&near, 0), Some(first.collect()));
    assert_eq!(runs(&near, 1), None);
    assert_eq!(runs(&[(0x200, 0), (0x100, 0)], 0), None);
    assert_eq!(runs(&[], 0), None);
}

#[test]
fn with_steps_the_same_description_is_found() {
    let entries: Vec<(i32, i32)> = (0..2000).map(|at| (0x100 + at / 3 * 16, 0)).collect();
    let (file, mut places) = index(0, &entries, &[]);
    let mut without = FrameIndex::open(&file, &places).unwrap();
    places.steps = without.steps();
    assert_eq!(places.steps.len(), 4);
    let mut with = FrameIndex::open(&file, &places).unwrap();
    for address in 0..0x4000 {
        let wanted = entries.partition_point(|entry| (entry.0 as u64) < address);
        assert_eq!(with.first_from(address), wanted);
        assert_eq!(without.first_from(address), wanted);
    }
}

#[test]
fn one_description_is_not_read_again_and_again() {
    const BYTES: u32 = 200 << 10;
    // Version 1, no augmentation, factors of 1 and -8, the return address in register 16.
    let mut frames = [12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0, 0, 0].to_vec();
    frames.extend((BYTES - 4).to_le_bytes());
    frames.extend(20u32.to_le_bytes());
    frames.extend(0x100u64.to_le_bytes());
    frames.extend(0x80u64.to_le_bytes());
    let (file, places) = index(0, &[(0x100, 0x1010); 100], &frames);
    let mut index = FrameIndex::open(&file, &places).unwrap();
    let wanted = 0..1 << 40;
    let wanted = std::slice::from_ref(&wanted);
    let found = read(&mut index, wanted, wanted);
    assert_eq!(found.stretches.len(), 1);
    assert_eq!(found.statistics.broken, 99);
}

proptest! {
    #[test]
    fn any_index_leads_nowhere_but_into_code(
        entries in proptest::collection::vec((any::<i32>(), any::<i32>()), 1..50),
        address: u64,
    ) {
        let mut entries = entries;
        entries.sort();
        let (file, places) = index(address, &entries, &[]);
        let code = 0..u64::MAX / 2;
        let code = std::slice::from_ref(&code);
        let mut index = FrameIndex::open(&file, &places).unwrap();
        if let Some(runs) = described(&mut index, code) {
            prop_assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!(runs.iter().all(|run| run.start < run.end));
        }
        read(&mut index, code, code);
    }
}
