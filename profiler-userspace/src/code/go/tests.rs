//! Functions of Go programs: of real ones against their symbols, and of tables made up.

use super::testing::{build, toolchains};
use super::*;
use crate::object::{Elf, ElfAddress};
use crate::object::{Image, Part};
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

const PROGRAM: &str = r#"
package main

import "fmt"

func square(x int) int { return x*x + 7 }

func both(x int) int { return square(x) ^ square(x+1) }

//go:noinline
func hot(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += both(i) % (s | 1)
	}
	return s
}

func main() { fmt.Println(hot(1000)) }
"#;

fn symbols(path: &Path) -> HashMap<String, u64> {
    let file = File::open(path).unwrap();
    let mut found = HashMap::new();
    Elf::read(&file).unwrap().each_function(&file, |function| {
        if let Some(ElfAddress(at)) = function.address {
            found.insert(String::from_utf8_lossy(function.name).into_owned(), at);
        }
    });
    found
}

#[test]
fn a_stripped_go_program_has_the_names_that_its_symbols_had() {
    for go in toolchains() {
        for mode in [&[][..], &["-buildmode=pie"]] {
            let folder = tempfile::tempdir().unwrap();
            let whole = build(&go, folder.path(), PROGRAM, "whole", mode);
            let flags = [mode, &["-ldflags=-s -w"]].concat();
            let file = File::open(build(&go, folder.path(), PROGRAM, "bare", &flags)).unwrap();
            let known = symbols(&whole);
            let image = Image::read(&file).unwrap();
            let found = GoFunctions::find(&image).expect("a Go program");
            // Without symbols code lies elsewhere: names are compared by how far they are from each other.
            let shift = |at: u64| at.wrapping_sub(known["runtime.findfunc"]);
            let begin = (found.module.text..).step_by(16);
            let base = begin
                .take(1 << 16)
                .find(|&at| found.name(at).as_deref() == Some(b"runtime.findfunc"));
            let base = base.expect("a function of the runtime");
            // Symbols say, too, by which convention a function is called, and for which types it was made.
            let plain = |name: &str| {
                let name = name.strip_suffix(".abi0").unwrap_or(name);
                name.split('[').next().unwrap_or_default().to_owned()
            };
            let (mut all, mut agreed) = (0, 0);
            for (name, at) in known
                .iter()
                .filter(|(name, _)| name.starts_with("runtime."))
            {
                let shown = found
                    .name(base.wrapping_add(shift(*at)))
                    .unwrap_or_default();
                all += 1;
                agreed += usize::from(plain(&String::from_utf8_lossy(&shown)) == plain(name));
            }
            assert!(
                all > 1000 && agreed * 100 >= all * 99,
                "{agreed} of {all}: {} {mode:?}",
                go.display()
            );
        }
    }
}

#[test]
fn inlined_functions_and_lines_are_those_of_the_source() {
    for go in toolchains() {
        for mode in [
            &["-ldflags=-s -w"][..],
            &["-ldflags=-s -w", "-buildmode=pie"],
        ] {
            let folder = tempfile::tempdir().unwrap();
            let file = File::open(build(&go, folder.path(), PROGRAM, "bare", mode)).unwrap();
            let image = Image::read(&file).unwrap();
            let found = GoFunctions::find(&image).expect("a Go program");
            let code = found.image.code_at(found.module.text).unwrap();
            let hot = code
                .clone()
                .find(|&at| found.name(at).as_deref() == Some(b"main.hot"));
            let hot = hot.expect("its own function");
            let inside =
                (hot..code.end).take_while(|&at| found.name(at).as_deref() == Some(b"main.hot"));
            // Behind a function's last instruction is padding, of no line.
            let described = inside.map(|at| found.levels(at));
            let described =
                described.filter(|levels| levels.iter().all(|level| level.source.is_some()));
            let shown: Vec<String> = described
                .map(|levels| {
                    let levels = levels.into_iter().map(|level| {
                        let (file, line) = level.source.expect("a line");
                        assert!(file.ends_with(b"/main.go"));
                        format!("{}:{line}", String::from_utf8(level.name).unwrap())
                    });
                    levels.collect::<Vec<_>>().join(";")
                })
                .collect();
            let wanted = "main.hot:14;main.both:8;main.square:6";
            assert!(
                shown.iter().any(|levels| levels == wanted),
                "{shown:?} {}",
                go.display()
            );
            assert!(shown.iter().all(|levels| levels.starts_with("main.hot:1")));
        }
    }
}

