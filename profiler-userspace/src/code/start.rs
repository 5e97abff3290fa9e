//! Where a program's stacks begin.
//!
//! In: the code at the entry point. Out: that function, and the one that it hands to `__libc_start_main`, which is `main`;
//! of a C library, the function that coroutines return to.
//! The code is the C library's `crt1.o`; see the System V ABI, AMD64 supplement, section 3.4.1, on what the stack
//! and the registers hold there. Other beginnings are known by their address alone.

use super::Function;
use super::context::start_context;
use crate::object::{ElfAddress, Image};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// How much code is read at the entry point, in bytes.
const START_BYTES: usize = 64;

/// The first functions of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    entry: Option<u64>,
    main: Option<u64>,
    context: Option<u64>,
}

impl Start {
    /// Those of a program; none in a library.
    pub(super) fn find(image: &Image<'_>) -> Self {
        let is_code = |&at: &u64| image.code_at(at).is_some();
        let entry = image.entry().filter(is_code);
        let main = entry.and_then(|entry| {
            let code = image.bytes(entry, START_BYTES);
            handed_over(&code, entry).filter(is_code)
        });
        Self {
            entry,
            main,
            context: None,
        }
    }

    /// With where coroutines begin.
    pub(super) fn with_context(self, image: &Image<'_>) -> Self {
        Self {
            context: start_context(image),
            ..self
        }
    }

    /// The function whose first byte is a return address, although no call precedes it. As all
    /// return addresses, it is looked up one byte before.
    pub(super) fn returned_to(&self, address: u64) -> Option<Function> {
        let begin = self.context.filter(|&at| at == address.wrapping_add(1))?;
        Some(self.function(begin))
    }

    /// Name or beginning of the function that begins at an address.
    pub(super) fn function(&self, begin: u64) -> Function {
        match Some(begin) {
            at if at == self.main => Function::Named("main".to_owned()),
            at if at == self.entry => Function::Named("_start".to_owned()),
            at if at == self.context => Function::Named("__start_context".to_owned()),
            _ => Function::Begins(ElfAddress(begin)),
        }
    }

    /// Where they begin.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.entry.into_iter().chain(self.main)
    }
}

/// The address in rdi at the first call, if this is the code of a C library: it clears rbp, takes the number of arguments
/// from the stack, and aligns that.
fn handed_over(code: &[u8], entry: u64) -> Option<u64> {
    let mut decoder = Decoder::with_ip(64, code, entry, DecoderOptions::NONE);
    let (mut cleared, mut popped, mut aligned) = (false, false, false);
    let mut main = None;
    while decoder.can_decode() {
        let instruction = decoder.decode();
        match instruction.mnemonic() {
            Mnemonic::Xor if instruction.op0_register() == Register::EBP => cleared = true,
            Mnemonic::Pop if instruction.op0_register() == Register::RSI => popped = true,
            Mnemonic::And if instruction.op0_register() == Register::RSP => aligned = true,
            _ => {}
        }
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => {
                return main.filter(|_| cleared && popped && aligned);
            }
            _ => return None,
        }
        if instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().full_register() == Register::RDI
        {
            main = address(&instruction);
        }
    }
    None
}

/// The address that an instruction puts into its register.
fn address(instruction: &Instruction) -> Option<u64> {
    match instruction.mnemonic() {
        Mnemonic::Lea if instruction.memory_base() == Register::RIP => {
            Some(instruction.memory_displacement64())
        }
        Mnemonic::Mov
            if instruction.op1_kind() != OpKind::Memory
                && instruction.op1_kind() != OpKind::Register =>
        {
            Some(instruction.immediate(1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_c_library_is_handed_is_main() {
        // endbr64; xor ebp, ebp; mov r9, rdx; pop rsi; mov rdx, rsp; and rsp, -16; push rax; push rsp;
        // xor r8d, r8d; xor ecx, ecx; then rdi, and the call.
        let head = b"\xf3\x0f\x1e\xfa\x31\xed\x49\x89\xd1\x5e\x48\x89\xe2\x48\x83\xe4\xf0\x50\x54\x45\x31\xc0\x31\xc9";
        let call = b"\xff\x15\x53\x2f\0\0";
        let main = |load: &[u8]| handed_over(&[head, load, call].concat(), 0x1000);
        assert_eq!(main(b"\x48\x8d\x3d\xca\0\0\0"), Some(0x10e9));
        assert_eq!(main(b"\x48\xc7\xc7\x26\x11\x40\0"), Some(0x40_1126));
        assert_eq!(main(b"\xbf\x26\x11\x40\0"), Some(0x40_1126));
        assert_eq!(main(b"\x48\x8b\x3d\x01\0\0\0"), None);
        assert_eq!(handed_over(b"\x48\x8d\x3d\xca\0\0\0\xe8\0\0\0\0", 0), None);
        assert_eq!(handed_over(b"", 0), None);
    }
}
