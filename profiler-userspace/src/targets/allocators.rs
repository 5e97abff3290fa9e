//! Finds the target's allocation functions.
//!
//! In: the target. Out: positions in its files, with what the kernel half must know of each function. Every
//! file with a `malloc` is searched: the C library, a replacement, or the program itself.

use super::UprobeSite;
use crate::object::Elf;
use crate::plan::{Plan, Target};
use crate::targets::uprobe_targets::{self, UprobeTarget};
use anyhow::{Result, anyhow, ensure};
use profiler_common::abi::{Allocator, SizeAt};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long files are searched. A target may have mapped thousands, and each may claim to be full of symbols;
/// honest ones take a millisecond.
const PATIENCE: Duration = Duration::from_secs(5);

/// The allocation functions of C libraries, and where each is passed the size.
const FUNCTIONS: &[(&[u8], SizeAt)] = &[
    (b"malloc", SizeAt::First),
    (b"calloc", SizeAt::FirstBySecond),
    (b"realloc", SizeAt::Second),
    (b"reallocarray", SizeAt::SecondByThird),
    (b"aligned_alloc", SizeAt::Second),
    (b"memalign", SizeAt::Second),
    (b"posix_memalign", SizeAt::Third),
    (b"valloc", SizeAt::First),
    (b"pvalloc", SizeAt::First),
];

/// The entry points of all such functions; and a warning, if not all files were searched.
pub(crate) fn sites(plan: &Plan) -> Result<(Vec<UprobeSite>, Option<String>)> {
    ensure!(
        plan.target != Target::All,
        "--alloc interrupts every allocation, which slows the whole machine down too much; name processes with -p, or run a command behind --"
    );
    let mut targets = uprobe_targets::of_target(plan, &|_| true)
        .map_err(|nobody| anyhow!("{nobody} any file; --alloc finds no function to probe there"))?;
    // Likely files first.
    targets.sort_by_key(|target| !is_likely(&target.shown));
    let began = Instant::now();
    let (mut sites, mut warning) = (Vec::new(), None);
    for (looked_into, target) in targets.iter().enumerate() {
        if began.elapsed() > PATIENCE {
            warning = Some(format!(
                "searched {looked_into} of the target's {} files for malloc, then gave up: it took over {} s",
                targets.len(),
                PATIENCE.as_secs(),
            ));
            break;
        }
        sites.extend(of_file(target)?);
    }
    ensure!(
        !sites.is_empty(),
        "no malloc was found in the target: it is a stripped static program, or asks the kernel for memory itself; --syscalls shows its mmap and brk, and -e page-faults the memory that it uses"
    );
    Ok((sites, warning))
}

/// Whether a file is named like a C library or a replacement of its allocator.
fn is_likely(name: &str) -> bool {
    ["libc.", "libc-", "ld-musl", "alloc", "tcmalloc"]
        .iter()
        .any(|part| name.contains(part))
}

/// The functions of one file; none unless it has a `malloc`.
fn of_file(target: &UprobeTarget) -> Result<Vec<UprobeSite>> {
    let file = &target.file.file;
    let Some(elf) = Elf::read(file) else {
        return Ok(Vec::new());
    };
    // By position, because some functions have several names; the first in the list is the plainest.
    let mut found: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
    let mut has_malloc = false;
    elf.each_function(file, |function| {
        let name = function.name.split(|&byte| byte == b'@').next();
        let place = FUNCTIONS.iter().position(|(known, _)| Some(*known) == name);
        let (Some(place), Some(address), false) = (place, function.address, function.chooses)
        else {
            return;
        };
        has_malloc |= place == 0;
        if let Some(offset) = elf.segments.offset(address) {
            let known = found.entry(offset.0).or_insert((place, function.size));
            known.0 = known.0.min(place);
        }
    });
    if !has_malloc {
        return Ok(Vec::new());
    }
    found
        .into_iter()
        .map(|(offset, (place, size))| {
            let (name, size_at) = FUNCTIONS[place];
            let number = u8::try_from(place).unwrap_or(u8::MAX);
            let length = u32::try_from(size).unwrap_or(u32::MAX);
            Ok(UprobeSite {
                name: format!("{}:{}", target.shown, String::from_utf8_lossy(name)),
                file: file.try_clone()?,
                offset,
                process: target.process,
                cookie: Allocator::new(size_at, number, length).0,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_processs_c_library_has_all_allocators() {
        let files = uprobe_targets::mapped(std::process::id(), &|_| true);
        let sites: Vec<UprobeSite> = files
            .iter()
            .flat_map(|target| of_file(target).unwrap())
            .collect();
        for name in ["malloc", "calloc", "realloc", "posix_memalign"] {
            let here = |site: &&UprobeSite| site.name.ends_with(&format!(":{name}"));
            let site = sites.iter().find(here).expect(name);
            assert!(Allocator(site.cookie).length() > 0, "{name}");
        }
    }
}
