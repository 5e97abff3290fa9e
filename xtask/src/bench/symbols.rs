//! Cost of naming the code of large objects.
//!
//! In: objects that are installed here, and how many of their addresses to name. Out: CPU time and memory for names alone,
//! with lines, and with inlined functions, beside blazesym and other programs that do the same. Never compares the names.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use object::elf::{FileHeader64, SHF_EXECINSTR};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::{Endianness, ReadCache};

use super::command::run;
use super::figure::Table;
use super::{Bench, large};
use crate::workspace::in_path;

/// How many addresses are named.
const COUNTS: [usize; 3] = [1, 100, 10_000];

/// More than this is not asked of a program that reads all DWARF for each address.
const MAX_OF_SLOW: usize = 100;

/// Data about an address, and the flags of flame-bpf, blazesym, addr2line and llvm-symbolizer.
const MODES: [(&str, [&str; 4]); 3] = [
    ("names", ["", "names", "-fC", "--no-inlines"]),
    ("lines", ["--lines", "lines", "-fC", "--no-inlines"]),
    (
        "inlines",
        ["--lines --inline", "inlines", "-fCi", "--inlines"],
    ),
];

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let mut table = Table::new("Naming addresses of one object");
    for object in objects(bench) {
        let Ok(all) = addresses(&object, COUNTS[2]) else {
            continue;
        };
        for count in COUNTS {
            let input = folder.path().join("addresses");
            fs::write(&input, text(&all, count)).context("cannot write addresses")?;
            for (mode, asked) in MODES {
                let commands = commands(bench, &object, asked, count);
                let what = format!("{}, {count} × {mode}", short(&object));
                bench.run_each(folder.path(), &mut table, &what, &commands)?;
            }
        }
    }
    kernel(bench, &mut table, folder.path())?;
    let least = run("true", folder.path())?.peak_mib;
    table.note(format!(
        "CPU time in user and kernel mode, from the start of a process that names addresses spread evenly over an object's \
         code; memory resident in it at its largest. A peak below {least:.1} MiB, what the bench itself held, shows as that. \
         Files are in the page cache. blazesym's names come from symbol tables alone; its lines and inlined functions bring names from DWARF.",
    ));
    Ok(table)
}

/// The kernel's names by `/proc/kallsyms`: flame-bpf asks the kernel itself, and has no such program to compare with.
fn kernel(bench: &Bench, table: &mut Table, folder: &Path) -> Result<()> {
    let list = File::open("/proc/kallsyms").context("cannot read the kernel's symbols")?;
    let lines = BufReader::new(list).lines().map_while(Result::ok);
    let code = lines.filter_map(|line| {
        let (address, rest) = line.split_once(' ')?;
        rest.starts_with(['t', 'T']).then(|| address.to_owned())
    });
    let first: Vec<String> = code.take(100).collect();
    fs::write(folder.join("addresses"), first.join("\n")).context("cannot write addresses")?;
    let blazesym = format!("exec '{}' kernel - < addresses", bench.blazesym.display());
    let what = "the kernel, 100 × names";
    bench.run_each(folder, table, what, &[("blazesym", blazesym)])
}

/// flame-bpf, blazesym, and the other programs that are installed.
fn commands(
    bench: &Bench,
    object: &Path,
    [ours, blazesym, addr2line, llvm]: [&str; 4],
    count: usize,
) -> Vec<(&'static str, String)> {
    let path = object.display();
    let (flame_bpf, itself) = (bench.flame_bpf.display(), bench.blazesym.display());
    let mut commands = vec![
        (
            "flame-bpf",
            format!("'{flame_bpf}' inspect names '{path}' {ours}"),
        ),
        ("blazesym", format!("'{itself}' {blazesym} '{path}'")),
    ];
    if count <= MAX_OF_SLOW {
        let addr2line = format!("addr2line --exe='{path}' {addr2line}");
        let llvm = format!("llvm-symbolizer --obj='{path}' {llvm}");
        commands.extend(bench.peer("addr2line", &addr2line));
        commands.extend(bench.peer("llvm-symbolizer", &llvm));
    }
    for (_, line) in &mut commands {
        *line = format!("exec {line} < addresses");
    }
    commands
}

/// The beginning of an object's name.
fn short(object: &Path) -> String {
    let name = object.file_name().unwrap_or_default().to_string_lossy();
    name.chars().take(24).collect()
}

/// Large objects of several kinds, as far as they are here: a C library, a runtime with a symbol table, LLVM and rustc, a
/// Rust program with all its debug information, which is this one, and a program with a gigabyte of it.
fn objects(bench: &Bench) -> Vec<PathBuf> {
    let asked = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(PathBuf::from(text.trim()))
    };
    let libraries = asked("rustc", &["--print", "sysroot"]).map(|sysroot| sysroot.join("lib"));
    let library = |part: &str| {
        let entries = fs::read_dir(libraries.as_ref()?).ok()?.flatten();
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(part) && path.metadata().is_ok_and(|file| file.len() > 1 << 20)
        };
        entries.map(|entry| entry.path()).find(is_it)
    };
    let large = Some(large::path(bench.programs.folder()));
    [
        asked("gcc", &["-print-file-name=libc.so.6"]),
        in_path("node"),
        library("libLLVM"),
        library("librustc_driver"),
        std::env::current_exe().ok(),
        large,
    ]
    .into_iter()
    .flatten()
    .filter(|path| path.is_file())
    .collect()
}

/// So many addresses of an object's code, spread evenly.
pub(super) fn addresses(path: &Path, count: usize) -> Result<Vec<u64>> {
    // Section headers alone: what this process ever held counts as the peak of what it starts.
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let cache = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&cache)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, &cache)?;
    let code: Vec<(u64, u64)> = sections
        .iter()
        .filter(|section| section.sh_flags(endian) & u64::from(SHF_EXECINSTR) != 0)
        .map(|section| (section.sh_addr(endian), section.sh_size(endian)))
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
pub(super) fn text(all: &[u64], count: usize) -> String {
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
