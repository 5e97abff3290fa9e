use super::*;
use crate::object::Image;
use crate::unwind::source::Large;
use std::fs::File;

#[test]
fn an_early_end_of_a_section_is_counted_once() {
    let file = File::open("/proc/self/exe").unwrap();
    let sources = Sources::find(&Image::read(&file).unwrap(), Large::Read).unwrap();
    let bytes = &sources.eh_frame.as_ref().unwrap().bytes;
    let read = |bytes: &[u8]| {
        let mut found = Found::default();
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
