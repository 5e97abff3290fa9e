//! Addresses that CPython's code forms.
//!
//! In: code. Out: addresses, by whatever way compilers form them.

/// The addresses that code, which begins at `begin`, puts into a register: whole, or added to `onto`.
pub(in crate::runtime) fn formed(code: &[u8], begin: u64, onto: u64) -> impl Iterator<Item = u64> {
    let number = |at: usize| -> Option<u32> {
        let bytes = code.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    (0..code.len()).filter_map(move |at| {
        Some(match &code[at..] {
            // lea disp32(%rip), %rdi
            [0x48, 0x8d, 0x3d, ..] => {
                let next = begin.wrapping_add(at as u64 + 7);
                next.wrapping_add_signed(i64::from(number(at + 3)?.cast_signed()))
            }
            // mov $imm32, %edi, where addresses have 32 bits
            [0xbf, ..] => u64::from(number(at + 1)?),
            // add $imm32, %rdi
            [0x48, 0x81, 0xc7, ..] => onto.wrapping_add(u64::from(number(at + 3)?)),
            // lea disp32(%rax), %rdi; the same with other registers
            [0x48, 0x8d, register, ..] if register & 0xf8 == 0xb8 && *register != 0xbc => {
                onto.wrapping_add(u64::from(number(at + 3)?))
            }
            _ => return None,
        })
    })
}
