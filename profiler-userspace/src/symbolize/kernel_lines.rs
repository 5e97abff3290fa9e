//! File and line of kernel code.
//!
//! In: addresses in the running kernel, their names, where its debug information may be, and a way to fetch
//! it. Out: files and lines, and how that went. A file is accepted if its build ID is
//! the running kernel's. The kernel is loaded at another address at each boot; the offset is the difference
//! between its first address and the first address of the file's code, and the names that the kernel gives to
//! addresses have to match. Modules and BPF programs are in no such file and get no lines.

use super::dwarf::{self, Level, Question, SourceLine};
use super::kernel_function::{KernelFunction, readable};
use super::memory_budget::SymbolMemory;
use super::symbol_table;
use crate::object::{BuildId, DebugFile, Elf, ElfAddress, Fetch, RegularFile, Search};
use std::cell::{OnceCell, RefCell};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The symbol at the beginning of the kernel's code.
const FIRST: &str = "_text";

/// The running kernel's notes.
const NOTES: &str = "/sys/kernel/notes";

/// How much of the kernel's notes is read at most, in bytes; they have a few hundred.
const MAX_NOTES_BYTES: u64 = 1 << 20;

/// At least one name in so many has to be the same in the file as in the kernel. Each may choose another of
/// several names for an address.
const AGREE_ONE_IN: usize = 4;

/// Where to look for what is known of the running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFiles {
    /// Its notes, with the build ID.
    pub notes: PathBuf,
    /// Its list of symbols.
    pub symbols: PathBuf,
    /// Candidates for its debug information, the likeliest first.
    pub debug: Vec<PathBuf>,
}

impl KernelFiles {
    /// The places on this machine for this kernel release; `directories` are laid out like `/usr/lib/debug`
    /// and come first.
    pub fn here(release: &str, directories: &[PathBuf]) -> Self {
        let usual = PathBuf::from("/usr/lib/debug");
        let installed = directories.iter().chain([&usual]).flat_map(|directory| {
            [
                directory.join(format!("boot/vmlinux-{release}")),
                directory.join(format!("lib/modules/{release}/vmlinux")),
                directory.join(format!("usr/lib/modules/{release}/vmlinux")),
            ]
        });
        let built = [
            format!("/lib/modules/{release}/build/vmlinux"),
            format!("/boot/vmlinux-{release}"),
        ];
        Self {
            notes: NOTES.into(),
            symbols: "/proc/kallsyms".into(),
            debug: installed.chain(built.map(PathBuf::from)).collect(),
        }
    }
}

/// How kernel functions got their lines, or why they have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelLining {
    /// There were no addresses.
    #[default]
    NotNeeded,
    /// From a file.
    Told {
        /// How many addresses are in no such file: in modules or BPF programs.
        beyond: usize,
        /// How many were skipped, because they would have exceeded the memory or time limit.
        left: usize,
    },
    /// There is no file, and no server has one.
    Missing {
        /// The first place where it was searched.
        wanted: PathBuf,
    },
    /// There are files, but none is of this kernel and has debug information, and no server has one.
    Another {
        /// The first of them.
        found: PathBuf,
    },
    /// The kernel does not report its build ID.
    Unproven,
    /// The kernel does not report where it is loaded.
    Hidden,
    /// The file's names do not match the kernel's.
    Unfit {
        /// The file; none if it came from a server.
        found: Option<PathBuf>,
    },
}

/// Adds lines to kernel code.
pub struct KernelLines<'a> {
    files: KernelFiles,
    memory: SymbolMemory,
    /// Fetches a file that is not here.
    fetch: Option<&'a Fetch<'a>>,
    /// The fetched file: it may be large, and only this keeps it open.
    fetched: OnceCell<Option<DebugFile>>,
    lining: RefCell<KernelLining>,
}

