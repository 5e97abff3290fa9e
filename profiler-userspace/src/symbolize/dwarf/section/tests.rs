use super::*;
use proptest::prelude::*;
use std::io::Write as _;

fn stored(bytes: &[u8], allowed: u64) -> Cursor {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"before").unwrap();
    file.write_all(bytes).unwrap();
    file.write_all(b"behind\0").unwrap();
    let section = DebugSection {
        name: (*b".debug_info").into(),
        file: 6..6 + bytes.len() as u64,
        packing: Packing::None,
        bytes: bytes.len() as u64,
    };
    let pages = Rc::new(Pages::new(DwarfBudget::new(allowed)));
    let section = Section::open(&Rc::new(file), &section, RunTimeEndian::Little, &pages);
    Cursor::new(&Rc::new(section.unwrap()))
}

fn plain(bytes: &[u8]) -> gimli::EndianSlice<'_, RunTimeEndian> {
    gimli::EndianSlice::new(bytes, RunTimeEndian::Little)
}

/// Does with a reader what `steps` say, and returns what came of it.
fn walk<R: Reader<Offset = usize>>(mut reader: R, steps: &[(u8, usize)]) -> Vec<String> {
    let start = reader.clone();
    let results = steps.iter().map(|(kind, count)| {
        let count = *count;
        let text = |bytes: Cow<'_, [u8]>| bytes.to_vec();
        let result = match kind % 9 {
            0 => reader.read_u8().map(u64::from).map(|one| vec![one]),
            1 => reader.read_u64().map(|one| vec![one]),
            2 => reader.skip(count).map(|()| vec![]),
            3 => reader.find((count % 256) as u8).map(|one| vec![one as u64]),
            4 => reader
                .split(count)
                .and_then(|part| Ok(text(part.to_slice()?).into_iter().map(u64::from).collect())),
            5 => reader
                .read_null_terminated_slice()
                .and_then(|part| Ok(text(part.to_slice()?).into_iter().map(u64::from).collect())),
            6 => reader.read_uleb128().map(|one| vec![one]),
            7 => reader.clone().truncate(count).map(|()| vec![]),
            _ => {
                let mut many = vec![0; count % 300];
                let read = reader.read_slice(&mut many);
                read.map(|()| many.into_iter().map(u64::from).collect())
            }
        };
        let places = (
            reader.len(),
            reader.offset_from(&start),
            start.lookup_offset_id(reader.offset_id()),
        );
        format!("{:?} {places:?}", result.ok())
    });
    results.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_section_in_pages_reads_as_one_in_memory(
        seed in any::<u64>(),
        len in 0usize..5 * PAGE_BYTES,
        steps in proptest::collection::vec((any::<u8>(), 0usize..PAGE_BYTES), 0..60),
    ) {
        let mut state = seed | 1;
        let bytes: Vec<u8> = (0..len).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Zeros, so that there are strings; few, so that some are longer than a page.
            match state >> 40 & 0x3fff { 0 => 0, other => (other as u8).max(1) }
        }).collect();
        prop_assert_eq!(walk(stored(&bytes, 64 << 20), &steps), walk(plain(&bytes), &steps));
    }
}

#[test]
fn evicted_pages_are_counted_when_read_again() {
    let bytes: Vec<u8> = (0..(MIN_PAGES + 4) * PAGE_BYTES)
        .map(|at| (at / PAGE_BYTES) as u8)
        .collect();
    let cursor = stored(&bytes, 1 << 20);
    let pages = Rc::clone(&cursor.section.pages);
    let look = |page: usize| {
        let mut there = cursor.clone();
        there.skip(page * PAGE_BYTES).unwrap();
        assert_eq!(there.read_u8().unwrap(), page as u8);
    };
    for page in 0..MIN_PAGES {
        look(page);
    }
    look(0);
    assert_eq!(pages.bytes_again(), 0);
    // The first was looked at since, so the second makes room.
    look(MIN_PAGES);
    look(0);
    assert_eq!(pages.bytes_again(), 0);
    look(1);
    assert_eq!(pages.bytes_again(), PAGE_BYTES as u64);
    assert_eq!(pages.kept.borrow().len(), MIN_PAGES);
}

#[test]
fn bytes_beyond_the_budget_are_not_read() {
    let bytes = vec![1; 4 << 20];
    let cursor = stored(&bytes, 4 << 20);
    assert!(cursor.bytes(1 << 20).is_ok());
    assert!(cursor.to_slice().is_err());
    assert!(cursor.section.pages.budget.is_over());
    // Nor is a file that ends before its section does.
    let mut short = stored(b"abc", 1 << 20);
    let section = Rc::get_mut(&mut short.section).unwrap();
    section.len = 100;
    short.end = 100;
    assert!(short.bytes(100).is_err());
}
