//! Finds the entry points of functions to watch.
//!
//! In: a function's name, and the target. Out: file offsets, with each file open so that it stays the same
//! file.

use super::UprobeSite;
use crate::object::{Elf, ElfAddress, FileNumber};
use crate::plan::Plan;
use crate::probe::Function;
use crate::symbolize::readable;
use crate::targets::uprobe_targets::{self, UprobeTarget};
use anyhow::{Result, anyhow, bail, ensure};
use std::collections::{BTreeSet, HashMap, hash_map};
use std::path::Path;

/// How many functions of one name in one file are accepted. A name that stands for more is ambiguous.
const MAX_OF_A_NAME: usize = 16;

/// More suggestions than this are noise.
const NEAR_MATCHES: usize = 3;

/// The Jaro-Winkler similarity, from 0 to 1, below which names are unrelated.
const NEAR: f64 = 0.85;

/// The entry points of a function in the files of the plan's target, for the event of this number.
pub(crate) fn sites(plan: &Plan, event: usize, function: &Function) -> Result<Vec<UprobeSite>> {
    let file = &function.file;
    let is_path = file.components().count() > 1 || file.is_absolute();
    let targets = if is_path {
        uprobe_targets::at(plan, file)?
    } else {
        let name = file.display();
        uprobe_targets::of_target(plan, &|path| is_called(path, file)).map_err(|nobody| {
            anyhow!("{nobody} a file that is called {name} or {name}.so; give the path of one")
        })?
    };
    let mut found: HashMap<FileNumber, BTreeSet<u64>> = HashMap::new();
    let mut sites = Vec::new();
    for target in targets {
        let positions = match found.entry(target.file.number) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(new) => new.insert(positions(&target, function)?),
        };
        for &offset in &*positions {
            sites.push(UprobeSite {
                name: function.to_string(),
                file: target.file.file.try_clone()?,
                offset,
                process: target.process,
                cookie: event as u64,
            });
        }
    }
    Ok(sites)
}

/// Whether a name means this file: `libc` means `libc.so.6`, `libc-2.31.so`, or another C library.
fn is_called(file: &Path, name: &Path) -> bool {
    let (file, name) = (file.to_string_lossy(), name.to_string_lossy());
    let musl = name == "libc" && file.starts_with("ld-musl-");
    let Some(rest) = file.strip_prefix(&*name) else {
        return musl;
    };
    let version = rest.strip_prefix('-').is_some_and(|rest| {
        rest.starts_with(|first: char| first.is_ascii_digit()) && rest.contains(".so")
    });
    rest.is_empty() || rest == ".so" || rest.starts_with(".so.") || version
}

/// The offsets in the file where functions of that name begin.
fn positions(target: &UprobeTarget, function: &Function) -> Result<BTreeSet<u64>> {
    let (file, shown) = (&target.file.file, &target.shown);
    let Some(elf) = Elf::read(file) else {
        bail!("{shown} is no ELF file, so it has no functions");
    };
    ensure!(
        elf.names_functions(),
        "{shown} has no symbols: it was stripped; use a build with symbols"
    );
    let exactly = |name: &[u8]| unversioned(name) == function.name.as_bytes();
    let mut found = look(file, &elf, exactly);
    if found.addresses.is_empty() && !found.only_called {
        found = look(file, &elf, |name| readable(name) == function.name);
    }
    ensure!(
        !found.chooses,
        "{function} is an indirect function: it chooses once which of several is called by that name; record one of these{}",
        near(file, &elf, &function.name),
    );
    ensure!(
        found.addresses.len() <= MAX_OF_A_NAME,
        "{} functions in {shown} are called {}; use the mangled name of one, as `nm` prints it",
        found.addresses.len(),
        function.name,
    );
    let positions: BTreeSet<u64> = found
        .addresses
        .iter()
        .filter_map(|&address| Some(elf.segments.offset(address)?.0))
        .collect();
    if !positions.is_empty() {
        return Ok(positions);
    }
    let why = if found.only_called {
        format!(
            "{shown} only calls {}; name the library that has it",
            function.name
        )
    } else {
        format!("{shown} has no function {}", function.name)
    };
    let stripped = match elf.symbols {
        Some(_) => "",
        None => " (it was stripped: only functions that others may call have names)",
    };
    bail!("{why}{stripped}{}", near(file, &elf, &function.name))
}

