//! From addresses to names.
//!
//! In: raw profiles, drain by drain, which [`Normalizer`] makes a [`NormalizedProfile`] one of; the [`Processes`] that they
//! are of, and a source of kernel names. Out: a [`Profile`] of the same weight. Each location in each object is
//! named once, several objects at a time. Nothing is ever dropped: what has
//! no name is shown by where its function begins, and what lies nowhere as `[unknown]`.

mod backings;
mod code_map;
mod demangle;
mod dwarf;
mod ends;
mod go;
mod interrupts;
mod kallsyms;
mod kernel;
mod kernel_function;
mod kernel_lines;
mod kernel_name_cache;
mod leaf;
mod locations;
mod memory_budget;
mod name_cache;
mod nameless;
mod native;
mod normalize;
mod objects;
mod parallel;
mod simplify;
mod skipped_debug_info;
mod store;
mod symbol_cache;
mod symbol_table;
#[cfg(test)]
mod tests;
mod unsymbolized;

pub use code_map::{CodeMap, MadeCode, dumped_code, made_code, made_in_dump, names_in};
pub use demangle::Demangling;
pub use dwarf::SourceLine;
pub use ends::{cut_short, fallbacks, stack_ends};
pub use interrupts::without_interrupted;
pub use kallsyms::{Kallsyms, KernelSymbol};
pub use kernel::{AskKernel, KernelNames, KernelNaming, KernelSymbols};
pub use kernel_function::KernelFunction;
pub use kernel_lines::{KernelFiles, KernelLines, KernelLining, running_kernel};
pub use kernel_name_cache::KernelNameCache;
pub use memory_budget::SymbolMemory;
pub use name_cache::{Answered, NameCache, Question};
pub use normalize::Normalizer;
pub use objects::Objects;
pub use skipped_debug_info::SkippedDebugInfo;
pub use store::{RecordingContents, store, symbolize_stored};
pub use unsymbolized::{AllUnsymbolized, FrameCounts, Reached, Unsymbolized, UnsymbolizedCode};

use crate::object::{Elf, ElfAddress, Fetch, FileOffset, RegularFile};
use crate::process::{Opened, Processes};
use crate::profile::StackRef;
use crate::profile::normalized::{Label, NormalizedProfile, NormalizedStackIndex};
use crate::profile::raw::{RawFrame, RawStack};
use crate::profile::{Labels, LabelsIndex, Profile, Sample, Unit, Waker, with_line};
use demangle::visible;
use foldhash::HashMap;
use locations::LookUp;
use memory_budget::MemoryBudget;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unsymbolized::{UnsymbolizedFrames, UnsymbolizedId, UnsymbolizedTable};

/// A symbolized profile, and what it has no names for.
#[derive(Clone, Debug)]
pub struct Symbolized {
    /// The profile.
    pub profile: Profile,
    /// Debug information that the memory limit kept from being read, or that is missing.
    pub skipped: SkippedDebugInfo,
    /// The code that had no names.
    table: UnsymbolizedTable,
    /// Of each location of the profile.
    of_locations: Vec<UnsymbolizedId>,
}

impl Symbolized {
    /// With another profile in place of this one, which has the same locations.
    #[must_use]
    pub fn with_profile(self, change: impl FnOnce(Profile) -> Profile) -> Self {
        Self {
            profile: change(self.profile),
            ..self
        }
    }

    /// The programs' code that has no names and that stacks of the profile have, that of most frames first.
    pub fn unsymbolized(&self) -> AllUnsymbolized {
        let profile = &self.profile;
        let mut table = self.table.clone();
        let mut of_stacks: HashMap<NormalizedStackIndex, UnsymbolizedFrames> = HashMap::default();
        for sample in profile.samples() {
            let waker = sample.waker.map(|index| profile.waker_at(index));
            let woke = waker.map_or([None; 2], |waker| [waker.kernel, waker.user]);
            let stacks = [sample.kernel, sample.user].into_iter().chain(woke);
            let stacks: Vec<NormalizedStackIndex> = stacks.flatten().collect();
            for &index in &stacks {
                let met = of_stacks.entry(index);
                met.or_insert_with(|| self.of_stack(profile.stack_at(index)));
            }
            table.count(stacks.iter().map(|index| &of_stacks[index]), sample.count);
        }
        table.into_most_first()
    }

