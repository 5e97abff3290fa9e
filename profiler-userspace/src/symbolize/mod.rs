//! From addresses to names.
//!
//! In: raw profiles, drain by drain, which [`Normalizer`] makes a [`NormalizedProfile`] one of; the [`Processes`] that they
//! are of, and a source of kernel names. Out: a [`Profile`] of the same weight. Each location in each object is
//! named once, several objects at a time. Nothing is ever dropped: what has
//! no name is shown by where it lies, and what lies nowhere as `[unknown]`.

mod backings;
mod code_map;
mod counting;
mod demangle;
mod dwarf;
mod ends;
mod frames;
mod gaps;
mod interrupts;
mod kernel;
mod kernel_lines;
mod leaf;
mod memory;
mod native;
mod normalize;
mod objects;
mod side_by_side;
mod simplify;
mod store;
mod symbol_table;
#[cfg(test)]
mod tests;
mod untold;

pub use code_map::{CodeMap, names_told};
pub use demangle::Demangling;
pub use ends::{cut_short, fp_fallback, stack_ends};
pub use gaps::{Gap, Reached, Unnamed};
pub use interrupts::without_interrupted;
pub use kernel::{AskKernel, KernelNames, KernelNaming};
pub use kernel_lines::{KernelFiles, KernelLines, KernelLining};
pub use memory::SymbolMemory;
pub use normalize::Normalizer;
pub use objects::Objects;
pub use store::{Stored, store, symbolize_stored};
pub use untold::Untold;

use crate::object::{Elf, ElfAddress, Fetch, FileOffset, RegularFile};
use crate::process::{Opened, Processes};
use crate::profile::normalized::{Label, NormalizedProfile, NormalizedStackIndex};
use crate::profile::raw::{RawFrame, RawStack};
use crate::profile::waits::{BLOCKED, RUNNABLE, WAKER_UNSEEN, WOKEN_BY};
use crate::profile::wall::NOT_SAMPLED;
use crate::profile::{Frame, FrameId, FrameKind, Profile, Sample, Unit};
use demangle::visible;
use frames::{Frames, LookUp};
use gaps::Gaps;
use memory::Memory;
use profiler_common::abi::ThreadState;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A symbolized profile, and how it came to its kernel names.
#[derive(Clone, Debug)]
pub struct Symbolized {
    /// The profile.
    pub profile: Profile,
    /// Where the names of kernel functions came from, or why they are missing.
    pub kernel: KernelNaming,
    /// The programs' code that had no names, the widest gap first.
    pub unnamed: Vec<Unnamed>,
    /// What the limit on memory did to names.
    pub untold: Untold,
}

/// How code is to be named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// Directories of debug files to look in before any other, laid out as `/usr/lib/debug` is.
    pub debug_directories: Vec<PathBuf>,
    /// What becomes of mangled names.
    pub demangling: Demangling,
    /// Frames for functions that were compiled into others, from DWARF.
    pub inlined: bool,
    /// File and line in the name of each frame, from DWARF.
    pub lines: bool,
    /// File and line in the name of the kernel's frames, from its DWARF.
    pub kernel_lines: bool,
    /// The most memory that naming may hold at once.
    pub memory: SymbolMemory,
}

/// Where names come from.
pub struct Sources<'a> {
    /// Names of the kernel's functions.
    pub kernel: KernelNames<'a>,
    /// How programs' code is to be named.
    pub naming: &'a Naming,
    /// Asks for a debug file that is not on this machine.
    pub fetch: Option<&'a Fetch<'a>>,
    /// Is told how far naming has come: so many objects were asked, of so many.
    pub progress: Option<&'a dyn Fn(usize, usize)>,
}

/// Names everything in `normalized`, whose locations lie in `objects` of `processes`.
pub fn symbolize(
    normalized: &NormalizedProfile,
    objects: &Objects,
    unit: Unit,
    processes: &Processes,
    mut sources: Sources<'_>,
) -> Symbolized {
    let naming = sources.naming;
    let memory = Memory::new(naming.memory);
    let look_up = |index, offsets: &[FileOffset], fetch: Option<&Fetch<'_>>| {
        let sources = native::Sources {
            naming,
            fetch,
            memory: &memory,
        };
        backings::look_up(objects.get(index), processes, sources, offsets)
    };
    name(normalized, unit, &mut sources, &look_up)
}