impl<'a> KernelLines<'a> {
    /// Lines from these files, or from what `fetch` brings if none of them is right, within this much memory.
    pub fn new(files: KernelFiles, memory: SymbolMemory, fetch: Option<&'a Fetch<'a>>) -> Self {
        Self {
            files,
            memory,
            fetch,
            fetched: OnceCell::new(),
            lining: RefCell::default(),
        }
    }

    /// The outcome of the last time.
    pub fn lining(&self) -> KernelLining {
        self.lining.borrow().clone()
    }

    /// Adds lines to the functions at addresses, which ascend.
    pub(super) fn add(&self, addresses: &[u64], functions: &mut [Option<KernelFunction>]) {
        let names: Vec<Option<String>> = (functions.iter())
            .map(|function| Some(function.as_ref()?.name.clone()))
            .collect();
        self.ask(addresses, &names, |number, levels| {
            let line = levels.into_iter().next().and_then(|level| level.line);
            if let Some(function) = &mut functions[number] {
                function.source = line;
            }
        });
    }

    /// The functions that were compiled into one at each of its addresses, which ascend, itself first, as far as these are
    /// known: with lines, and names if they have any.
    pub fn within(&self, function: &str, addresses: &[u64]) -> Vec<Vec<(String, SourceLine)>> {
        let names = vec![Some(function.to_owned()); addresses.len()];
        let mut all = vec![Vec::new(); addresses.len()];
        self.ask(addresses, &names, |number, levels| {
            let level = |level: Level| {
                let name = level.name.and_then(|name| readable(&name));
                Some((name.unwrap_or_default(), level.line?))
            };
            all[number] = levels.into_iter().filter_map(level).collect();
        });
        all
    }

    fn ask(
        &self,
        addresses: &[u64],
        names: &[Option<String>],
        take: impl FnMut(usize, Vec<Level>),
    ) {
        let lining = if addresses.is_empty() {
            KernelLining::NotNeeded
        } else {
            let look_up = AssertUnwindSafe(|| self.look_up(addresses, names, take));
            // The file may contain anything, like any debug file.
            catch_unwind(look_up).unwrap_or_else(|_| KernelLining::Missing {
                wanted: self.files.debug.first().cloned().unwrap_or_default(),
            })
        };
        *self.lining.borrow_mut() = lining;
    }

    /// Calls `take` with the number of each address and its functions, the outermost first.
    fn look_up(
        &self,
        addresses: &[u64],
        names: &[Option<String>],
        mut take: impl FnMut(usize, Vec<Level>),
    ) -> KernelLining {
        let Some(id) = build_in(&self.files.notes) else {
            return KernelLining::Unproven;
        };
        // Checked before fetching a file that would be of no use.
        let Some(first) = address_of(&self.files.symbols, FIRST) else {
            return KernelLining::Hidden;
        };
        let (mut installed, mut installed_file) = (None, None);
        let source: &DebugFile = match self.find(&id) {
            Ok((path, found)) => {
                installed = Some(path);
                installed_file.insert(found)
            }
            Err(lining) => match self.fetch(&id) {
                Some(fetched) => fetched,
                None => return lining,
            },
        };
        let begins = code_begins(&source.elf);
        let unfit = || KernelLining::Unfit {
            found: installed.map(Path::to_owned),
        };
        let Some(slide) = begins.map(|begins| first.wrapping_sub(begins)) else {
            return unfit();
        };
        let (places, within): (Vec<usize>, Vec<ElfAddress>) = addresses
            .iter()
            .enumerate()
            .map(|(place, address)| (place, ElfAddress(address.wrapping_sub(slide))))
            .filter(|(_, address)| has_code(&source.elf, *address))
            .unzip();
        let beyond = addresses.len() - within.len();
        // These ascend too, because all are shifted alike and none wraps around.
        if !within.is_sorted() || !agree(source, &within, &places, names) {
            return unfit();
        }
        let question = Question {
            source,
            shared: None,
            path: installed.unwrap_or(Path::new("vmlinux")),
            search: Search {
                directories: &[],
                roots: &[],
                fetch: None,
            },
            bytes: self.memory.bytes,
        };
        let asked = dwarf::look_up(question, &within, |number, levels| {
            take(places[number], levels);
        });
        KernelLining::Told {
            beyond,
            left: asked.left,
        }
    }