    fn of_stack(&self, stack: StackRef<'_>) -> UnsymbolizedFrames {
        let of_locations = stack.locations();
        of_locations
            .map(|at| self.of_locations[at.0 as usize])
            .collect()
    }
}

/// How code is to be named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// Directories of debug files to look in before any other, laid out as `/usr/lib/debug` is.
    pub debug_directories: Vec<PathBuf>,
    /// Treatment of mangled names.
    pub demangling: Demangling,
    /// Frames for functions that were compiled into others, from DWARF.
    pub inlined: bool,
    /// File and line of each frame, from DWARF.
    pub lines: bool,
    /// One frame for all lines of a function, though they are known.
    pub joins_lines: bool,
    /// The native frames of interpreters: their loops, and what leads to these and from these.
    pub interpreter_frames: bool,
    /// Each address without a name as itself, not as the function that it lies in.
    pub addresses: bool,
    /// For each named location of a recording one more than its place, as its address: outputs that hold addresses would
    /// be larger for it, and these would be none.
    pub places: bool,
    /// File and line in the name of the kernel's frames, from its DWARF.
    pub kernel_lines: bool,
    /// The most memory that naming may hold at once.
    pub memory: SymbolMemory,
}

impl Naming {
    /// This, with no more memory than half of so much for all.
    #[must_use]
    pub fn within(self, all_bytes: Option<u64>) -> Self {
        let part = all_bytes.map_or(u64::MAX, |bytes| bytes / 2);
        let least = u64::from(SymbolMemory::MIN_MIB) << 20;
        Self {
            memory: SymbolMemory {
                bytes: self.memory.bytes.min(part.max(least)),
            },
            ..self
        }
    }
}

/// Where names of programs' code come from.
pub struct Sources<'a> {
    /// How programs' code is to be named.
    pub naming: &'a Naming,
    /// Asks for a debug file that is not on this machine.
    pub fetch: Option<&'a Fetch<'a>>,
    /// Called as naming goes on: so many objects were looked up, of so many.
    pub progress: Option<&'a dyn Fn(usize, usize)>,
    /// Names that were found before; none where nobody will ask again.
    pub names: Option<&'a NameCache>,
}

/// Finds symbols for everything in `normalized`, whose locations lie in `objects` of `processes`.
pub fn symbolize(
    normalized: NormalizedProfile,
    objects: &Objects,
    unit: Unit,
    processes: &Processes,
    kernel: &KernelSymbols,
    sources: &Sources<'_>,
) -> Symbolized {
    let (naming, names) = (sources.naming, sources.names);
    let memory = MemoryBudget::new(naming.memory);
    let look_up = |index, offsets: &[FileOffset], fetch: Option<&Fetch<'_>>| {
        let sources = native::Sources {
            naming,
            fetch,
            memory: &memory,
            cache: None,
        };
        name_cache::look_up(names, (objects, index), processes, sources, offsets)
    };
    build(
        normalized,
        unit,
        kernel,
        sources,
        parallel::threads(),
        &look_up,
    )
}

/// Finds symbols for everything in `normalized`, whose objects `look_up` knows, by so many `threads`.
fn build(
    normalized: NormalizedProfile,
    unit: Unit,
    kernel: &KernelSymbols,
    sources: &Sources<'_>,
    threads: usize,
    look_up: LookUp<'_>,
) -> Symbolized {
    let mut profile = Profile::new(unit, normalized.window);
    profile.line_frames = !sources.naming.joins_lines;
    profile.windows.clone_from(&normalized.windows);
    let mut table = UnsymbolizedTable::default();
    let found = locations::symbolize(
        &normalized,
        kernel,
        (sources, threads),
        &mut profile,
        &mut table,
        look_up,
    );
    for stack in normalized.stacks() {
        profile.stack(stack);
    }
    for waker in normalized.wakers() {
        let labels = labels(&waker.label, &normalized, &mut profile);
        profile.waker(Waker {
            labels,
            user: waker.user,
            kernel: waker.kernel,
            interrupt: false,
        });
    }
    profile.reserve(normalized.samples().len());
    for (key, sums) in normalized.samples() {
        let labels = labels(&key.label, &normalized, &mut profile);
        profile.push(Sample {
            labels,
            user: key.user,
            kernel: key.kernel,
            thread_state: key.thread_state,
            reason: None,
            waker: key.waker,
            window: key.window,
            weight: sums.weight,
            count: sums.count,
        });
    }
    Symbolized {
        profile,
        skipped: found.skipped,
        table,
        of_locations: found.unsymbolized,
    }
}

