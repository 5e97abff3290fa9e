//! Rows of Go's functions: of real programs against what reading their code gives and against their `.debug_frame`, and of
//! tables that are damaged.

use super::arch::go::by_pointer;
use super::*;
use crate::code::testing::{build, toolchains};
use crate::object::{ElfAddress, Image};
use crate::unwind::UnwindTable;
use profiler_common::abi::{Origin, Slot};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

const PROGRAM: &str = r#"
package main

import (
	"fmt"
	"net/http"
	"os"
	"sort"
	"time"
)

//go:noinline
func hot(n int) int {
	var room [300]int
	for i := range room {
		room[i] = i * n % 7
	}
	sort.Ints(room[:])
	return room[n%300]
}

func main() {
	defer fmt.Println(hot(len(os.Args)), time.Now())
	http.DefaultClient.Timeout = time.Second
}
"#;

/// Everything that is read of a program's frames, with its code.
fn frames(path: &Path) -> Vec<(Frames, Vec<u8>)> {
    let file = File::open(path).unwrap();
    let image = Image::read(&file).unwrap();
    let mut found = Vec::new();
    let mut program = GoFunctions::find(&image).expect("a Go program");
    program.each_frames(|program, frames| {
        let code = program.code(&frames.addresses, usize::MAX);
        found.push((frames, code));
    });
    found
}

/// The rule at each of these offsets, which ascend.
pub(in crate::unwind) fn rules_at(
    changes: &[(u32, Rule)],
    offsets: impl Iterator<Item = u32>,
) -> Vec<Rule> {
    let rule = |at: u32| {
        let behind = changes.partition_point(|(after, _)| *after <= at);
        changes[..behind]
            .last()
            .map_or(Rule::MISSING, |(_, rule)| *rule)
    };
    offsets.map(rule).collect()
}

#[test]
fn rows_of_compiled_functions_are_those_that_reading_the_code_gives() {
    for go in toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let bare = build(&go, folder.path(), PROGRAM, "bare", &["-ldflags=-s -w"]);
        let (mut functions, mut all, mut agreed) = (0, 0, 0);
        let mut style = None;
        for (frames, code) in frames(&bare) {
            if frames.is_assembly || frames.moves_stack || is_outermost(&frames) {
                continue;
            }
            functions += 1;
            let quick = arch::go::compiled(&frames.sizes, |place| {
                *style.get_or_insert_with(|| Prologue::of(&code, place))
            });
            let read = arch::go::assembly::rules(&code, &frames.sizes, false, Switch::Unknown);
            let offsets = || read.iter().map(|(after, _)| *after);
            let pairs = rules_at(&quick, offsets())
                .into_iter()
                .zip(rules_at(&read, offsets()));
            for (quick, read) in pairs {
                all += 1;
                agreed += usize::from(quick == read);
            }
        }
        assert!(
            functions > 2000 && agreed * 10_000 >= all * 9_999,
            "{agreed} of {all}"
        );
    }
}

#[test]
fn rows_agree_with_the_debug_frame_of_go_s_linker() {
    for go in toolchains() {
        for mode in [&[][..], &["-buildmode=pie"]] {
            let folder = tempfile::tempdir().unwrap();
            let whole = build(&go, folder.path(), PROGRAM, "whole", mode);
            let file = File::open(&whole).unwrap();
            let ours = UnwindTable::read(&file).unwrap();
            let theirs = UnwindTable::parse(std::fs::read(&whole).unwrap().as_slice()).unwrap();
            let (mut all, mut differing) = (0, BTreeMap::new());
            for (frames, _) in frames(&whole) {
                if frames.moves_stack || is_outermost(&frames) || is_signal_return(&frames) {
                    continue;
                }
                let end = frames.sizes.last().unwrap().0;
                // The last byte may be a handler's way back from signals.
                for at in (0..end - 1).step_by(3) {
                    let address = ElfAddress(frames.addresses.start + at);
                    let [ours, theirs] = [&ours, &theirs].map(|table| table.rule_at(address));
                    let cfa = |rule: Option<Rule>| {
                        rule.map(|rule| (rule.how(), rule.base(), rule.operand()))
                    };
                    all += 1;
                    if cfa(ours) != cfa(theirs) {
                        *differing
                            .entry(String::from_utf8(frames.name.clone()).unwrap())
                            .or_insert(0) += 1;
                    }
                }
            }
            let sum: i32 = differing.values().sum();
            assert!(all > 300_000, "{all}");
            // `syscall.rawVforkSyscall` takes its own return address from the stack, for one instruction.
            assert!(sum <= 1, "{sum} of {all}: {differing:?}");
        }
    }
}

