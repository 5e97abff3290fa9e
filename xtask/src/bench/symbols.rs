//! What it takes to name the code of large objects.
//!
//! In: objects that are installed here, and how many of their addresses to name. Out: CPU time and memory for names alone,
//! with lines, and with inlined functions, beside other programs that do the same.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use object::{Object as _, ObjectSection as _, SectionKind};

use super::figure::{Figure, Table, Unit};
use super::recording::Step;
use super::spent::spend;
use super::{Bench, large, one_look, patience};

/// Runs what follows the first operand with that as its input, and its output thrown away.
const FED: &str = "input=$1; shift; exec \"$@\" < \"$input\" > /dev/null";

/// How many addresses are named.
const COUNTS: [usize; 3] = [1, 100, 10_000];

/// More than this is not asked of a peer that reads all DWARF for each address.
const MOST_OF_PEERS: usize = 100;

/// Where Debian puts the browser.
const CHROMIUM: &str = "/usr/lib/chromium/chromium";

/// What is wanted of an address.
#[derive(Clone, Copy)]
struct Mode {
    name: &'static str,
    ours: &'static [&'static str],
    addr2line: &'static [&'static str],
    llvm: &'static [&'static str],
}

const MODES: [Mode; 3] = [
    Mode {
        name: "names",
        ours: &[],
        addr2line: &["-f", "-C"],
        llvm: &["--no-inlines"],
    },
    Mode {
        name: "lines",
        ours: &["--lines"],
        addr2line: &["-f", "-C"],
        llvm: &["--no-inlines"],
    },
    Mode {
        name: "inlines",
        ours: &["--lines", "--inline"],
        addr2line: &["-f", "-C", "-i"],
        llvm: &["--inlines"],
    },
];

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let mut table = Table::new("Naming addresses of one object");
    let counts: &[usize] = if bench.quick { &COUNTS[..2] } else { &COUNTS };
    for path in objects(bench) {
        let Ok(all) = addresses(&path, COUNTS[2]) else {
            continue;
        };
        for &count in counts {
            let input = folder.path().join("addresses");
            fs::write(&input, text(&all, count)).context("cannot write addresses")?;
            for mode in MODES {
                patience::check()?;
                compare(bench, &mut table, &path, (&input, count), mode)?;
            }
            if one_look::has_symbol_table(&path) {
                let what = short(&path, count);
                one_look::compare(bench, &mut table, &path, &input, &what)?;
            }
        }
    }
    table.note(
        "CPU time in user and kernel mode, from the start of a process that names addresses spread evenly over an object's \
         code; memory resident in it at its largest. Files are in the page cache.",
    );
    table.note(
        "Without the start: what flame-bpf says that naming took, of objects with a symbol table of their own; beside it, what \
         another process takes to read that table and to ask of each symbol whether it is a function that covers an address.",
    );
    Ok(table)
}

fn compare(
    bench: &Bench,
    table: &mut Table,
    object: &Path,
    (input, count): (&Path, usize),
    mode: Mode,
) -> Result<()> {
    let mut commands = vec![("flame-bpf", ours(bench, object, mode))];
    if count <= MOST_OF_PEERS {
        commands.extend(peers(object, mode));
    }
    let mut times: Vec<Figure> = vec![Figure::default(); commands.len()];
    let mut peaks = times.clone();
    for _ in 0..bench.runs {
        for (at, (_, command)) in commands.iter().enumerate() {
            let spent = spend(&fed(input, command), input.parent().unwrap_or(object))?;
            times[at].add(spent.cpu.as_secs_f64() * 1000.0);
            peaks[at].add(spent.peak_bytes as f64 / f64::from(1 << 20));
        }
    }
    let what = format!("{}, {}", short(object, count), mode.name);
    let figures = |figures: Vec<Figure>| {
        let names = commands.iter().map(|(name, _)| *name);
        names.zip(figures).collect::<Vec<_>>()
    };
    table.compare(&format!("{what}: CPU"), Unit::Milliseconds, figures(times));
    table.compare(&format!("{what}: peak"), Unit::Mebibytes, figures(peaks));
    Ok(())
}