/// Functions of one name in a file.
#[derive(Default)]
struct FunctionMatches {
    addresses: BTreeSet<ElfAddress>,
    chooses: bool,
    only_called: bool,
}

fn look(file: &std::fs::File, elf: &Elf, is_meant: impl Fn(&[u8]) -> bool) -> FunctionMatches {
    let mut found = FunctionMatches::default();
    elf.each_function(file, |function| {
        if !is_meant(function.name) {
            return;
        }
        match function.address {
            Some(_) if function.chooses => found.chooses = true,
            Some(address) => {
                found.addresses.insert(address);
            }
            None => found.only_called = true,
        }
    });
    found
}

/// A name without its symbol version, as in `memcpy@@GLIBC_2.14`.
fn unversioned(name: &[u8]) -> &[u8] {
    name.split(|&byte| byte == b'@').next().unwrap_or(name)
}

/// Functions with similar names, as a phrase.
fn near(file: &std::fs::File, elf: &Elf, name: &str) -> String {
    let mut scored: Vec<(f64, String)> = Vec::new();
    elf.each_function(file, |function| {
        let known = readable(function.name);
        let score =
            strsim::jaro_winkler(name, &known).max(if known.contains(name) { NEAR } else { 0.0 });
        let least = scored.last().map_or(0.0, |(least, _)| *least);
        let full = scored.len() >= NEAR_MATCHES;
        if function.address.is_none()
            || function.chooses
            || score < NEAR
            || (full && score <= least)
            || scored.iter().any(|(_, other)| *other == known)
        {
            return;
        }
        scored.push((score, known));
        scored.sort_by(|left, right| right.0.total_cmp(&left.0));
        scored.truncate(NEAR_MATCHES);
    });
    if scored.is_empty() {
        return String::new();
    }
    let names: Vec<String> = scored.into_iter().map(|(_, known)| known).collect();
    format!("; similar: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_can_be_named_without_its_version() {
        for (file, name, expected) in [
            ("libc.so.6", "libc", true),
            ("libc.so.6", "libc.so.6", true),
            ("libc-2.31.so", "libc", true),
            ("libcrypto.so.3", "libc", false),
            ("libc-client.so.1", "libc", false),
            ("ld-musl-x86_64.so.1", "libc", true),
            ("bash", "bash", true),
            ("bash-static", "bash", false),
        ] {
            assert_eq!(
                is_called(Path::new(file), Path::new(name)),
                expected,
                "{file} {name}"
            );
        }
    }

    fn find(file: &str, name: &str) -> Result<BTreeSet<u64>> {
        let target = UprobeTarget {
            file: crate::object::RegularFile::open(Path::new(file))?,
            shown: file.to_owned(),
            process: None,
        };
        let function = Function {
            file: file.into(),
            name: name.to_owned(),
        };
        positions(&target, &function)
    }

    #[test]
    fn a_function_is_found_by_either_name() {
        let own = "/proc/self/exe";
        let shown = "flame_bpf::targets::uprobe_sites::is_called";
        assert!(!find(own, "main").unwrap().is_empty());
        assert_eq!(find(own, shown).unwrap().len(), 1);
    }

    #[test]
    fn a_missing_function_is_answered_with_similar_ones() {
        let own = "/proc/self/exe";
        let refusal = |name| find(own, name).unwrap_err().to_string();
        let said = refusal("flame_bpf::targets::uprobe_sites::is_caled");
        assert!(said.contains("uprobe_sites::is_called"), "{said}");
        let said = refusal("malloc");
        assert!(said.contains("only calls malloc"), "{said}");
        let said = find("/etc/passwd", "main").unwrap_err().to_string();
        assert!(said.contains("no ELF file"), "{said}");
    }

    #[test]
    fn an_indirect_function_names_its_implementations() {
        let mapped = uprobe_targets::mapped(std::process::id(), &|path| {
            is_called(path, Path::new("libc"))
        });
        let function = Function {
            file: "libc".into(),
            name: "memcpy".to_owned(),
        };
        let said = positions(&mapped[0], &function).unwrap_err().to_string();
        assert!(said.contains("chooses"), "{said}");
    }
}
