//! The walker by unwind rules, on stacks that a program captured of itself at arbitrary instructions: it must
//! find the callers that the C library's own unwinder found there and then, and that framehop finds in
//! the same memory. Runs anywhere with gcc, without root and without flame-bpf's kernel half.

#![expect(clippy::print_stdout, reason = "the comparison says how far it agreed")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use flame_bpf::object::{Elf, ElfAddress, FileOffset};
use flame_bpf::unwind::UnwindTable;
use flame_bpf_tests::require;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use object::{Object as _, ObjectSection as _};
use profiler_common::abi::StackEnd;
use profiler_common::walk::native::{self, Frame};
use profiler_common::walk::{Memory, Registers, Step};

/// The position of the instruction pointer behind the general registers.
const RIP: usize = 16;
const RBX: usize = 3;
const RBP: usize = 6;
const RSP: usize = 7;

/// One moment of the program.
struct Capture {
    registers: [u64; 17],
    /// Who called, as the C library says.
    callers: Vec<u64>,
    start: u64,
    stack: Vec<u64>,
}

impl Capture {
    fn word(&self, address: u64) -> Option<u64> {
        let into = usize::try_from(address.checked_sub(self.start)?).ok()?;
        if !into.is_multiple_of(8) {
            return None;
        }
        self.stack.get(into / 8).copied()
    }
}

impl Memory for Capture {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.word(address + 8 * i as u64)?;
        }
        Some(words)
    }
}

/// Code of one object, where the program had it.
struct Mapped {
    code: Range<u64>,
    /// How far addresses are from the object's own.
    bias: u64,
    table: UnwindTable,
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
        let stack = (0..count).map(|_| next()).collect();
        captures.push(Capture {
            registers,
            callers,
            start,
            stack,
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
        let vdso = path == "[vdso]";
        let number = |text| u64::from_str_radix(text, 16).expect("a number in hexadecimal");
        let (start, end) = range.split_once('-').expect("two addresses");
        let code = number(start)..number(end);
        let Some(bytes) = (if vdso {
            own_vdso()
        } else {
            fs::read(path).ok()
        }) else {
            continue;
        };
        let elf = Elf::parse(bytes.as_slice()).expect("a mapped ELF file");
        let address = elf
            .segments
            .address(FileOffset(number(offset)))
            .expect("what is mapped is in a segment");
        let bias = code.start.wrapping_sub(address.0);
        unwinder.add_module(module(path, &bytes, code.clone(), bias));
        mapped.push(Mapped {
            code,
            bias,
            table: UnwindTable::parse(bytes.as_slice()).expect("an x86-64 object"),
        });
    }
    (mapped, unwinder)
}

/// The vDSO, which the kernel maps into every process alike.
fn own_vdso() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, rest) = line.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(rest.split_once(' ')?.0)?);
    let mut bytes = vec![0; usize::try_from(end - start).ok()?];
    let memory = fs::File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
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

/// Walks by unwind rules.
fn walk(capture: &Capture, mapped: &[Mapped]) -> (Vec<u64>, StackEnd) {
    let registers = Registers {
        ip: capture.registers[RIP],
        sp: capture.registers[RSP],
        fp: capture.registers[RBP],
    };
    let mut frame = Frame::running(registers, capture.registers[RBX]);
    let mut callers = Vec::new();
    loop {
        let lookup = frame.lookup();
        let Some(object) = mapped.iter().find(|object| object.code.contains(&lookup)) else {
            return (callers, StackEnd::NotLoaded);
        };
        let address = ElfAddress(lookup.wrapping_sub(object.bias));
        let rule = object.table.rule_at(address).expect("mapped code is code");
        let register = |number: u8| capture.registers.get(usize::from(number)).copied();
        match native::step(rule, &frame, register, capture) {
            Step::Caller(caller) => {
                callers.push(caller.ip);
                frame = caller;
            }
            Step::End(end) => return (callers, end),
        }
    }
}

/// Walks with framehop; none if it could not say that it reached the root.
fn framehop(
    capture: &Capture,
    unwinder: &UnwinderX86_64<Vec<u8>>,
    cache: &mut CacheX86_64,
) -> Option<Vec<u64>> {
    let [ip, sp, fp] = [RIP, RSP, RBP].map(|number| capture.registers[number]);
    let mut read = |address| capture.word(address).ok_or(());
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
        let (callers, end) = walk(capture, &mapped);
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
    // What is missing is code of the vDSO, which is no file here.
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