/// A function at an address of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFrame {
    /// Its name for readers.
    pub name: String,
    /// Its source file; empty where it was not asked for, or is not known.
    pub file: Arc<str>,
    /// The line, from 1; 0 where it was not asked for, or is not known.
    pub line: u32,
}

impl ObjectFrame {
    fn of(level: &native::Level) -> Self {
        let source = level.source.as_ref();
        Self {
            name: level.name.clone(),
            file: source.map_or_else(Arc::default, |source| Arc::clone(&source.file)),
            line: source.map_or(0, |source| source.line),
        }
    }

    /// The function's name, with its file's name and line behind it where they are known.
    pub fn shown(&self) -> String {
        with_line(&self.name, &self.file, self.line)
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
) -> (Vec<Vec<ObjectFrame>>, SkippedDebugInfo) {
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
        memory: &MemoryBudget::new(naming.memory),
        cache: None,
    };
    let named = native::name(&Opened::ours(file), path, &offsets, sources);
    let module = path.file_name().unwrap_or_default();
    let shown = visible(module.as_bytes());
    let frames = |symbol: &native::Symbol| match symbol {
        native::Symbol::Named(index) => {
            let function = &named.functions[*index];
            let levels = std::iter::once(&function.outermost).chain(&function.inlined);
            levels.map(ObjectFrame::of).collect()
        }
        native::Symbol::Within(begin) => vec![ObjectFrame {
            name: at(&shown, begin.0),
            file: Arc::default(),
            line: 0,
        }],
        native::Symbol::Unsymbolized => Vec::new(),
    };
    let mut skipped = SkippedDebugInfo::default();
    skipped.note(&shown, named.asked);
    (named.of.iter().map(frames).collect(), skipped)
}

/// A linker's name as frames show it.
pub fn readable(name: &[u8]) -> String {
    demangle::demangle(name, Demangling::Full)
}

/// The addresses to look up for a stack, from leaf to root.
///
/// The leaf is where the CPU was. Every other address is where a call will return to: the instruction
/// behind the call. If the call was the last thing in its function, because it never returns, that
/// instruction is already the next function's. One byte earlier is still the call. The kernel half counts on that where it puts
/// an interpreter's frames in front of the leaf.
fn lookups(stack: &RawStack) -> impl Iterator<Item = u64> {
    let mut is_leaf = true;
    stack.frames.iter().filter_map(move |frame| {
        let address = frame.address();
        let address = address.map(|address| {
            if is_leaf {
                address
            } else {
                address.saturating_sub(1)
            }
        });
        is_leaf &= address.is_none() && !matches!(frame, RawFrame::Function(_));
        address
    })
}

/// Labels of an owner, in words that a profile has.
fn labels(of: &Label, normalized: &NormalizedProfile, profile: &mut Profile) -> LabelsIndex {
    profile.labels(Labels {
        process: normalized.process_name(of).map(|name| owner_name(name)),
        comm: Some(owner_name(normalized.thread_name(of))),
        pid: Some(of.pid),
        start: of.start,
        tid: of.tid,
        cpu: of.cpu,
        cgroup: normalized.cgroup_of(of).cloned(),
        context: normalized.context_of(of).cloned(),
        ..Labels::default()
    })
}

/// The name of a process or thread as it is shown; it may hold anything, or nothing.
pub fn owner_name(name: &[u8]) -> String {
    if name.is_empty() {
        "[nameless]".to_owned()
    } else {
        visible(name)
    }
}

/// How a location without a name is shown. The number is, where the object could be read, the address in
/// it that `objdump` and `addr2line` take; else how far into the file it lies, or into the mapping if
/// there is no file. For the kernel, whose base is as unknown as its names, it is the address itself.
fn at(module: &str, offset: u64) -> String {
    format!("[{module}+{offset:#x}]")
}
