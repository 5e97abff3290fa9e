use super::*;
use crate::object::Bounded;
use std::fs::File;

/// A stretch of code, and the rules in it, each with how far from the beginning it starts to hold.
type Said = (Range<u64>, Vec<(u32, Rule)>);

/// What is said of each stretch, whatever the order in which rules were met.
fn said(found: &Found) -> Vec<Said> {
    let rules = found.rules.rules();
    let changes = |stretch: &Stretch| {
        let changes = stretch.changes.start as usize..stretch.changes.end as usize;
        let changes = found.changes[changes].iter();
        changes
            .map(|change| (change.after, rules[usize::from(change.rule)]))
            .collect()
    };
    let stretches = found.stretches.iter();
    stretches
        .map(|stretch| (stretch.addresses.clone(), changes(stretch)))
        .collect()
}

fn read_this_program(parts: usize, cut: impl Fn(&[u8]) -> &[u8]) -> Found {
    let file = File::open("/proc/self/exe").unwrap();
    let data = Bounded::with_budget(&file, 1 << 30);
    let sources = Sources::find(&data).unwrap();
    let section = sources.eh_frame.as_ref().unwrap();
    let section = EhFrame::from(EndianSlice::new(cut(&section.bytes), LittleEndian));
    let mut found = Found::default();
    read_in_parts(&section, &sources, parts, &mut found);
    found.sort();
    found
}

#[test]
fn a_section_gives_the_same_rows_read_in_any_parts() {
    let whole = read_this_program(1, |bytes| bytes);
    assert!(whole.stretches.len() > 1000);
    for parts in [2, 3, 7] {
        let found = read_this_program(parts, |bytes| bytes);
        assert_eq!(said(&found), said(&whole), "{parts} parts");
        assert_eq!(found.statistics, whole.statistics);
    }
}

#[test]
fn an_early_end_of_a_section_is_counted_once() {
    // The last description has lost its end, and there is no terminator.
    let cut = |bytes: &[u8]| -> Range<usize> { 0..bytes.len() - 9 };
    let whole = read_this_program(1, |bytes| &bytes[cut(bytes)]);
    assert_eq!(whole.statistics.broken, 1);
    let found = read_this_program(4, |bytes| &bytes[cut(bytes)]);
    assert_eq!(said(&found), said(&whole));
    assert_eq!(found.statistics, whole.statistics);
}

#[test]
fn more_parts_than_bytes_are_harmless() {
    let found = read_this_program(16, |bytes| &bytes[..8]);
    assert_eq!(found.stretches.len(), 0);
}
