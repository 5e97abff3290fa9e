//! Programs for which it matters how they are built: without frame pointers, from parts that are
//! compiled differently, by other compilers and linkers.
//!
//! In: sources under `workloads/` and flags. Out: a [`Program`], cached as all are.
//! Never: frame pointers that were not asked for.

use std::path::Path;
use std::process::Command;

use crate::feature::tool;
use crate::program::{Program, cached, read, run, source};

/// Compiler flags of every part, before its own flags. Sibling calls are jumps, which leave no
/// frame behind.
const COMMON: &str =
    "-std=gnu11 -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -pthread -DFRAMELESS";

/// How a C program is built.
#[derive(Clone, Debug, Hash)]
pub struct Recipe {
    name: String,
    compiler: String,
    parts: Vec<Part>,
    link: Vec<String>,
}

/// One source file and its flags.
#[derive(Clone, Debug, Hash)]
struct Part {
    source: String,
    flags: Vec<String>,
}

impl Recipe {
    /// Builds `workloads/c/<stem>.c` by gcc, optimized and without frame pointers.
    pub fn c(stem: &str) -> Self {
        Self {
            name: stem.to_owned(),
            compiler: "gcc".to_owned(),
            parts: Vec::new(),
            link: Vec::new(),
        }
        .part(stem)
    }

    /// Another source file; later [`Recipe::compiled`] is about it alone.
    #[must_use]
    pub fn part(mut self, stem: &str) -> Self {
        let (source, flags) = (format!("c/{stem}.c"), Vec::new());
        self.parts.push(Part { source, flags });
        self
    }

    /// The file name of what is built.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Another compiler.
    #[must_use]
    pub fn by(mut self, compiler: &str) -> Self {
        self.compiler = compiler.to_owned();
        self
    }

    /// Flags to compile the last part with, split at white space.
    #[must_use]
    pub fn compiled(mut self, flags: &str) -> Self {
        let last = self.parts.last_mut().expect("a recipe begins with a part");
        last.flags.extend(words(flags));
        self
    }

    /// Flags to link with, split at white space.
    #[must_use]
    pub fn linked(mut self, flags: &str) -> Self {
        self.link.extend(words(flags));
        self
    }

    /// Links with a shared library of ours, which is found by its path.
    #[must_use]
    pub fn with_library(mut self, library: &Program) -> Self {
        self.link.push(library.path().display().to_string());
        self
    }

    /// Makes a shared library instead of a program.
    #[must_use]
    pub fn shared(self) -> Self {
        self.compiled("-fPIC").linked("-shared")
    }

    /// Builds it, unless it is there.
    ///
    /// # Panics
    ///
    /// When the compiler does not take the sources.
    pub fn make(&self) -> Program {
        let sources: Vec<_> = self
            .parts
            .iter()
            .map(|part| read(&source(&part.source)))
            .collect();
        let header = read(&source("c/workload.h"));
        cached(&(sources, header, COMMON, self), &self.name, |out| {
            let folder = out.parent().expect("a program is in a folder");
            let mut link = Command::new(&self.compiler);
            link.arg("-pthread").arg("-o").arg(out);
            for (index, part) in self.parts.iter().enumerate() {
                let object = folder.join(format!("{index}.o"));
                self.compile(part, &object);
                link.arg(object);
            }
            run(link.args(&self.link));
        })
    }

    fn compile(&self, part: &Part, object: &Path) {
        run(Command::new(&self.compiler)
            .args(words(COMMON))
            .args(&part.flags)
            .arg("-c")
            .arg(source(&part.source))
            .arg("-o")
            .arg(object));
    }
}

fn words(flags: &str) -> impl Iterator<Item = String> {
    flags.split_whitespace().map(str::to_owned)
}

/// Asks for a gcc that can also make 32-bit programs.
///
/// # Errors
///
/// When it cannot.
pub fn compiles_32_bit() -> Result<(), String> {
    tool("gcc")?;
    // Beyond itself it needs the C library's headers and start files for such programs.
    let found = Command::new("gcc")
        .args(["-m32", "-print-file-name=crt1.o"])
        .output()
        .map_err(|error| format!("gcc could not be started: {error}"))?;
    let start = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let support = Command::new("gcc")
        .args(["-m32", "-print-libgcc-file-name"])
        .output()
        .map_err(|error| format!("gcc could not be started: {error}"))?;
    let support = String::from_utf8_lossy(&support.stdout).trim().to_owned();
    if Path::new(&start).is_file() && Path::new(&support).is_file() {
        Ok(())
    } else {
        Err("gcc-multilib is not installed".to_owned())
    }
}