    /// The fetched file of this build. Servers are asked once.
    fn fetch(&self, id: &BuildId) -> Option<&DebugFile> {
        let ask = || debug_file(&(self.fetch?)(id)?, id);
        self.fetched.get_or_init(ask).as_ref()
    }

    /// The first file of this build that has debug information.
    fn find(&self, id: &BuildId) -> Result<(&Path, DebugFile), KernelLining> {
        let mut other = None;
        for path in &self.files.debug {
            let Ok(file) = RegularFile::open(path) else {
                continue;
            };
            match debug_file(&file, id) {
                Some(found) => return Ok((path, found)),
                None => other = other.or(Some(path)),
            }
        }
        Err(match other {
            Some(found) => KernelLining::Another {
                found: found.clone(),
            },
            None => KernelLining::Missing {
                wanted: self.files.debug.first().cloned().unwrap_or_default(),
            },
        })
    }
}

/// The file's tables, if it is of that build and has debug information.
fn debug_file(file: &RegularFile, id: &BuildId) -> Option<DebugFile> {
    let elf = Elf::read(&file.file)?;
    let is_it = elf.build_id.as_ref() == Some(id) && elf.debug.has_dwarf();
    is_it.then(|| DebugFile::of(&file.file, &elf)).flatten()
}

/// The running kernel's build ID.
pub fn running_kernel() -> Option<BuildId> {
    build_in(Path::new(NOTES))
}

/// The build ID in a kernel's notes.
fn build_in(notes: &Path) -> Option<BuildId> {
    let mut bytes = Vec::new();
    let notes = File::open(notes).ok()?;
    notes.take(MAX_NOTES_BYTES).read_to_end(&mut bytes).ok()?;
    BuildId::in_notes(&bytes)
}

/// The address of a symbol in the running kernel; none if it is hidden.
fn address_of(symbols: &Path, wanted: &str) -> Option<u64> {
    let lines = BufReader::new(fs::File::open(symbols).ok()?).lines();
    let found = lines.map_while(Result::ok).find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = words.next()?;
        (words.nth(1)? == wanted).then(|| u64::from_str_radix(address, 16).ok())
    });
    found.flatten().filter(|address| *address != 0)
}

/// The first address of the file's code, where the kernel has [`FIRST`] (`vmlinux.lds.S` of each machine).
fn code_begins(elf: &Elf) -> Option<u64> {
    let sections = elf.code.iter().flatten();
    sections
        .filter(|code| !code.is_empty())
        .map(|code| code.start)
        .min()
}

fn has_code(elf: &Elf, address: ElfAddress) -> bool {
    elf.code
        .iter()
        .flatten()
        .any(|code| code.contains(&address.0))
}

/// Whether the kernel's names for these addresses match the file's, as far as both have names.
fn agree(
    source: &DebugFile,
    addresses: &[ElfAddress],
    places: &[usize],
    names: &[Option<String>],
) -> bool {
    let Some(table) = &source.elf.symbols else {
        // The build is the same, and there is nothing else to compare.
        return true;
    };
    let found = symbol_table::look_up(&source.file, &source.elf, table, addresses, None);
    let both = found.of.iter().zip(places).filter_map(|(of, place)| {
        let in_file = readable(&found.names[(*of)?])?;
        Some(in_file == *names[*place].as_ref()?)
    });
    let (same, all) = both.fold((0, 0), |(same, all), is_same| {
        (same + usize::from(is_same), all + 1)
    });
    same * AGREE_ONE_IN >= all
}

#[cfg(test)]
mod tests;
