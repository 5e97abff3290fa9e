//! The walker by unwind rules, on stacks that a program captured of itself at arbitrary instructions: it must
//! find the callers that the C library's own unwinder found there and then, and that framehop finds in
//! the same memory. Runs anywhere with gcc, without root and without flame-bpf's kernel half.

#![expect(clippy::print_stdout, reason = "the comparison says how far it agreed")]

mod from_code;
mod perf;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use flame_bpf_tests::native_walk::{Mapped, RBP, RIP, RSP, Registers, Stack, walk_natively};
use flame_bpf_tests::require;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use object::{Object as _, ObjectSection as _};
use profiler_common::abi::StackEnd;

/// One moment of the program.
struct Capture {
    registers: Registers,
    /// Callers, as the C library's `backtrace` says.
    callers: Vec<u64>,
    stack: Stack,
}

/// Reads captures one after the other.
fn captures(bytes: &[u8]) -> Vec<Capture> {
    let mut words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    let mut captures = Vec::new();
    while let Some(first) = words.next() {
        let mut next = || words.next().expect("a record is whole");
        let mut registers = [first; 17];
        registers[1..].fill_with(&mut next);
        let callers = (0..next()).map(|_| next()).collect();
        let (start, count) = (next(), next());
        let words = (0..count).map(|_| next()).collect();
        captures.push(Capture {
            registers,
            callers,
            stack: Stack { start, words },
        });
    }
    captures
}

/// The executable mappings of a program, for our walker and for framehop.
fn mappings(maps: &str) -> (Vec<Mapped>, UnwinderX86_64<Vec<u8>>) {
    let (mut mapped, mut unwinder) = (Vec::new(), UnwinderX86_64::new());
    for line in maps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [range, "r-xp", offset, _, _, path] = words[..] else {
            continue;
        };
        let number = |text| u64::from_str_radix(text, 16).expect("a number in hexadecimal");
        let (start, end) = range.split_once('-').expect("two addresses");
        let code = number(start)..number(end);
        let Some((object, bytes)) = Mapped::new(code.clone(), number(offset), path) else {
            continue;
        };
        unwinder.add_module(module(path, &bytes, code, object.bias));
        mapped.push(object);
    }
    (mapped, unwinder)
}

fn module(path: &str, bytes: &[u8], code: Range<u64>, bias: u64) -> Module<Vec<u8>> {
    let file = object::File::parse(bytes).expect("a mapped ELF file");
    let section = |name| {
        let section = file.section_by_name(name)?;
        let range = section.address()..section.address() + section.size();
        Some((range, section.data().ok()?.to_vec()))
    };
    let split = |name| section(name).unzip();
    let (eh_frame_svma, eh_frame) = split(".eh_frame");
    let (eh_frame_hdr_svma, eh_frame_hdr) = split(".eh_frame_hdr");
    let (text_svma, text) = split(".text");
    Module::new(
        path.to_owned(),
        code,
        bias,
        ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma,
            text,
            got_svma: section(".got").map(|(range, _)| range),
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            ..Default::default()
        },
    )
}

/// Walks by our rules: the callers, and why there are no more.
fn walk(registers: &Registers, stack: &Stack, mapped: &[Mapped]) -> (Vec<u64>, StackEnd) {
    let (frames, end) = walk_natively(registers, stack, mapped);
    (frames.iter().skip(1).map(|frame| frame.ip).collect(), end)
}

/// Walks with framehop; none if it could not say that it reached the root.
fn framehop(
    capture: &Capture,
    unwinder: &UnwinderX86_64<Vec<u8>>,
    cache: &mut CacheX86_64,
) -> Option<Vec<u64>> {
    let [ip, sp, fp] = [RIP, RSP, RBP].map(|number| capture.registers[number]);
    let mut read = |address| capture.stack.word(address).ok_or(());
    let registers = UnwindRegsX86_64::new(ip, sp, fp);
    let mut frames = unwinder.iter_frames(ip, registers, cache, &mut read);
    let mut callers = Vec::new();
    frames.next().ok()??;
    while let Some(frame) = frames.next().ok()? {
        callers.push(frame.address());
    }
    Some(callers)
}

/// Compiles the capturing program, has it capture, and compares.
fn replay(flags: &[&str], strip: bool) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [program, file] = ["capture", "captures"].map(|name| folder.path().join(name));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/c/capture.c");
    let compiled = Command::new("gcc")
        .args(["-std=gnu11", "-fomit-frame-pointer"])
        .args(flags)
        .arg("-o")
        .args([&program, &source])
        .output()
        .map_err(|error| format!("gcc: {error}"))?;
    if !compiled.status.success() {
        let said = String::from_utf8_lossy(&compiled.stderr);
        return Err(format!("gcc {flags:?}: {said}"));
    }
    if strip {
        let stripped = Command::new("strip").arg(&program).status();
        assert!(stripped.is_ok_and(|status| status.success()));
    }
    let ran = Command::new(&program).arg(&file).arg("600").status();
    assert!(ran.is_ok_and(|status| status.success()), "{flags:?}");
    let maps = fs::read_to_string(folder.path().join("captures.maps")).expect("text");
    let (mapped, unwinder) = mappings(&maps);
    let mut cache = CacheX86_64::new();
    let (mut ends, mut by_library, mut by_framehop) = (BTreeMap::new(), 0, 0);
    let captures = captures(&fs::read(&file).expect("captures"));
    assert_eq!(captures.len(), 600);
    for capture in &captures {
        let (callers, end) = walk(&capture.registers, &capture.stack, &mapped);
        *ends.entry(end).or_default() += 1;
        if end != StackEnd::Root {
            continue;
        }
        // The C library leaves a linkage table only where the linker described it.
        if !capture.callers.is_empty() {
            by_library += 1;
            let ip = capture.registers[RIP];
            assert_eq!(callers, capture.callers, "{flags:?} at {ip:#x}");
        }
        if let Some(theirs) = framehop(capture, &unwinder, &mut cache) {
            by_framehop += usize::from(theirs == callers);
        }
    }
    println!("{flags:?}: {ends:?}, {by_library} as the C library, {by_framehop} as framehop");
    let reached = ends.get(&StackEnd::Root).copied().unwrap_or(0);
    // The other walks end in code of the vDSO, which is no file here.
    let missing = ends.get(&StackEnd::NotLoaded).copied().unwrap_or(0);
    assert_eq!(reached + missing, captures.len(), "{flags:?}: {ends:?}");
    assert!(reached * 2 > captures.len(), "{flags:?}: {ends:?}");
    assert!(
        by_framehop * 100 >= reached * 95,
        "{by_framehop} of {reached}"
    );
    Ok(())
}

#[test]
fn programs_without_frame_pointers_are_walked_to_the_root() {
    require!(replay(&["-O2"], false));
}

#[test]
fn lazily_linked_programs_are_walked_to_the_root() {
    require!(replay(&["-O2", "-Wl,-z,lazy"], true));
}

#[test]
fn static_programs_are_walked_to_the_root() {
    require!(replay(&["-O2", "-static"], true));
}

#[test]
fn small_and_unoptimized_programs_are_walked_to_the_root() {
    require!(replay(&["-Os", "-static-pie"], true));
    require!(replay(&["-O0"], false));
}
