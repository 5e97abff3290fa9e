//! The code that a program begins with.
//!
//! In: the code at an entry point. Out: whether the kernel starts programs there, and the function that the C library's `crt1.o`
//! hands on. See the System V ABI, AMD64 supplement, section 3.4.1, on what the stack and the registers hold there.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// How much code is read at the entry point, in bytes.
pub(in crate::code) const START_BYTES: usize = 64;

/// The address in rdi at the first call, if this is the code of a C library: it clears rbp, takes the number of arguments
/// from the stack, and aligns that.
pub(in crate::code) fn handed_over(code: &[u8], entry: u64) -> Option<u64> {
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

/// Whether this is the code at which the kernel starts a program: it clears the frame pointer, or takes what is on the
/// stack (System V ABI, AMD64 supplement, section 3.4.1).
pub(in crate::code) fn is_start(code: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let first = decoder
        .iter()
        .find(|instruction| instruction.mnemonic() != Mnemonic::Endbr64);
    first.is_some_and(|first| match first.mnemonic() {
        Mnemonic::Xor => first.op0_register().full_register() == Register::RBP,
        Mnemonic::Mov => first.op1_register() == Register::RSP,
        _ => false,
    })
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

    #[test]
    fn the_kernels_way_in_is_known_by_its_first_instruction() {
        assert!(is_start(b"\x48\x89\xe7\xe8\0\0\0\0"));
        assert!(is_start(b"\xf3\x0f\x1e\xfa\x31\xed"));
        assert!(!is_start(b"\x55\x48\x89\xe5"));
        assert!(!is_start(b""));
    }
}
