//! Where the stack of a coroutine begins.
//!
//! In: a C library. Out: the function to which the stacks of `makecontext` return, glibc's `__start_context`
//! (`sysdeps/unix/sysv/linux/x86_64/__start_context.S`). It is the outermost frame of such a stack, and it is never
//! called: what was started returns to its first byte. Nothing exports it; `makecontext` takes its address.
//!
//! In: assembly that no table describes. Out: where `make_fcontext` of Boost.Context lets stacks begin. PHP's fibers and
//! Folly's have a copy of that assembly, often without a name, so that it is known by its bytes.

use crate::object::image::read_at;
use crate::object::{Elf, Image};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};
use memchr::memmem::{self, Finder};
use std::fs::File;
use std::ops::Range;

/// The most code of `makecontext` that is read, in bytes. It has 660 in glibc 2.36.
const MAX_BYTES: u64 = 4096;

/// How `__start_context` begins, in glibc 2.2.5 to 2.42: `mov rsp, rbx; mov rdi, [rsp]; test rdi, rdi; je`. Where
/// the processor checks the targets of jumps, `endbr64` stands before it.
const BEGINNING: [u8; 11] = *b"\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74";
pub(super) const ENDBR64: [u8; 4] = *b"\xf3\x0f\x1e\xfa";

/// The end of `make_fcontext` (`make_x86_64_sysv_elf_gas.S`, Boost 1.65 to 1.90), `push rbp; jmp rbx`, lets the first function
/// of a stack return to what is behind it: `xor rdi, rdi; call _exit`.
const TRAMPOLINE: [u8; 3] = *b"\x55\xff\xe3";
const FINISH: [u8; 4] = *b"\x48\x31\xff\xe8";

/// The return addresses of Boost's first functions, as places in undescribed code.
pub(super) fn fcontext_ends(code: &[u8]) -> impl Iterator<Item = usize> {
    let trampolines = memmem::find_iter(code, &TRAMPOLINE);
    let behind = trampolines.map(|at| at + TRAMPOLINE.len());
    behind.filter(|&end| {
        let finish = &code[end..];
        let finish = finish.strip_prefix(&ENDBR64).unwrap_or(finish);
        finish.starts_with(&FINISH)
    })
}

/// Whether the byte at an address is the last one before such a return address.
pub(super) fn ends_stacks(image: &Image<'_>, address: u64) -> bool {
    let before = TRAMPOLINE.len() as u64 - 1;
    let bytes = TRAMPOLINE.len() + ENDBR64.len() + FINISH.len();
    let begin = address.checked_sub(before);
    let code = begin.map(|begin| image.bytes(begin, bytes));
    code.is_some_and(|code| fcontext_ends(&code).next() == Some(TRAMPOLINE.len()))
}

/// The address of `__start_context`; none in what is not glibc.
pub(super) fn start_context(image: &Image<'_>) -> Option<u64> {
    let body = makecontext(image)?;
    let bytes = usize::try_from((body.end - body.start).min(MAX_BYTES)).ok()?;
    let code = image.bytes(body.start, bytes);
    let mut decoder = Decoder::with_ip(64, &code, body.start, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.mnemonic() != Mnemonic::Lea || instruction.memory_base() != Register::RIP {
            continue;
        }
        let target = instruction.memory_displacement64();
        let is_code = image.code_at(target).is_some();
        if is_code && is_start_context(&image.bytes(target, ENDBR64.len() + BEGINNING.len())) {
            return Some(target);
        }
    }
    None
}

fn is_start_context(code: &[u8]) -> bool {
    let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
    code.starts_with(&BEGINNING)
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

    #[test]
    fn what_the_first_function_of_an_fcontext_returns_to_is_found() {
        let plain = [&b"\xc3"[..], &TRAMPOLINE, &FINISH, &[0; 4], b"\xf4"].concat();
        let checked = [&TRAMPOLINE[..], &ENDBR64, &FINISH].concat();
        let other = [&TRAMPOLINE[..], b"\x31\xc0\xc3"].concat();
        let code = [&plain[..], &other, &checked].concat();
        let ends: Vec<_> = fcontext_ends(&code).collect();
        assert_eq!(ends, [4, plain.len() + other.len() + 3]);
        assert_eq!(fcontext_ends(&TRAMPOLINE).next(), None);
    }

    #[test]
    fn it_is_known_by_its_first_instructions() {
        assert!(is_start_context(&BEGINNING));
        assert!(is_start_context(&[&ENDBR64[..], &BEGINNING].concat()));
        assert!(!is_start_context(&BEGINNING[1..]));
        assert!(!is_start_context(b""));
    }
}
