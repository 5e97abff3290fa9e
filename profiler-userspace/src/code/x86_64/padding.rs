//! Filling between functions, as x86-64's compilers and linkers write it.
//!
//! In: bytes. Out: whether they are filling.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

/// Compilers, assemblers and linkers begin functions at multiples of this, unless they pack them.
pub(in crate::code) const ALIGNMENT: u64 = 16;

/// Whether these bytes behind a function are no code that runs.
pub(in crate::code) fn is_padding(bytes: &[u8], address: u64) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let all_zero = bytes.iter().all(|&byte| byte == 0);
    all_zero
        || decoder
            .iter()
            .all(|instruction| matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_is_no_code() {
        assert!(is_padding(b"\0\0\0\0\0", 0));
        assert!(is_padding(b"\x0f\x1f\x40\x00\x90\xcc", 0));
        assert!(!is_padding(b"\x90\xc3", 0));
    }
}
