//! Code that the stacks of coroutines begin with.
//!
//! In: bytes of code. Out: whether they are glibc's `__start_context` (`sysdeps/unix/sysv/linux/x86_64/__start_context.S`), and where
//! `make_fcontext` of Boost.Context lets stacks begin.

use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};
use memchr::memmem;

/// How `__start_context` begins, in glibc 2.2.5 to 2.42: `mov rsp, rbx; mov rdi, [rsp]; test rdi, rdi; je`. Where
/// the processor checks the targets of jumps, `endbr64` stands before it.
const BEGINNING: [u8; 11] = *b"\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74";
pub(in crate::code) const ENDBR64: [u8; 4] = *b"\xf3\x0f\x1e\xfa";

/// The end of `make_fcontext` (`make_x86_64_sysv_elf_gas.S`, Boost 1.65 to 1.90), `push rbp; jmp rbx`, lets the first function
/// of a stack return to what is behind it: `xor rdi, rdi; call _exit`.
pub(in crate::code) const TRAMPOLINE: [u8; 3] = *b"\x55\xff\xe3";
const FINISH: [u8; 4] = *b"\x48\x31\xff\xe8";

/// The return addresses of Boost's first functions, as places in undescribed code.
pub(in crate::code) fn fcontext_ends(code: &[u8]) -> impl Iterator<Item = usize> {
    let trampolines = memmem::find_iter(code, &TRAMPOLINE);
    let behind = trampolines.map(|at| at + TRAMPOLINE.len());
    behind.filter(|&end| {
        let finish = &code[end..];
        let finish = finish.strip_prefix(&ENDBR64).unwrap_or(finish);
        finish.starts_with(&FINISH)
    })
}

/// The bytes that tell whether code [is `__start_context`](is_start_context).
pub(in crate::code) const START_CONTEXT_BYTES: usize = ENDBR64.len() + BEGINNING.len();

/// The bytes from the end of `make_fcontext` on that tell [where stacks begin](fcontext_ends).
pub(in crate::code) const FCONTEXT_END_BYTES: usize =
    TRAMPOLINE.len() + ENDBR64.len() + FINISH.len();

/// Whether code that begins with these bytes is `__start_context`.
pub(in crate::code) fn is_start_context(code: &[u8]) -> bool {
    let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
    code.starts_with(&BEGINNING)
}

/// The addresses that code, which begins at `begin`, puts into registers.
pub(in crate::code) fn addresses_taken(code: &[u8], begin: u64) -> impl Iterator<Item = u64> {
    let mut decoder = Decoder::with_ip(64, code, begin, DecoderOptions::NONE);
    std::iter::from_fn(move || decoder.can_decode().then(|| decoder.decode())).filter_map(
        |instruction| {
            let is_taken = instruction.mnemonic() == Mnemonic::Lea
                && instruction.memory_base() == Register::RIP;
            is_taken.then(|| instruction.memory_displacement64())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
