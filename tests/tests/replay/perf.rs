//! The walker by unwind rules, on registers and stacks that perf copied of gcc's compiler at work, compared with what
//! perf's own unwinder makes of the same copies. Wants perf, and leave to use it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Output};

use flame_bpf_tests::require;
use linux_perf_data::linux_perf_event_reader::{CpuMode, EventRecord, Mmap2Record, SampleRecord};
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use profiler_common::abi::StackEnd;

use crate::walk;
use flame_bpf_tests::native_walk::{Mapped, RIP, RSP, Registers, Stack};

/// Bytes of stack that are copied with each sample: perf's most.
const STACK_BYTES: u32 = 65_528;

/// Where perf keeps the registers that DWARF numbers 0 to 15, and the instruction pointer
/// (`arch/x86/include/uapi/asm/perf_regs.h`).
const PERF_REGISTERS: [u64; 17] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8];

/// When a sample was taken, in nanoseconds, and of which thread.
pub(super) type Moment = (u64, i32);

/// Functions that keep a compiler busy.
fn source() -> String {
    let function = |number: usize| {
        format!(
            "double f{number}(double *a, int n) {{ double t = 0; for (int i = 0; i < n; i++) for (int j = 0; \
             j < {number}; j++) switch ((i * {number} + j) % 5) {{ case 0: t += a[i]; break; case 1: t -= \
             a[j] * {number}; break; case 2: t *= 1.5; break; default: a[i] = t; }} return t; }}\n"
        )
    };
    (1..=150).map(function).collect()
}

fn succeeded(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{name} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}", said.trim()))
}

/// Has perf copy the stacks of gcc's compiler while it compiles something.
fn record(folder: &Path) -> Result<(), String> {
    let compiler = succeeded(Command::new("gcc").arg("-print-prog-name=cc1"))?;
    let compiler = String::from_utf8_lossy(&compiler.stdout).trim().to_owned();
    std::fs::write(folder.join("source.i"), source())
        .expect("a temporary folder can be written to");
    let compiles = [
        "-quiet",
        "-O2",
        "-fpreprocessed",
        "source.i",
        "-o",
        "source.s",
    ];
    copy_stacks(
        folder,
        499,
        STACK_BYTES,
        &[&[compiler.as_str()], &compiles[..]].concat(),
    )
}