/// Names everything in `normalized`, whose objects `look_up` knows.
fn name(
    normalized: &NormalizedProfile,
    unit: Unit,
    sources: &mut Sources<'_>,
    look_up: LookUp<'_>,
) -> Symbolized {
    let mut profile = Profile::new(unit, normalized.window);
    let mut gaps = Gaps::default();
    let (mut frames, naming) = Frames::name(normalized, sources, &mut profile, &mut gaps, look_up);
    // Functions have many locations, and so stacks of locations are more than stacks of names.
    let mut named: HashMap<Vec<FrameId>, (u64, u64)> = HashMap::new();
    for (key, sums) in normalized.samples() {
        let mut stack = Vec::new();
        let waker = key.waker.map(|index| normalized.waker_at(index));
        let woke = waker.map_or([None; 2], |waker| [waker.user, waker.kernel]);
        let own = [key.user, key.kernel];
        let parts = own.into_iter().chain(woke).flatten();
        let locations = parts.flat_map(|index| &normalized.stack_at(index).locations);
        gaps.count(locations.map(|location| frames.gap(*location)), sums.count);
        let marks: &[&str] = match (key.thread_state, waker) {
            (ThreadState::Running, _) => &[],
            (ThreadState::Blocked, _) => &[BLOCKED],
            (ThreadState::Runnable, _) => &[RUNNABLE],
            (ThreadState::Ran, _) => &[NOT_SAMPLED],
            (ThreadState::Woken, Some(_)) => &[BLOCKED, WOKEN_BY],
            (ThreadState::Woken, None) => &[BLOCKED, WOKEN_BY, WAKER_UNSEEN],
        };
        let mut walked =
            |label: &Label, stacks: [Option<NormalizedStackIndex>; 2], marks: &[&str]| {
                labels(label, &mut profile, &mut stack);
                for index in stacks.into_iter().flatten() {
                    let part = normalized.stack_at(index);
                    if let Some(mark) = part.end.mark() {
                        stack.push(profile.intern(frame(mark.to_owned(), FrameKind::Mark)));
                    }
                    let locations = part.locations.iter().rev();
                    stack.extend(locations.flat_map(|location| frames.levels(*location)));
                }
                let marks = marks
                    .iter()
                    .map(|mark| frame((*mark).to_owned(), FrameKind::Mark));
                stack.extend(marks.map(|mark| profile.intern(mark)));
            };
        walked(&key.label, own, marks);
        if let Some(waker) = waker {
            walked(&waker.label, woke, &[]);
        }
        let (weight, count) = named.entry(stack).or_default();
        *weight = weight.saturating_add(sums.weight);
        *count = count.saturating_add(sums.count);
    }
    for (stack, (weight, count)) in named {
        profile.push(Sample {
            stack: stack.into_boxed_slice(),
            weight,
            count,
        });
    }
    Symbolized {
        profile,
        kernel: naming,
        unnamed: gaps.into_widest_first(),
        untold: frames.take_untold(),
    }
}

/// The frames at addresses of one object, which lies at `path`, the outermost first, none where nothing is
/// known; and what the limit on memory did to them.
pub fn name_object(
    file: RegularFile,
    path: &Path,
    addresses: &[ElfAddress],
    naming: &Naming,
    fetch: Option<&Fetch<'_>>,
) -> (Vec<Vec<String>>, Untold) {
    // An offset that no file has stands for an address that this one has not.
    let nowhere = FileOffset(u64::MAX);
    let segments = Elf::read(&file.file)
        .map(|elf| elf.segments)
        .unwrap_or_default();
    let offsets: Vec<FileOffset> = addresses
        .iter()
        .map(|address| segments.offset(*address).unwrap_or(nowhere))
        .collect();
    let sources = native::Sources {
        naming,
        fetch,
        memory: &Memory::new(naming.memory),
    };
    let named = native::name(&Opened::ours(file), path, &offsets, sources);
    let frames = |symbol: &native::Symbol| match symbol {
        native::Symbol::Named(index) => {
            let function = &named.functions[*index];
            let inlined = function.inlined.iter().cloned();
            std::iter::once(function.name.clone())
                .chain(inlined)
                .collect()
        }
        native::Symbol::At(_) | native::Symbol::Unknown => Vec::new(),
    };
    let mut untold = Untold::default();
    let module = path.file_name().unwrap_or_default();
    untold.note(&visible(module.as_bytes()), named.asked);
    (named.of.iter().map(frames).collect(), untold)
}

/// A linker's name as frames show it.
pub fn readable(name: &[u8]) -> String {
    demangle::demangle(name, Demangling::Full)
}

/// The addresses to look up for a stack, from leaf to root.
///
/// The leaf is where the CPU was. Every other address is where a call will return to: the instruction
/// behind the call. If the call was the last thing in its function, because it never returns, that
/// instruction is already the next function's. One byte earlier is still the call.
fn lookups(stack: &RawStack) -> impl Iterator<Item = u64> {
    let code = stack.frames.iter().filter_map(RawFrame::address);
    code.zip(0u32..).map(|(address, depth)| {
        if depth == 0 {
            address
        } else {
            address.saturating_sub(1)
        }
    })
}

/// The frames outside of both stacks: the CPU if asked for, the process, the thread if asked for.
fn labels(of: &Label, profile: &mut Profile, stack: &mut Vec<FrameId>) {
    let labels = [
        of.cpu.map(Frame::cpu),
        Some(frame(comm(&of.comm), FrameKind::Process)),
        of.tid.map(Frame::thread),
    ];
    stack.extend(
        labels
            .into_iter()
            .flatten()
            .map(|label| profile.intern(label)),
    );
}

/// A thread's name, which may hold anything, or nothing.
fn comm(bytes: &[u8]) -> String {
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    if name.is_empty() {
        "[nameless]".to_owned()
    } else {
        visible(name)
    }
}

fn frame(name: String, kind: FrameKind) -> Frame {
    Frame { name, kind }
}

/// How a location without a name is shown. The number is, where the object could be read, the address in
/// it that `objdump` and `addr2line` take; else how far into the file it lies, or into the mapping if
/// there is no file. For the kernel, whose base is as unknown as its names, it is the address itself.
fn at(module: &str, offset: u64) -> String {
    format!("[{module}+{offset:#x}]")
}
