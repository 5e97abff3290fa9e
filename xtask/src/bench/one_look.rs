//! Naming addresses beside one look at each symbol of the object's table.
//!
//! In: an object and addresses of it. Out: how long naming them took as flame-bpf itself tells it, and how long another
//! process took to read the table once and to look at each entry. Without what a process takes to start.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use object::{Object as _, ObjectKind};

use super::figure::{Figure, Table, Unit};
use super::{Bench, patience, program};

/// Whether the object itself has the table that its names are taken from.
pub(super) fn has_symbol_table(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    let object = object::File::parse(bytes.as_slice());
    object.is_ok_and(|object| {
        object.is_64()
            && object.is_little_endian()
            && object.kind() != ObjectKind::Relocatable
            && object.symbol_table().is_some()
    })
}

/// Adds the figures for the addresses in a file, of which there are so many.
pub(super) fn compare(
    bench: &Bench,
    table: &mut Table,
    object: &Path,
    input: &Path,
    what: &str,
) -> Result<()> {
    let look = bench.programs.folder().join(program::TABLE);
    for (how, flags) in [
        ("names", &[][..]),
        ("linkers' names", &["--no-demangle"][..]),
    ] {
        let (mut ours, mut one_look) = (Figure::default(), Figure::default());
        for _ in 0..bench.runs {
            patience::check()?;
            ours.add(named(bench, object, input, flags)?);
            one_look.add(looked(&look, object)?);
        }
        let figures = [("", ours), ("one look at each symbol", one_look)];
        let what = format!("{what}, {how}: without the start");
        table.compare(&what, Unit::Microseconds, figures);
    }
    Ok(())
}

/// How many microseconds flame-bpf says that naming took.
fn named(bench: &Bench, object: &Path, input: &Path, flags: &[&str]) -> Result<f64> {
    let addresses = File::open(input).context("cannot read addresses")?;
    let done = Command::new(&bench.flame_bpf)
        .args(["show-names", "--verbose"])
        .args(flags)
        .arg(object)
        .stdin(addresses)
        .stdout(Stdio::null())
        .output()
        .context("cannot start flame-bpf")?;
    let text = String::from_utf8_lossy(&done.stderr);
    microseconds(&text).with_context(|| format!("flame-bpf did not say how long, but: {text}"))
}

/// The time in such as `flame-bpf: 72 of 100 addresses were named in 1.234 ms`.
fn microseconds(text: &str) -> Option<f64> {
    let (_, behind) = text.split_once("named in ")?;
    let milliseconds: f64 = behind.split_once(" ms")?.0.parse().ok()?;
    Some(milliseconds * 1e3)
}

/// How many microseconds it takes to look at each symbol.
fn looked(program: &Path, object: &Path) -> Result<f64> {
    let done = Command::new(program).arg(object).output();
    let done = done.with_context(|| format!("cannot start {}", program.display()))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let mut words = text.split_whitespace();
    let (took, symbols) = (words.next(), words.next());
    let ns: f64 = took
        .and_then(|took| took.parse().ok())
        .with_context(|| format!("the program said {text:?} instead of a time"))?;
    ensure!(
        symbols.is_some_and(|symbols| symbols != "0"),
        "no symbols: {text}"
    );
    Ok(ns / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flame_bpf_says_is_read() {
        let said = "flame-bpf: 72 of 100 addresses were named in 1.234 ms\n";
        assert_eq!(microseconds(said), Some(1234.0));
        assert_eq!(microseconds("flame-bpf: cannot read x\n"), None);
    }

    #[test]
    fn a_program_that_was_not_stripped_has_a_table() {
        let itself = std::env::current_exe().expect("a test has a path");
        assert!(has_symbol_table(&itself));
        assert!(!has_symbol_table(Path::new("/dev/null")));
    }
}
