//! perl 5: how it is recognized, where its offsets come from, which functions are hidden.
//!
//! In: an object's file. Out: a descriptor. perl exports its version (`PL_version`, `PL_subversion`), its loops, and if it has
//! ithreads the key under which each thread keeps its interpreter (`PL_thr_key`), otherwise what an interpreter consists of. Where
//! it exports nothing, [`signatures`] says where these are. Offsets are those of 5.36 to 5.42, as `offsetof` has them; the kernel
//! half believes them of an interpreter that has one of these loops where they say.

mod signatures;

use super::{Descriptor, Detected, search};
use crate::object::{Image, Symbol};
use profiler_common::runtime::{DESCRIPTOR_WORDS, RuntimeKind, first_word, perl::at, thread::Libc};
use signatures::Interpreter;

/// The native functions that are the loop, or stand directly around it.
pub(super) const HIDDEN_FRAMES: &[&str] = &[
    "Perl_runops_standard",
    "Perl_runops_debug",
    "perl_run",
    "S_run_body",
    "Perl_pp_entertry",
    "S_docatch",
    "Perl_call_sv",
    "Perl_call_method",
    "S_call_body",
    "Perl_call_list",
    "S_sortcv",
    "S_amagic_ncmp",
    "Perl_amagic_call",
    "Perl_magic_methcall",
];

/// The minor versions whose layout is known, and where in an interpreter its loop stands (`Irunops`): all that differs.
const VERSIONS: &[(u8, u64)] = &[(36, 0x8f0), (38, 0x818), (40, 0x818), (42, 0x818)];

/// A text that every program has that glibc is linked into: the variable with its tunables.
const GLIBC: &[u8] = b"GLIBC_TUNABLES\0";

/// Recognizes perl by what it exports; one that exports nothing by a text, and by its code.
pub(super) fn detect(image: &Image<'_>) -> Option<Detected> {
    match image.symbol("Perl_runops_standard") {
        Some(standard) => {
            let version = (byte(image, "PL_version")?, byte(image, "PL_subversion")?);
            Some(detected(version, |words| {
                put_exported(image, standard, words)
            }))
        }
        None => {
            let version = signatures::version(image)?;
            Some(detected(version, |words| put_hidden(image, words)))
        }
    }
}

/// Result of detecting a version. `put` says where its loops and its interpreters are.
fn detected(
    (minor, patch): (u8, u8),
    put: impl Fn(&mut Descriptor) -> Result<(), &'static str>,
) -> Detected {
    let words = || -> Result<Box<Descriptor>, &'static str> {
        let row = VERSIONS.iter().find(|row| row.0 == minor);
        let (_, runops) = row.ok_or("its version is not known")?;
        let mut words: Descriptor = [0; DESCRIPTOR_WORDS];
        let number = 5 << 16 | u32::from(minor) << 8 | u32::from(patch);
        words[0] = first_word(RuntimeKind::Perl, number);
        put(&mut words)?;
        if words[at::KEY] != 0 {
            words[at::RUNOPS] = *runops;
        }
        Ok(Box::new(words))
    };
    Detected {
        kind: RuntimeKind::Perl,
        name: format!("Perl 5.{minor}"),
        words: words(),
    }
}

/// Says where the loops and the interpreters of a perl are that exports them.
fn put_exported(
    image: &Image<'_>,
    standard: Symbol,
    words: &mut Descriptor,
) -> Result<(), &'static str> {
    if standard.size == 0 {
        return Err("it does not say how long its loop is");
    }
    match image.symbol("PL_thr_key") {
        Some(key) => words[at::KEY] = key.address,
        None => put_globals(image, words)
            .ok_or("it has no ithreads and does not say where its interpreter is")?,
    }
    words[at::LIBC] = image.libc() as u64;
    // Without the second, no address lies in its range.
    let debugging = image.symbol("Perl_runops_debug").unwrap_or(standard);
    for (place, function) in [(at::LOOP, standard), (at::LOOP + 2, debugging)] {
        words[place] = function.address;
        words[place + 1] = function.address.saturating_add(function.size);
    }
    Ok(())
}

/// Says where the loop and the interpreters of a perl are that exports nothing.
fn put_hidden(image: &Image<'_>, words: &mut Descriptor) -> Result<(), &'static str> {
    let found =
        signatures::find(image).ok_or("where its loop and its interpreter are is not known")?;
    for place in [at::LOOP, at::LOOP + 2] {
        [words[place], words[place + 1]] = [found.runops.start, found.runops.end];
    }
    match found.interpreter {
        Interpreter::Key(key) => words[at::KEY] = key,
        Interpreter::Variables {
            runops,
            op,
            statement,
            stack,
        } => {
            words[at::RUNOPS] = runops;
            words[at::OP] = op;
            words[at::STATEMENT] = statement;
            words[at::STACK] = stack;
        }
    }
    let libc =
        if image.has_libraries() || search::find(image, GLIBC, GLIBC.len(), |_| true).is_some() {
            image.libc()
        } else {
            Libc::Musl
        };
    words[at::LIBC] = libc as u64;
    Ok(())
}

/// Says where the variables of a perl without ithreads are.
fn put_globals(image: &Image<'_>, words: &mut Descriptor) -> Option<()> {
    for (place, name) in [
        (at::RUNOPS, "PL_runops"),
        (at::OP, "PL_op"),
        (at::STATEMENT, "PL_curcop"),
        (at::STACK, "PL_curstackinfo"),
    ] {
        words[place] = image.symbol(name)?.address;
    }
    Some(())
}

/// A variable of one byte that the object exports.
fn byte(image: &Image<'_>, name: &str) -> Option<u8> {
    let mut byte = [0];
    image.copy(image.symbol(name)?.address, &mut byte)?;
    Some(byte[0])
}

/// Subs without a name.
pub(super) fn is_nameless(name: &str) -> bool {
    name.ends_with("::__ANON__")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn an_installed_perl_is_recognized() {
        let Ok(file) = File::open("/usr/bin/perl") else {
            return;
        };
        let detected = detect(&Image::read(&file).unwrap()).unwrap();
        assert_eq!(detected.kind, RuntimeKind::Perl);
        assert!(detected.name.starts_with("Perl 5."), "{detected:?}");
        if VERSIONS
            .iter()
            .any(|row| detected.name == format!("Perl 5.{}", row.0))
        {
            let words = detected.words.unwrap();
            assert!(words[at::KEY] != 0);
            assert!(words[at::LOOP + 1] > words[at::LOOP]);
            assert!(words[at::LOOP + 3] > words[at::LOOP + 2]);
        }
    }

    #[test]
    fn subs_without_a_name_are_nameless() {
        assert!(is_nameless("main::__ANON__"));
        assert!(!is_nameless("main::work"));
    }
}