/// Has perf copy the stacks of a command into `perf.data`: so many a second, each so many bytes.
pub(super) fn copy_stacks(
    folder: &Path,
    rate: u32,
    bytes: u32,
    command: &[&str],
) -> Result<(), String> {
    let recorded = Command::new("perf")
        .current_dir(folder)
        .args(["record", "-q", "-e", "cpu-clock:u", "-F", &rate.to_string()])
        .args(["--call-graph", &format!("dwarf,{bytes}")])
        .args(["-o", "perf.data", "--"])
        .args(command)
        .output();
    // perf's own code may differ from the command's; what counts is what it has written.
    match recorded {
        Err(error) => Err(format!("perf (Debian: linux-perf) cannot be run: {error}")),
        Ok(_) if folder.join("perf.data").exists() => Ok(()),
        Ok(output) => Err(format!(
            "perf: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Registers and stack of each sample in user mode, as copied, and the mappings of code.
pub(super) fn copies(file: &Path) -> (BTreeMap<Moment, (Registers, Stack)>, Vec<Mapped>) {
    let file = File::open(file).expect("perf has written it");
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = PerfFileReader::parse_file(BufReader::new(file)).expect("a file of perf's");
    let (mut samples, mut mapped) = (BTreeMap::new(), Vec::new());
    while let Some(record) = record_iter.next_record(&mut perf_file).expect("a record") {
        let PerfFileRecord::EventRecord { record, .. } = record else {
            continue;
        };
        match record.parse().expect("a record that is known") {
            EventRecord::Mmap2(mapping) => mapped.extend(code(&mapping)),
            EventRecord::Sample(sample) if sample.cpu_mode == CpuMode::User => {
                samples.extend(copy(&sample));
            }
            _ => {}
        }
    }
    (samples, mapped)
}

fn code(mapping: &Mmap2Record<'_>) -> Option<Mapped> {
    const EXECUTABLE: u32 = 4;
    let path = mapping.path.as_slice();
    let path = std::str::from_utf8(&path).ok()?;
    let range = mapping.address..mapping.address + mapping.length;
    if mapping.protection & EXECUTABLE == 0 || !(path.starts_with('/') || path == "[vdso]") {
        return None;
    }
    let (mapped, _bytes) = Mapped::new(range, mapping.page_offset, path)?;
    Some(mapped)
}

fn copy(sample: &SampleRecord<'_>) -> Option<(Moment, (Registers, Stack))> {
    let registers = sample.user_regs.as_ref()?;
    let mut values = [0; 17];
    for (value, number) in values.iter_mut().zip(PERF_REGISTERS) {
        *value = registers.get(number)?;
    }
    let (bytes, filled) = sample.user_stack.as_ref()?;
    let bytes = bytes.as_slice();
    let words = bytes[..usize::try_from(*filled).ok()?]
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect();
    let stack = Stack {
        start: values[RSP],
        words,
    };
    Some(((sample.timestamp?, sample.tid?), (values, stack)))
}

/// The stacks that perf's unwinder found down to `_start`, from leaf to root, as places in files.
fn unwound(folder: &Path) -> Result<BTreeMap<Moment, Vec<u64>>, String> {
    let script = succeeded(
        Command::new("perf")
            .current_dir(folder)
            .args(["script", "-i", "perf.data", "--ns", "--no-inline"])
            .args(["-F", "tid,time,ip,sym"]),
    )?;
    let text = String::from_utf8_lossy(&script.stdout);
    let stacks = text.split("\n\n").filter_map(|sample| {
        let mut lines = sample.lines();
        let head = lines.next()?;
        let (tid, time) = head.trim().trim_end_matches(':').split_once(' ')?;
        let (seconds, nanoseconds) = time.trim().split_once('.')?;
        let time =
            seconds.parse::<u64>().ok()? * 1_000_000_000 + nanoseconds.parse::<u64>().ok()?;
        let frames: Option<Vec<(u64, &str)>> = lines
            .map(|line| {
                let (address, name) = line.trim().split_once(' ')?;
                Some((u64::from_str_radix(address, 16).ok()?, name))
            })
            .collect();
        let frames = frames?;
        let (_, root) = frames.last()?;
        (*root == "_start").then(|| {
            let places = frames.iter().map(|(place, _)| *place).collect();
            ((time, tid.parse().expect("a thread's ID")), places)
        })
    });
    Ok(stacks.collect())
}

/// Where in its file each frame of ours is, callers one byte before their return addresses, as perf has them.
fn places(ip: u64, callers: &[u64], mapped: &[Mapped]) -> Vec<u64> {
    let lookups = std::iter::once(ip).chain(callers.iter().map(|caller| caller - 1));
    lookups
        .map(|address| {
            let object = mapped.iter().find(|object| object.code.contains(&address));
            object.map_or(0, |object| address - object.code.start + object.offset)
        })
        .collect()
}

fn compare() -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    record(folder.path())?;
    let theirs = unwound(folder.path())?;
    let (copies, mapped) = copies(&folder.path().join("perf.data"));
    if copies.is_empty() {
        return Err("perf took no samples in user mode".to_owned());
    }
    let (mut both, mut same, mut ours_alone, mut theirs_alone) = (0, 0, 0, 0);
    for (moment, (registers, stack)) in &copies {
        let (callers, end) = walk(registers, stack, &mapped);
        let reached = end == StackEnd::Root;
        match theirs.get(moment) {
            Some(unwound) if reached => {
                both += 1;
                let places = places(registers[RIP], &callers, &mapped);
                same += usize::from(places == *unwound);
            }
            Some(_) => {
                println!(
                    "perf alone reaches the root, and our walk ends with {end:?} after {callers:x?}"
                );
                theirs_alone += 1;
            }
            None => ours_alone += usize::from(reached),
        }
    }
    println!(
        "of {} copies, both reach the root in {both}, perf alone in {theirs_alone}, we alone in {ours_alone}; \
         {same} are the same",
        copies.len()
    );
    assert!(both * 10 > copies.len() * 9, "{both} of {}", copies.len());
    // perf may be lucky where a copy does not hold what is needed, or code has no unwind instructions.
    assert!(
        theirs_alone * 100 <= copies.len(),
        "{theirs_alone} of {}",
        copies.len()
    );
    assert!(same * 1000 >= both * 995, "{same} of {both} are the same");
    Ok(())
}

#[test]
fn stacks_of_a_compiler_equal_those_that_perf_unwinds() {
    require!(compare());
}
