//! Where a perl that exports nothing has its loop and its variables: linked statically, or into a program without `-Wl,-E`.
//!
//! In: an object's file. Out: the version, by what `perl -v` prints; the loop, and how an interpreter is found, read out of
//! code. The loop is the one small function that calls `op_ppaddr` over and over and stores what that returns as `PL_op`. The
//! variables are those that code uses as `pp_nextstate`, `dTHX` and `cxstack` do, by most of their uses. Where there is more
//! than one candidate, none is believed; the kernel half then believes only an interpreter that has this loop.

use super::super::arch::perl::{Op, Uses};
use super::super::function_bounds::extent;
use super::super::{commonest, only, search};
use crate::object::Image;
use std::ops::Range;

/// Beginning of the output of `perl -v`, as `perl.c` has it.
const TEXT: &[u8] = b"This is perl 5, version ";
/// Bytes of that up to behind the numbers.
const TEXT_BYTES: usize = TEXT.len() + 20;
/// Functions of the C library and of `libm` that perl has an operator for each (`pp_sys.c`, `pp.c`). No library has all.
const IMPORTED: [&str; 3] = ["setprotoent", "setservent", "atan2"];

/// The minor and the patch version of a perl that exports nothing; none if it is no perl.
pub(super) fn version(image: &Image<'_>) -> Option<(u8, u8)> {
    // Programs without a C library are searched; others only if they import what perl does, since that is a small part.
    if image.has_libraries() && !image.mentions(&IMPORTED) {
        return None;
    }
    let text = search::find(image, TEXT, TEXT_BYTES, |text| numbers(text).is_some())?;
    numbers(&text)
}

fn numbers(text: &[u8]) -> Option<(u8, u8)> {
    let rest = std::str::from_utf8(text.strip_prefix(TEXT)?).ok()?;
    let (minor, rest) = rest.split_once(", subversion ")?;
    let (patch, _) = rest.split_once(' ')?;
    Some((minor.parse().ok()?, patch.parse().ok()?))
}

/// The loop and the interpreter of a perl that exports nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    /// `Perl_runops_standard`.
    pub(super) runops: Range<u64>,
    pub(super) interpreter: Interpreter,
}

/// How an interpreter is found: addresses of variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Interpreter {
    /// With ithreads: `PL_thr_key`.
    Key(u64),
    /// Without.
    Variables {
        /// `PL_runops`.
        runops: u64,
        /// `PL_op`.
        op: u64,
        /// `PL_curcop`.
        statement: u64,
        /// `PL_curstackinfo`.
        stack: u64,
    },
}

/// Finds the loop and the variables.
pub(super) fn find(image: &Image<'_>) -> Option<Hidden> {
    let uses = Uses::read(image)?;
    let (start, op) = only(uses.loops.iter().copied())?;
    let runops = extent(image, start)?;
    let interpreter = match op {
        Op::Field => Interpreter::Key(commonest(&uses.keys)?.0),
        Op::Variable(op) => {
            // `pp_nextstate` makes of the operation the statement that runs, and errors tell its line.
            let mut statements = uses.lines.clone();
            statements.retain(|place, _| *place != op && uses.copies.contains(&(op, *place)));
            let pointers = search::pointers_to(image, start);
            let called = pointers.into_iter().filter(|it| uses.called.contains(it));
            Interpreter::Variables {
                runops: only(called)?,
                op,
                statement: commonest(&statements)?,
                stack: commonest(&uses.stacks)?,
            }
        }
    };
    Some(Hidden {
        runops,
        interpreter,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_an_object_exports_is_found_without_that() {
        let Ok(file) = File::open("/usr/bin/perl") else {
            return;
        };
        let image = Image::read(&file).unwrap();
        let (Some(runops), Some(key)) = (
            image.symbol("Perl_runops_standard"),
            image.symbol("PL_thr_key"),
        ) else {
            return;
        };
        let found = find(&image).unwrap();
        assert_eq!(found.runops.start, runops.address);
        assert_eq!(found.interpreter, Interpreter::Key(key.address));
        let (minor, _) = version(&image).unwrap();
        let mut exported = [0];
        let place = image.symbol("PL_version").unwrap().address;
        image.copy(place, &mut exported).unwrap();
        assert_eq!([minor], exported);
    }

    #[test]
    fn other_objects_are_not_searched() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let image = Image::read(&file).unwrap();
        assert!(!image.mentions(&IMPORTED));
        assert!(image.mentions(&["malloc"]));
        assert_eq!(version(&image), None);
        assert_eq!(find(&image), None);
    }

    #[test]
    fn versions_are_read_out_of_the_text() {
        let of = |text: &str| numbers(text.as_bytes());
        let text = "This is perl 5, version 38, subversion 2 (%-p";
        assert_eq!(of(text), Some((38, 2)));
        assert_eq!(of("This is perl 5, version 380, subversion 2 ("), None);
        assert_eq!(of("This is perl 5, version 38, subversion 2"), None);
        assert_eq!(of("This is perl 5, version "), None);
    }
}
