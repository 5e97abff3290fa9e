//! Instructions that refer to other code.
//!
//! In: bytes of code and their address. Out: the address that an instruction refers to, if one begins there; where instructions begin.

use iced_x86::{Decoder, DecoderOptions};

/// The bytes that [`target`] looks at: those of the longest such instruction.
pub(in crate::code) const BYTES: usize = 7;

/// The address that is referred to if these bytes, which begin at `at`, are a call, a jump or `lea reg, [rip+n]`, and whether it is
/// called.
#[inline]
pub(in crate::code) fn target(window: &[u8], at: u64) -> Option<(u64, bool)> {
    // Where the four bytes of the distance are.
    let distance = match window {
        [0xe8 | 0xe9, ..] => 1,
        [0x48 | 0x4c, 0x8d, operands, ..] if operands & 0xc7 == 0x05 => 3,
        _ => return None,
    };
    let bytes = window.get(distance..)?.first_chunk::<4>()?;
    let behind = at.wrapping_add(distance as u64 + 4);
    let target = behind.wrapping_add_signed(i32::from_le_bytes(*bytes).into());
    Some((target, window[0] == 0xe8))
}

/// The address of each instruction of code that begins at an address.
pub(in crate::code) fn instructions(code: &[u8], begin: u64) -> impl Iterator<Item = u64> {
    let mut decoder = Decoder::with_ip(64, code, begin, DecoderOptions::NONE);
    std::iter::from_fn(move || decoder.can_decode().then(|| decoder.decode().ip()))
}
