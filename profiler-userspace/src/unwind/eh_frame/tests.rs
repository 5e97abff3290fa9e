use super::*;
use crate::object::Image;
use crate::unwind::source::Large;
use proptest::prelude::{any, prop_assert_eq, proptest};
use std::fs::File;

#[test]
fn an_early_end_of_a_section_is_counted_once() {
    let file = File::open("/proc/self/exe").unwrap();
    let sources = Sources::find(&Image::read(&file).unwrap(), Large::Read).unwrap();
    let bytes = &sources.eh_frame.as_ref().unwrap().bytes;
    let read = |bytes: &[u8]| {
        let mut found = UnwindFindings::default();
        let section = EhFrame::from(EndianSlice::new(bytes, LittleEndian));
        super::read(&section, &sources, &mut found);
        found
    };
    let whole = read(bytes);
    assert!(whole.stretches.len() > 1000);
    assert_eq!(whole.statistics.broken, 0);
    // The last description has lost its end, and there is no terminator.
    let cut = read(&bytes[..bytes.len() - 9]);
    assert_eq!(cut.stretches.len(), whole.stretches.len() - 1);
    assert_eq!(cut.statistics.broken, 1);
}

/// All that was found, in words that can be compared.
fn words(found: &UnwindFindings) -> (String, Vec<Rule>) {
    let said = (&found.stretches, &found.changes, found.statistics);
    (format!("{said:?}"), found.rules.rules().to_vec())
}

/// Reads a section twice: with the usual reader where it can, and without. Returns how many descriptions that one read.
fn read_twice(
    bytes: &[u8],
    bases: &BaseAddresses,
    code: &[Range<u64>],
) -> (usize, [UnwindFindings; 2]) {
    let section = EhFrame::from(EndianSlice::new(bytes, LittleEndian));
    let mut usual = 0;
    let mut both = [UnwindFindings::default(), UnwindFindings::default()];
    let mut readings = [(); 2].map(|()| Reading::of(&section, bases));
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let [quick, general] = &mut readings;
        let Some(common) = quick.common(partial.cie_offset()) else {
            continue;
        };
        let offset = partial.offset();
        if quick.take_usual(&bytes[offset..], offset, &common, code, &mut both[0]) {
            usual += 1;
        } else {
            quick.take_any(&partial, &common, code, &mut both[0]);
        }
        general.take_any(&partial, &common, code, &mut both[1]);
    }
    (usual, both)
}

#[test]
fn nearly_all_descriptions_are_usual_and_mean_the_same() {
    let file = File::open("/proc/self/exe").unwrap();
    let sources = Sources::find(&Image::read(&file).unwrap(), Large::Read).unwrap();
    let bytes = &sources.eh_frame.as_ref().unwrap().bytes;
    let (usual, [quick, general]) = read_twice(bytes, &sources.bases, &sources.code);
    assert_eq!(words(&quick), words(&general));
    assert!(usual * 10 > quick.stretches.len() * 9, "{usual}");
}

proptest! {
    #[test]
    fn whatever_the_instructions_are_both_readers_say_the_same(
        instructions in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        // A shared entry: `zR`, factors 1 and -8, addresses as usual, `DW_CFA_def_cfa rsp 8`, `DW_CFA_offset rip 1`.
        let common = b"\x14\0\0\0\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0";
        let mut bytes = common.to_vec();
        let length = 13 + instructions.len() as u32;
        bytes.extend(length.to_le_bytes());
        bytes.extend((common.len() as u32 + 4).to_le_bytes());
        // Code of 64 bytes, 0x1000 behind its description's address.
        bytes.extend(0x1000u32.to_le_bytes());
        bytes.extend(64u32.to_le_bytes());
        bytes.push(0);
        bytes.extend(&instructions);
        let bases = BaseAddresses::default().set_eh_frame(0x10_0000);
        let code = 0x10_0000..0x20_0000;
        let (_, [quick, general]) = read_twice(&bytes, &bases, std::slice::from_ref(&code));
        prop_assert_eq!(words(&quick), words(&general));
        prop_assert_eq!(quick.stretches.len(), 1);
    }
}
