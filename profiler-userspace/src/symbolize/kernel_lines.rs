//! Lines of the kernel's code.
//!
//! In: addresses in the running kernel, their names, where its debug information may be, and whom to ask for it
//! otherwise. Out: the names with file and line behind them, and a word on how that went. A file is believed if it has the build ID that the
//! running kernel has. The kernel lies elsewhere at each boot; how far is what lies between its first address and
//! that of the file's code, and the names that the kernel itself gives to addresses have to agree. Modules and BPF
//! programs are in no such file, and stay without lines.

use super::dwarf::{self, Question};
use super::kernel::readable;
use super::memory::SymbolMemory;
use super::symbol_table;
use crate::object::{BuildId, DebugFile, Elf, ElfAddress, Fetch, RegularFile, Search};
use std::cell::{OnceCell, RefCell};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The symbol where the kernel's code begins.
const FIRST: &str = "_text";

/// The most of the kernel's notes that is read, in bytes; they have a few hundred.
const MAX_NOTES_BYTES: u64 = 1 << 20;

/// At least one name in so many has to be the same in the file as in the kernel. Of several names for one address,
/// each may choose another.
const AGREE_ONE_IN: usize = 4;

/// Where what is known of the running kernel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFiles {
    /// Its notes, with the build ID.
    pub notes: PathBuf,
    /// Its list of symbols.
    pub symbols: PathBuf,
    /// Where its debug information may be, the likeliest first.
    pub debug: Vec<PathBuf>,
}

impl KernelFiles {
    /// Those of this machine, whose kernel is of that release; `directories` are laid out as `/usr/lib/debug` is and
    /// come first.
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
            notes: "/sys/kernel/notes".into(),
            symbols: "/proc/kallsyms".into(),
            debug: installed.chain(built.map(PathBuf::from)).collect(),
        }
    }
}

/// How the kernel's functions got their lines, or why they have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelLining {
    /// There was nothing to tell lines of.
    #[default]
    NotNeeded,
    /// From a file.
    Told {
        /// How many places lie in no such file: in modules, or BPF programs.
        beyond: usize,
        /// How many were left, because they would have taken more memory or time than allowed.
        left: usize,
    },
    /// There is no file, and servers gave none.
    Missing {
        /// Where it would be first.
        wanted: PathBuf,
    },
    /// There are files, none of which is of this kernel or holds debug information, and servers gave none.
    Another {
        /// The first of them.
        found: PathBuf,
    },
    /// The kernel does not say which build it is.
    Unproven,
    /// The kernel does not say where it lies.
    Hidden,
    /// What lies in the file is not what the kernel says.
    Unfit {
        /// The file; none if a server gave it.
        found: Option<PathBuf>,
    },
}

/// Tells lines of the kernel's code.
pub struct KernelLines<'a> {
    files: KernelFiles,
    memory: SymbolMemory,
    /// Whom to ask for a file that is not here.
    fetch: Option<&'a Fetch<'a>>,
    /// What they gave: it may be large, and nobody else may keep it.
    fetched: OnceCell<Option<DebugFile>>,
    lining: RefCell<KernelLining>,
}

impl<'a> KernelLines<'a> {
    /// Lines from such files, or from what `fetch` brings if none of them is right, for so much memory.
    pub fn new(files: KernelFiles, memory: SymbolMemory, fetch: Option<&'a Fetch<'a>>) -> Self {
        Self {
            files,
            memory,
            fetch,
            fetched: OnceCell::new(),
            lining: RefCell::default(),
        }
    }

    /// How it went, the last time.
    pub fn lining(&self) -> KernelLining {
        self.lining.borrow().clone()
    }

    /// Puts lines behind the names of addresses, which ascend.
    pub(super) fn add(&self, addresses: &[u64], names: &mut [Option<String>]) {
        let lining = if addresses.is_empty() {
            KernelLining::NotNeeded
        } else {
            let tell = AssertUnwindSafe(|| self.tell(addresses, names));
            // The file may be anything, as any debug file may.
            catch_unwind(tell).unwrap_or_else(|_| KernelLining::Missing {
                wanted: self.files.debug.first().cloned().unwrap_or_default(),
            })
        };
        *self.lining.borrow_mut() = lining;
    }

    fn tell(&self, addresses: &[u64], names: &mut [Option<String>]) -> KernelLining {
        let Some(id) = running_build(&self.files.notes) else {
            return KernelLining::Unproven;
        };
        // Before a file is fetched that would be of no use.
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
        // Ascending as the others are, for all are moved alike and none of them around the end.
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
            let line = levels.into_iter().next().and_then(|level| level.line);
            if let (Some(name), Some(line)) = (&mut names[places[number]], line) {
                *name = format!("{name} ({line})");
            }
        });
        KernelLining::Told {
            beyond,
            left: asked.left,
        }
    }

    /// The file of this build that servers gave. They are asked once.
    fn fetch(&self, id: &BuildId) -> Option<&DebugFile> {
        let ask = || debug_file(&(self.fetch?)(id)?, id);
        self.fetched.get_or_init(ask).as_ref()
    }

    /// The first file that is of this build and holds debug information.
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

/// What a file holds, if it is of that build and holds debug information.
fn debug_file(file: &RegularFile, id: &BuildId) -> Option<DebugFile> {
    let elf = Elf::read(&file.file)?;
    let is_it = elf.build_id.as_ref() == Some(id) && elf.debug.has_dwarf();
    is_it.then(|| DebugFile::of(&file.file, &elf)).flatten()
}

/// Which build of the kernel runs.
fn running_build(notes: &Path) -> Option<BuildId> {
    let mut bytes = Vec::new();
    let notes = File::open(notes).ok()?;
    notes.take(MAX_NOTES_BYTES).read_to_end(&mut bytes).ok()?;
    BuildId::in_notes(&bytes)
}

/// Where the running kernel has a symbol; none if it hides that.
fn address_of(symbols: &Path, wanted: &str) -> Option<u64> {
    let lines = BufReader::new(fs::File::open(symbols).ok()?).lines();
    let found = lines.map_while(Result::ok).find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = words.next()?;
        (words.nth(1)? == wanted).then(|| u64::from_str_radix(address, 16).ok())
    });
    found.flatten().filter(|address| *address != 0)
}

/// The first address of the file's code, where the kernel has [`FIRST`] (`arch/x86/kernel/vmlinux.lds.S`; on arm64 it
/// is where `.head.text` begins).
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

/// Whether what the kernel calls these addresses is what the file does, as far as both have names.
fn agree(
    source: &DebugFile,
    addresses: &[ElfAddress],
    places: &[usize],
    names: &[Option<String>],
) -> bool {
    let Some(table) = &source.elf.symbols else {
        // It is the same build, and there is nothing else to compare.
        return true;
    };
    let found = symbol_table::look_up(&source.file, &source.elf, table, addresses);
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