/// Such as `libc.so.6, 100 addresses`.
fn short(object: &Path, count: usize) -> String {
    let name = object.file_name().unwrap_or_default().to_string_lossy();
    let short: String = name.chars().take(24).collect();
    let plural = if count == 1 { "address" } else { "addresses" };
    format!("{short}, {count} {plural}")
}

fn ours(bench: &Bench, object: &Path, mode: Mode) -> Vec<OsString> {
    let mut command = vec![bench.flame_bpf.clone().into(), "show-names".into()];
    command.push(object.into());
    command.extend(mode.ours.iter().map(OsString::from));
    command
}

/// The other programs that are installed.
fn peers(object: &Path, mode: Mode) -> Vec<(&'static str, Vec<OsString>)> {
    let option = |prefix: &str| {
        let mut option = OsString::from(prefix);
        option.push(object);
        option
    };
    let addr2line = ("addr2line", option("--exe="), mode.addr2line);
    let llvm = ("llvm-symbolizer", option("--obj="), mode.llvm);
    [addr2line, llvm]
        .into_iter()
        .filter(|(program, ..)| runs(program))
        .map(|(program, object, flags)| {
            let flags = flags.iter().map(OsString::from);
            let start = [OsString::from(program), object].into_iter();
            (program, start.chain(flags).collect())
        })
        .collect()
}

fn runs(program: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

fn fed(input: &Path, command: &[OsString]) -> Step {
    let mut arguments: Vec<OsString> = ["-c", FED, "sh"].map(OsString::from).into();
    arguments.push(input.into());
    arguments.extend(command.iter().cloned());
    Step {
        program: "sh".into(),
        arguments,
    }
}

/// Large objects of several kinds, as far as they are here: a C library, a runtime with a symbol table, a
/// compiler without, LLVM, a browser, a Rust program with all its debug information, which is this one, and a
/// program with a gigabyte of it.
fn objects(bench: &Bench) -> Vec<PathBuf> {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(PathBuf::from(text.trim()))
    };
    let libc = said("gcc", &["-print-file-name=libc.so.6"]);
    let cc1plus = said("gcc", &["-print-prog-name=cc1plus"]);
    let node = said("sh", &["-c", "command -v node"]);
    let llvm = said("rustc", &["--print", "sysroot"]).and_then(|sysroot| {
        let libraries = fs::read_dir(sysroot.join("lib")).ok()?.flatten();
        let is_llvm = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libLLVM") && path.metadata().is_ok_and(|file| file.len() > 1 << 20)
        };
        libraries.map(|entry| entry.path()).find(is_llvm)
    });
    let chromium = Some(PathBuf::from(CHROMIUM));
    let itself = std::env::current_exe().ok();
    let large = Some(large::path(bench.programs.folder())).filter(|_| !bench.quick);
    [libc, node, cc1plus, llvm, chromium, itself, large]
        .into_iter()
        .flatten()
        .filter(|path| path.is_file())
        .collect()
}

/// So many addresses of an object's code, spread evenly.
fn addresses(path: &Path, count: usize) -> Result<Vec<u64>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let object = object::File::parse(bytes.as_slice())?;
    let code: Vec<(u64, u64)> = object
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .map(|section| (section.address(), section.size()))
        .collect();
    let all: u64 = code.iter().map(|(_, size)| size).sum();
    ensure!(all > 0, "{} has no code", path.display());
    let place = |number: usize| {
        let mut into = (all - 1) * number as u64 / count.max(2).saturating_sub(1) as u64;
        for (start, size) in &code {
            if into < *size {
                return start + into;
            }
            into -= size;
        }
        code[0].0
    };
    Ok((0..count).map(place).collect())
}

/// So many of them as lines, from everywhere.
fn text(all: &[u64], count: usize) -> String {
    let step = (all.len() / count).max(1);
    let mut text = String::new();
    for address in all.iter().skip(step / 2).step_by(step).take(count) {
        let _ = writeln!(text, "{address:#x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_spread_over_the_code() {
        let itself = std::env::current_exe().expect("a test has a path");
        let all = addresses(&itself, 1000).expect("a test has code");
        assert_eq!(all.len(), 1000);
        assert!(all.iter().any(|address| *address != all[0]));
        assert_eq!(text(&all, 1).lines().count(), 1);
        assert_eq!(text(&all, 100).lines().count(), 100);
        assert_eq!(text(&all, 1000).lines().count(), 1000);
    }
}