/// A table of the oldest format with one function at 0x1000 to 0x1010, and its file.
fn old_table() -> (File, Part) {
    let mut bytes = Vec::new();
    bytes.extend(0xffff_fffa_u32.to_le_bytes());
    bytes.extend([0, 0, 1, 8]);
    let mut parts = b"main.main\0".to_vec();
    let names = 64u64;
    let units = names + parts.len() as u64;
    parts.extend(0u32.to_le_bytes());
    let files = names + parts.len() as u64;
    parts.extend(b"/a/main.go\0");
    let values = names + parts.len() as u64;
    // Nothing at offset zero; then file 0 for 16 bytes; then line 7 for 4 bytes and 9 for 12.
    parts.extend([0, 2, 16, 0, 16, 4, 4, 12, 0]);
    let records = names + parts.len() as u64;
    for word in [1, 1, names, units, files, values, records] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(parts);
    for word in [0x1000u64, 24, 0x1010] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(0x1000u64.to_le_bytes());
    for word in [0u32, 0, 0, 0, 1, 4, 0, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let part = Part {
        address: 0x5000,
        offset: 0,
        bytes: bytes.len() as u64,
    };
    (file, part)
}

#[test]
fn the_oldest_format_lists_functions_by_address() {
    let (file, part) = old_table();
    let table = Table::read(&file, part).expect("a table");
    assert_eq!(
        (table.format, table.address()),
        (table::Format::Go116, 0x5000)
    );
    assert_eq!(table.function(0xfff, 0), None);
    assert_eq!(table.function(0x1010, 0), None);
    let main = table.function(0x100f, 0).expect("a function");
    assert_eq!(main.entry, 0x1000);
    assert_eq!(
        table.function_name(main.record).as_deref(),
        Some(&b"main.main"[..])
    );
    let (files, lines) = table.line_values(main.record).unwrap();
    let of = |at| (table.value(files, at), table.value(lines, at));
    assert_eq!(of(3), (Some(0), Some(7)));
    assert_eq!(of(4), (Some(0), Some(9)));
    assert_eq!(of(16), (None, None));
    assert_eq!(
        table.file(main.record, 0).as_deref(),
        Some(&b"/a/main.go"[..])
    );
}

proptest! {
    #[test]
    fn a_damaged_table_is_read_without_a_panic(
        damage in proptest::collection::vec((0usize..200, any::<u8>()), 1..12), address: u64, text: u64,
        format in 0usize..3,
    ) {
        use std::os::unix::fs::FileExt as _;
        let (file, part) = old_table();
        file.write_all_at(&[[0xfa, 0xf0, 0xf1][format]], 0).unwrap();
        for (at, byte) in damage {
            file.write_all_at(&[byte], at as u64).unwrap();
        }
        if let Some(table) = Table::read(&file, part) {
            for address in [address, 0x1000, 0x1008, text.wrapping_add(8)] {
                for text in [0, text] {
                    if let Some(function) = table.function(address, text) {
                        table.function_name(function.record);
                        table.data(function.record, INLINED_TREE);
                        table.inlined_values(function.record, INLINED_INDEX);
                        let (files, lines) = table.line_values(function.record).unzip();
                        for values in [files, lines].into_iter().flatten() {
                            table.value(values, 9);
                        }
                        table.file(function.record, 0);
                    }
                }
            }
        }
    }
}
