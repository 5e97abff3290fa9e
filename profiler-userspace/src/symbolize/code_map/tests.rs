use super::*;
use proptest::prelude::*;
use std::fs::File;
use std::io::Write as _;

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn symbols(addresses: &[u64], read: impl FnOnce(&mut Names<'_>)) -> Vec<Option<String>> {
    let mut names = Names::new(addresses);
    read(&mut names);
    let found = names.into_found();
    let name = |index: usize| String::from_utf8_lossy(&found.names[index]).into_owned();
    found.of.into_iter().map(|of| of.map(name)).collect()
}

fn map(text: &[u8], addresses: &[u64]) -> Vec<Option<String>> {
    symbols(addresses, |names| perf_map::read(&file(text), names))
}

fn dump(bytes: &[u8], addresses: &[u64]) -> Vec<Option<String>> {
    symbols(addresses, |names| jitdump::read(&file(bytes), names))
}

fn some(names: &[&str]) -> Vec<Option<String>> {
    let name = |name: &&str| (!name.is_empty()).then(|| (*name).to_owned());
    names.iter().map(name).collect()
}

#[test]
fn a_perf_map_line_names_exactly_its_range() {
    let text = b"1000 10 LazyCompile:~fib /a b/x.js:1\n0x2000 0x8 int A.b(int)\r\n";
    assert_eq!(
        map(text, &[0xfff, 0x1000, 0x100f, 0x1010, 0x2007, 0x2008]),
        some(&[
            "",
            "LazyCompile:~fib /a b/x.js:1",
            "LazyCompile:~fib /a b/x.js:1",
            "",
            "int A.b(int)",
            "",
        ])
    );
}

#[test]
fn the_last_definition_of_an_address_counts() {
    let text = b"1000 100 old\n1010 10 young\n3000 10 other\n1018 4 youngest\n";
    assert_eq!(
        map(text, &[0x1000, 0x1010, 0x1018, 0x101c, 0x1020]),
        some(&["old", "young", "youngest", "young", "old"])
    );
}

#[test]
fn malformed_perf_map_lines_are_skipped() {
    let text =
        b"\n \nx y z\n10\n10 20\n10 20 \n-10 20 f\n10 0 empty\n+10 1 f\n\xff\n10 4 good\n18 4 half";
    assert_eq!(map(text, &[0x10, 0x18]), some(&["good", "half"]));
    let end = u64::MAX;
    let text = format!("{:x} ffffffffffffffff all\n", 1);
    assert_eq!(map(text.as_bytes(), &[0, end - 1]), some(&["", "all"]));
}

#[test]
fn a_line_without_end_is_cut_and_the_next_one_read() {
    let mut text = b"10 4 ".to_vec();
    text.resize(1 << 20, b'x');
    text.extend(b"\n20 4 next\n");
    let found = map(&text, &[0x10, 0x20]);
    assert!(found[0].as_ref().unwrap().len() <= MAX_NAME_BYTES);
    assert_eq!(found[1].as_deref(), Some("next"));
}

#[test]
fn only_the_end_of_a_huge_map_is_read() {
    let mut file = tempfile::tempfile().unwrap();
    file.set_len(MAX_FILE_BYTES).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
    file.write_all(b"\n10 4 end\n").unwrap();
    let mut whole = true;
    let found = symbols(&[0x10], |names| {
        perf_map::read(&file, names);
        whole = names.whole;
    });
    assert_eq!(found, some(&["end"]));
    assert!(!whole, "the map was cut off");
}

#[test]
fn a_map_of_endless_overlaps_is_given_up() {
    let addresses: Vec<u64> = (0..1 << 16).collect();
    let text = b"0 ffffffff all\n".repeat(1 << 14);
    let mut whole = true;
    let found = symbols(&addresses, |names| {
        perf_map::read(&file(&text), names);
        whole = names.whole;
    });
    assert_eq!(found.len(), addresses.len());
    assert!(!whole, "the map was not read to its end");
}

/// A dump, as a program of this machine's byte order writes it or as another does.
struct Dump {
    bytes: Vec<u8>,
    big: bool,
}

impl Dump {
    fn new(big: bool) -> Self {
        let mut dump = Self {
            bytes: Vec::new(),
            big,
        };
        for word in [0x4a69_5444, 1, 40, 62, 0, 7] {
            dump.word(word);
        }
        dump.double(1);
        dump.double(0);
        dump
    }

    fn word(&mut self, word: u32) {
        let bytes = match self.big {
            true => word.to_be_bytes(),
            false => word.to_le_bytes(),
        };
        self.bytes.extend(bytes);
    }

    fn double(&mut self, double: u64) {
        let bytes = match self.big {
            true => double.to_be_bytes(),
            false => double.to_le_bytes(),
        };
        self.bytes.extend(bytes);
    }

    fn record(&mut self, kind: u32, size: u32, numbers: &[u64]) {
        self.word(kind);
        self.word(16 + size);
        self.double(5);
        if kind < 2 {
            self.word(7);
            self.word(8);
        }
        for number in numbers {
            self.double(*number);
        }
    }

    fn load(mut self, start: u64, size: u64, number: u64, name: &[u8]) -> Self {
        let code = 5;
        let length = u32::try_from(40 + name.len() + 1 + code).unwrap();
        self.record(0, length, &[start, start, size, number]);
        self.bytes.extend(name);
        self.bytes.extend([0, 1, 2, 3, 4, 5]);
        self
    }

    fn moved(mut self, from: u64, to: u64, size: u64, number: u64) -> Self {
        self.record(1, 48, &[to, from, to, size, number]);
        self
    }

    fn debug(mut self) -> Self {
        self.record(2, 16, &[1, 0]);
        self
    }
}

#[test]
fn a_jitdump_names_loaded_and_moved_code() {
    for big in [false, true] {
        let dumped = Dump::new(big)
            .load(0x1000, 0x10, 1, b"first")
            .debug()
            .load(0x2000, 0x10, 2, b"second")
            .moved(0x2000, 0x3000, 0x10, 2)
            .load(0x1008, 0x10, 3, b"third")
            .moved(0x9000, 0x4000, 0x10, 77);
        assert_eq!(
            dump(&dumped.bytes, &[0x1000, 0x1008, 0x2000, 0x300f, 0x4000]),
            some(&["first", "third", "second", "second", ""])
        );
    }
}

#[test]
fn a_jitdump_has_the_code_that_was_made_last() {
    for big in [false, true] {
        let made = Dump::new(big)
            .load(0x1000, 5, 1, b"f")
            .load(0x1000, 5, 2, b"f")
            .debug()
            .load(0x2000, 5, 3, b"g")
            .load(0x3000, 5, 4, b"f")
            .moved(0x3000, 0x4000, 5, 4)
            .load(0x5000, 64, 5, b"f");
        let second = 40 + 2 * (16 + 40 + 2 + 5) - 5;
        let dump = file(&made.bytes);
        let of = |pid: u32, name: &str| {
            let addresses = [0x1000, 0x1004, 0x2000, 0x4000, 0x5000];
            dumped_code(&dump, pid, name, &addresses)
        };
        // Neither what was moved, nor what the record is too short for.
        assert_eq!(of(7, "f"), [(0x1000..0x1005, second as u64)]);
        assert_eq!(made.bytes[second..second + 5], [1, 2, 3, 4, 5]);
        assert_eq!(of(7, "g").len(), 1);
        assert_eq!([of(7, "h"), of(8, "f")], [[], []]);
    }
}

#[test]
fn a_truncated_jitdump_names_its_complete_records() {
    let mut bytes = Dump::new(false)
        .load(0x1000, 0x10, 1, b"whole")
        .load(0x2000, 0x10, 2, b"torn")
        .bytes;
    bytes.truncate(bytes.len() - 3);
    assert_eq!(dump(&bytes, &[0x1000, 0x2000]), some(&["whole", ""]));
    assert_eq!(dump(b"JiTD", &[1]), some(&[""]));
    assert_eq!(dump(b"", &[1]), some(&[""]));
}

proptest! {
    #[test]
    fn any_map_is_read_without_a_panic(text in "([0-9a-f]{0,17} ){0,3}[a-z\n \u{0}-\u{7f}]{0,20}", at: u64) {
        map(text.as_bytes(), &[at]);
    }

    #[test]
    fn any_dump_is_read_without_a_panic(
        damage in proptest::collection::vec((0usize..200, any::<u8>()), 0..8),
        cut in 0usize..220,
    ) {
        let mut bytes = Dump::new(false)
            .load(0x1000, 0x10, 1, b"first")
            .moved(0x1000, 0x3000, 0x10, 1)
            .load(0x2000, 0x10, 2, b"second")
            .bytes;
        for (at, byte) in damage {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(cut);
        dump(&bytes, &[0, 0x1000, 0x3000, u64::MAX]);
        dumped_code(&file(&bytes), 7, "first", &[0x1000]);
    }

    #[test]
    fn a_written_perf_map_is_read_back(start in 0u64..1 << 60, size in 1u64..1 << 20, name in "[a-zA-Z:.<>~*/]{1,40}") {
        let line = format!("{start:x} {size:x} {name}\n");
        let dumped = Dump::new(false).load(start, size, 1, name.as_bytes());
        let asked = [start, start + size - 1, start + size];
        let wanted = some(&[&name, &name, ""]);
        prop_assert_eq!(&map(line.as_bytes(), &asked), &wanted);
        prop_assert_eq!(&dump(&dumped.bytes, &asked), &wanted);
    }
}

#[test]
fn code_has_the_bounds_of_the_definition_that_counts() {
    let text = b"1000 10 one\n1008 10 two\nfffffffffffffff0 ffffffffffffffff last\n";
    let addresses = [0x1000, 0x1008, 0x100f, 0x2000, u64::MAX];
    let mut names = Names::new(&addresses);
    perf_map::read(&file(text), &mut names);
    let made: Vec<Option<(String, Range<u64>)>> = (names.into_made().into_iter())
        .map(|made| made.map(|made| (made.name, made.code)))
        .collect();
    let is = |name: &str, code| Some((name.to_owned(), code));
    assert_eq!(
        made,
        [
            is("one", 0x1000..0x1010),
            is("two", 0x1008..0x1018),
            is("two", 0x1008..0x1018),
            None,
            is("last", u64::MAX - 15..u64::MAX),
        ]
    );
}
