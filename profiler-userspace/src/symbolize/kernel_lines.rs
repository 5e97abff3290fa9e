//! Lines of the kernel's code.
//!
//! In: addresses in the running kernel, their names, and where its debug information may be. Out: the names with
//! file and line behind them, and a word on how that went. A file is believed if it has the build ID that the
//! running kernel has. The kernel lies elsewhere at each boot; how far is what lies between its first address and
//! that of the file's code, and the names that the kernel itself gives to addresses have to agree. Modules and BPF
//! programs are in no such file, and stay without lines.

use super::dwarf::{self, Question};
use super::kernel::readable;
use super::memory::SymbolMemory;
use super::symbol_table;
use crate::object::{BuildId, DebugFile, Elf, ElfAddress, RegularFile, Search};
use std::cell::RefCell;
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
    /// There is no file.
    Missing {
        /// Where it would be first.
        wanted: PathBuf,
    },
    /// There are files, none of which is of this kernel or holds debug information.
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
        /// The file.
        found: PathBuf,
    },
}

/// Tells lines of the kernel's code.
#[derive(Debug)]
pub struct KernelLines {
    files: KernelFiles,
    memory: SymbolMemory,
    lining: RefCell<KernelLining>,
}

impl KernelLines {
    /// Lines from such files, for so much memory.
    pub fn new(files: KernelFiles, memory: SymbolMemory) -> Self {
        Self {
            files,
            memory,
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
        let (path, source) = match self.find(&id) {
            Ok(found) => found,
            Err(lining) => return lining,
        };
        let begins = code_begins(&source.elf);
        let Some(first) = address_of(&self.files.symbols, FIRST) else {
            return KernelLining::Hidden;
        };
        let unfit = || KernelLining::Unfit {
            found: path.to_owned(),
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
        if !within.is_sorted() || !agree(&source, &within, &places, names) {
            return unfit();
        }
        let question = Question {
            source: &source,
            shared: None,
            path,
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

    /// The first file that is of this build and holds debug information.
    fn find(&self, id: &BuildId) -> Result<(&Path, DebugFile), KernelLining> {
        let mut other = None;
        for path in &self.files.debug {
            let Ok(file) = RegularFile::open(path) else {
                continue;
            };
            let found = Elf::read(&file.file)
                .filter(|elf| elf.build_id.as_ref() == Some(id) && elf.debug.has_dwarf())
                .and_then(|elf| DebugFile::of(&file.file, &elf));
            match found {
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
