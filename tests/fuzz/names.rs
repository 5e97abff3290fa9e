//! Names: what runtimes list of code that they make, and the symbols of object files.
//!
//! In: bytes of such a file. Out: its being asked for addresses, as a profile's are.

use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;

use flame_bpf::object::{ElfAddress, RegularFile};
use flame_bpf::symbolize::{CodeMap, Naming, name_object, names_in};

use crate::corpus::{Seed, whole};

/// Perf maps and jitdumps.
pub(crate) fn code_maps() -> Vec<Seed> {
    let mut files = vec![
        b"1000 10 LazyCompile:~fib /a b/x.js:1\n0x2000 0x8 int A.b(int)\r\n".to_vec(),
        b"10 4 good\n18 4 half".to_vec(),
        (0..200)
            .map(|n| format!("{:x} {:x} function{n}\n", n * 64, n % 100))
            .collect::<String>()
            .into_bytes(),
    ];
    files.extend([u32::to_le_bytes, u32::to_be_bytes].map(jitdump));
    files.into_iter().map(whole).collect()
}

/// A jitdump of some functions, each of which is moved, in either order of bytes.
fn jitdump(order: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let double = |number: u64| {
        let (high, low) = (order((number >> 32) as u32), order(number as u32));
        if order(1) == 1u32.to_le_bytes() {
            [low, high].concat()
        } else {
            [high, low].concat()
        }
    };
    let mut dump: Vec<u8> = [0x4a69_5444, 1, 40, 62, 0, 7].map(order).concat();
    dump.extend([double(1), double(0)].concat());
    for n in 0..8 {
        let start = 0x1000 * (n + 1);
        // A load: kind, size, time, process, thread, address twice, size of the code, number, name, code.
        dump.extend([order(0), order(16 + 40 + 5)].concat());
        dump.extend([double(n), [order(7), order(8)].concat()].concat());
        dump.extend([start, start, 0x40, n].map(double).concat());
        dump.extend(b"f()\0\x90");
        // A move.
        dump.extend([order(1), order(16 + 48)].concat());
        dump.extend([double(n), [order(7), order(8)].concat()].concat());
        dump.extend(
            [start + 0x800, start, start + 0x800, 0x40, n]
                .map(double)
                .concat(),
        );
    }
    dump
}

/// Asks a map for the addresses at which broken numbers lead somewhere.
pub(crate) fn read_code_map(input: &[u8]) {
    let mut addresses: Vec<u64> = (0..64).map(|n| n * 0x400).collect();
    addresses.extend([u64::from(u32::MAX), 1 << 40, u64::MAX - 1, u64::MAX]);
    let mut file = tempfile::tempfile().expect("a file can be made");
    file.write_all(input).expect("a file can be written");
    for kind in [CodeMap::PerfMap, CodeMap::Jitdump] {
        let names = names_in(kind, &file, &addresses);
        assert_eq!(names.len(), addresses.len());
        let empty = names.iter().flatten().any(|name| name.is_empty());
        assert!(!empty, "a name with nothing in it");
    }
}

/// Asks an object for its symbols, and its DWARF for inlined functions and lines.
pub(crate) fn read_symbols(input: &[u8]) {
    let file = RegularFile::in_memory("fuzz", input).expect("memory can be had");
    let addresses: Vec<ElfAddress> = [0, 0x1000, 0x1139, 0x4_0000, 1 << 40, u64::MAX]
        .into_iter()
        .chain((0..256).map(|n| n * 0x40))
        .map(ElfAddress)
        .collect();
    let nowhere = Path::new("/nowhere/fuzz");
    let naming = Naming {
        inlined: true,
        lines: true,
        ..Naming::default()
    };
    let (names, _skipped) = name_object(file, nowhere, &addresses, &naming, None);
    assert_eq!(names.len(), addresses.len());
    black_box(names);
}
