//! A program with a gigabyte of debug information.
//!
//! In: a folder. Out: the program in it, made anew only where it is not there. One compilation unit of a thousand functions, each
//! with others compiled into it, is linked many times over: its functions are its own, so nothing is in the way.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use object::{Object as _, ObjectSection as _};

use crate::files;
use crate::workspace::run;

/// Name of the program.
const NAME: &str = "bench_large";

/// The size of its debug sections, in bytes.
const DEBUG_BYTES: u64 = 1 << 30;

/// Functions of a unit.
const FUNCTIONS: usize = 1000;

/// Where [`build`] leaves the program.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Makes the program, unless it is there.
pub(super) fn build(folder: &Path) -> Result<()> {
    let program = path(folder);
    if fs::metadata(&program).is_ok_and(|file| file.len() >= DEBUG_BYTES) {
        return Ok(());
    }
    let made = tempfile::tempdir_in(folder).context("cannot make a folder")?;
    let file = |name: &str| made.path().join(name);
    files::write(&file("unit.c"), unit())?;
    files::write(&file("main.c"), "int main(void) { return 0; }\n")?;
    for name in ["unit", "main"] {
        run(Command::new("gcc")
            .args(["-O2", "-g", "-c", "-o"])
            .arg(file(name).with_extension("o"))
            .arg(file(name).with_extension("c")))?;
    }
    let debug_bytes = debug_bytes(&file("unit.o"))?;
    // The linker takes its command line from a file.
    let times = usize::try_from(DEBUG_BYTES / debug_bytes + 1)?;
    let unit = format!("{}\n", file("unit.o").display());
    files::write(&file("units"), unit.repeat(times))?;
    let mut list = std::ffi::OsString::from("@");
    list.push(file("units"));
    run(Command::new("gcc")
        .arg("-o")
        .arg(file(NAME))
        .arg(file("main.o"))
        .arg(list))?;
    fs::rename(file(NAME), &program).with_context(|| format!("cannot make {}", program.display()))
}

/// How much an object has in debug sections that linking keeps as they are: strings are merged.
fn debug_bytes(path: &Path) -> Result<u64> {
    let bytes = files::read(path)?;
    let object = object::File::parse(bytes.as_slice())?;
    let of_debug = object.sections().filter(|section| {
        let name = section.name().unwrap_or_default();
        name.starts_with(".debug_") && !name.starts_with(".debug_str")
    });
    match of_debug.map(|section| section.size()).sum() {
        0 => bail!("gcc -g made no debug information"),
        bytes => Ok(bytes),
    }
}

/// The source of a unit.
pub(super) fn unit() -> String {
    let mut text = "struct state { struct state *next; long total; int kind; };\n".to_owned();
    for number in 0..FUNCTIONS {
        let _ = writeln!(
            text,
            "static inline __attribute__((always_inline)) long first_{number}(struct state *s, long x)\n\
             {{ long y = x * {factor}; s->total += y; return y ^ s->kind; }}\n\
             static inline __attribute__((always_inline)) long second_{number}(struct state *s, long x) {{\n\
             \x20 long y = first_{number}(s, x + 1);\n\
             \x20 if (y > s->total) {{ long z = first_{number}(s, y - x); s->kind = (int)z; return z; }}\n\
             \x20 return y;\n}}\n\
             static __attribute__((used, noinline)) long work_{number}(struct state *s, long x) {{\n\
             \x20 long a = second_{number}(s, x);\n\
             \x20 for (struct state *t = s; t; t = t->next) {{ long b = second_{number}(t, a); a += b; }}\n\
             \x20 return a;\n}}",
            factor = number + 3,
        );
    }
    text
}
