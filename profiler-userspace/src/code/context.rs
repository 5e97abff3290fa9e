//! Where the stack of a coroutine begins.
//!
//! In: a C library. Out: the function to which the stacks of `makecontext` return, glibc's `__start_context`
//! (`__start_context.S` of each machine). It is the outermost frame of such a stack, and it is never
//! called: what was started returns to its first byte. Nothing exports it; `makecontext` takes its address.
//!
//! In: assembly that no table describes. Out: where `make_fcontext` of Boost.Context lets stacks begin. PHP's fibers and
//! Folly's have a copy of that assembly, often without a name, so that it is known by its bytes.

use super::arch::context::{
    FCONTEXT_END_BYTES, START_CONTEXT_BYTES, TRAMPOLINE, addresses_taken, fcontext_ends,
    is_start_context,
};
use crate::object::image::read_at;
use crate::object::{Elf, Image};
use memchr::memmem::Finder;
use std::fs::File;
use std::ops::Range;

/// The most code of `makecontext` that is read, in bytes. It has 660 in glibc 2.36.
const MAX_BYTES: u64 = 4096;

/// Whether the byte at an address is the last one before such a return address.
pub(super) fn ends_stacks(image: &Image<'_>, address: u64) -> bool {
    let before = TRAMPOLINE.len() as u64 - 1;
    let begin = address.checked_sub(before);
    let code = begin.map(|begin| image.bytes(begin, FCONTEXT_END_BYTES));
    code.is_some_and(|code| fcontext_ends(&code).next() == Some(TRAMPOLINE.len()))
}

/// The address of `__start_context`; none in what is not glibc.
pub(super) fn start_context(image: &Image<'_>) -> Option<u64> {
    let body = makecontext(image)?;
    let bytes = usize::try_from((body.end - body.start).min(MAX_BYTES)).ok()?;
    let code = image.bytes(body.start, bytes);
    addresses_taken(&code, body.start).find(|&target| {
        let is_code = image.code_at(target).is_some();
        is_code && is_start_context(&image.bytes(target, START_CONTEXT_BYTES))
    })
}

/// The code of `makecontext`: as the dynamic linker finds it, or in a static program by all its symbols.
fn makecontext(image: &Image<'_>) -> Option<Range<u64>> {
    if image.exports_by_hash() {
        let exported = image.symbol("makecontext")?;
        return Some(exported.address..exported.address.saturating_add(exported.size));
    }
    named_makecontext(image.file)
}

fn named_makecontext(file: &File) -> Option<Range<u64>> {
    let mut elf = Elf::read(file)?;
    if elf.dynamic_symbols.is_some() {
        elf.symbols = None;
    }
    // Few files name it, and some have a hundred thousand names.
    let names = [&elf.symbols, &elf.dynamic_symbols].map(|it| it.as_ref().map(|it| &it.names));
    let mut names = names.into_iter().flatten();
    let finder = Finder::new("makecontext");
    names.find(|range| {
        let bytes = usize::try_from(range.end.saturating_sub(range.start));
        bytes.is_ok_and(|bytes| finder.find(&read_at(file, range.start, bytes)).is_some())
    })?;
    let mut found = None;
    elf.each_function(file, |function| {
        if matches!(function.name, b"makecontext" | b"__makecontext") {
            found = function
                .address
                .map(|at| at.0..at.0.saturating_add(function.size));
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_makecontext_returns_to_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
        let text = "#include <ucontext.h>\nstatic void f(void) {}\n\
            int main(void) { static ucontext_t c; getcontext(&c); makecontext(&c, f, 0); }\n";
        std::fs::write(&source, text).unwrap();
        let built = Command::new("gcc")
            .args(["-static", "-o"])
            .args([&program, &source])
            .status();
        assert!(built.unwrap().success());
        let file = File::open(&program).unwrap();
        let elf = Elf::read(&file).unwrap();
        let found = start_context(&Image::read(&file).unwrap());
        let mut truth = None;
        elf.each_function(&file, |function| {
            if function.name == b"__start_context" {
                truth = function.address.map(|at| at.0);
            }
        });
        assert!(truth.is_some());
        assert_eq!(found, truth);
    }

    #[test]
    fn a_file_without_makecontext_has_none() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let image = Image::read(&file).unwrap();
        assert_eq!(start_context(&image), None);
    }
}