#[test]
fn the_runtime_s_own_functions_have_the_rules_that_it_follows_itself() {
    for go in toolchains() {
        for mode in [
            &["-ldflags=-s -w"][..],
            &["-ldflags=-s -w", "-buildmode=pie"],
        ] {
            let folder = tempfile::tempdir().unwrap();
            let bare = build(&go, folder.path(), PROGRAM, "bare", mode);
            let file = File::open(&bare).unwrap();
            let table = UnwindTable::read(&file).unwrap();
            let by_name: Vec<_> = frames(&bare)
                .into_iter()
                .map(|(frames, _)| (String::from_utf8(frames.name).unwrap(), frames.addresses))
                .collect();
            // Wrappers through which compiled code calls it may have the same name.
            let rules = |name: &str| -> Vec<Vec<Rule>> {
                let all =
                    by_name
                        .iter()
                        .filter(|(known, _)| known == name)
                        .map(|(_, addresses)| {
                            let mut rules: Vec<_> = addresses
                                .clone()
                                .filter_map(|at| table.rule_at(ElfAddress(at)))
                                .collect();
                            rules.dedup();
                            rules
                        });
                all.collect()
            };
            for root in [
                "runtime.goexit",
                "runtime.mstart",
                "runtime.rt0_go",
                "_rt0_amd64_linux",
            ] {
                assert!(
                    rules(root).iter().any(|found| found[0] == Rule::ROOT),
                    "{root}"
                );
            }
            for (name, wanted) in [
                ("runtime.systemstack", by_pointer()),
                ("runtime.asmcgocall", by_pointer()),
                ("runtime.cgocallback", by_pointer()),
                ("runtime.nanotime1", by_pointer()),
                ("runtime.mcall", Rule::ROOT),
                ("runtime.morestack", Rule::ROOT),
            ] {
                let found = rules(name);
                // New linkers leave it out of programs without C.
                assert!(
                    !found.is_empty() || name == "runtime.cgocallback",
                    "no {name}"
                );
                if found.is_empty() {
                    continue;
                }
                // Before they change to the other stack, they are functions like any others.
                let entry = Rule::ENTRY.with_slots(Origin::Cfa, Slot::SAME, Slot::LOST);
                assert!(
                    found.iter().all(|found| found[0] == entry),
                    "{name}: {found:?}"
                );
                assert!(
                    found.iter().any(|found| found.contains(&wanted)),
                    "{name}: {found:?}"
                );
            }
            let back = by_name
                .iter()
                .find(|(name, _)| name.starts_with("runtime.sigreturn"));
            let (_, back) = back.expect("a way back from signals");
            for at in [back.start - 1, back.start, back.start + 7] {
                assert_eq!(table.rule_at(ElfAddress(at)), Some(arch::SIGNAL_RETURN));
            }
        }
    }
}

/// How a frame of 24 bytes is made and left in both ways, and `ret`.
#[test]
fn a_damaged_program_is_read_without_a_panic_and_in_proportion() {
    use std::os::unix::fs::FileExt as _;
    let go = toolchains().pop().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let small = "package main\nfunc main() { println(1) }\n";
    let whole = std::fs::read(build(
        &go,
        folder.path(),
        small,
        "bare",
        &["-ldflags=-s -w"],
    ))
    .unwrap();
    let table = {
        use object::{Object as _, ObjectSection as _};
        let file = object::File::parse(whole.as_slice()).unwrap();
        let section = file.section_by_name(".gopclntab").unwrap();
        section.file_range().unwrap()
    };
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&whole, 0).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..60 {
        let mut places = Vec::new();
        for number in 0..rng.usize(1..40) {
            // The header decides most.
            let within = if number % 4 == 0 {
                64.min(table.1)
            } else {
                table.1
            };
            let at = table.0 + rng.u64(..within);
            file.write_all_at(&[rng.u8(..)], at).unwrap();
            places.push(at);
        }
        let read = UnwindTable::read(&file).unwrap();
        assert!(read.rows.len() <= whole.len(), "{} rows", read.rows.len());
        for at in places {
            file.write_all_at(&whole[at as usize..][..1], at).unwrap();
        }
    }
}
