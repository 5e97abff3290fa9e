//! Calls, by the bytes in front of a return address.

/// Whether the last of these eight bytes of code, in the order of memory, end a call: a near one with a relative target
/// (`e8`), or one through a register or memory (`ff /2`), of any length (Intel SDM, volume 2A, CALL).
#[inline(always)]
pub const fn ends_in_call(bytes: u64) -> bool {
    let [a, b, c, d, e, f, g] = [
        last(bytes, 1),
        last(bytes, 2),
        last(bytes, 3),
        last(bytes, 4),
        last(bytes, 5),
        last(bytes, 6),
        last(bytes, 7),
    ];
    e == 0xe8
        || is_indirect(b, a, 0, 2)
        || is_indirect(c, b, a, 3)
        || is_indirect(d, c, b, 4)
        || is_indirect(f, e, d, 6)
        || is_indirect(g, f, e, 7)
}

/// The n-th last byte in memory.
#[inline(always)]
const fn last(bytes: u64, n: u32) -> u8 {
    (bytes >> (64 - 8 * n)) as u8
}

/// Whether opcode, ModR/M byte and, if there is one, SIB byte are those of an indirect call of `length` bytes, its prefix
/// left out (Intel SDM, volume 2A, tables 2-2 and 2-3).
#[inline(always)]
const fn is_indirect(opcode: u8, modrm: u8, sib: u8, length: u8) -> bool {
    let (mode, memory) = (modrm >> 6, modrm & 7);
    let has_sib = mode != 3 && memory == 4;
    let displacement = match mode {
        0 if memory == 5 || has_sib && sib & 7 == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    opcode == 0xff && modrm >> 3 & 7 == 2 && length == 2 + has_sib as u8 + displacement
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As they lie in memory before a return address.
    fn ending(code: &[u8]) -> u64 {
        let mut bytes = [0x90; 8];
        bytes[8 - code.len()..].copy_from_slice(code);
        u64::from_le_bytes(bytes)
    }

    #[test]
    fn calls_of_every_form_are_known() {
        // As GNU as writes them.
        let calls: [&[u8]; 15] = [
            &[0xe8, 0x12, 0x34, 0x56, 0x78],             // call rel32
            &[0xff, 0xd0],                               // call *%rax
            &[0x41, 0xff, 0xd4],                         // call *%r12
            &[0x3e, 0xff, 0xd2],                         // notrack call *%rdx
            &[0xff, 0x10],                               // call *(%rax)
            &[0xff, 0x14, 0x24],                         // call *(%rsp)
            &[0xff, 0x50, 0x18],                         // call *24(%rax)
            &[0x41, 0xff, 0x55, 0x00],                   // call *0(%r13)
            &[0xff, 0x54, 0x24, 0x08],                   // call *8(%rsp)
            &[0xff, 0x14, 0xc2],                         // call *(%rdx,%rax,8)
            &[0x41, 0xff, 0x54, 0xc5, 0x10],             // call *16(%r13,%rax,8)
            &[0xff, 0x15, 0x12, 0x34, 0x56, 0x00],       // call *n(%rip)
            &[0xff, 0x90, 0x12, 0x34, 0x00, 0x00],       // call *n(%rax)
            &[0xff, 0x94, 0xc2, 0x12, 0x34, 0x00, 0x00], // call *n(%rdx,%rax,8)
            &[0xff, 0x14, 0xc5, 0x12, 0x34, 0x56, 0x00], // call *n(,%rax,8)
        ];
        for call in calls {
            assert!(ends_in_call(ending(call)), "{call:02x?}");
        }
    }

    #[test]
    fn what_is_no_call_is_refused() {
        let others: [&[u8]; 8] = [
            &[],
            &[0xe9, 0x12, 0x34, 0x56, 0x78],       // jmp rel32
            &[0xff, 0xe0],                         // jmp *%rax
            &[0xff, 0x25, 0x12, 0x34, 0x56, 0x00], // jmp *n(%rip)
            &[0xff, 0x35, 0x12, 0x34, 0x56, 0x00], // push n(%rip)
            &[0xff, 0x10, 0x90],                   // a call, and one instruction more
            &[0xff, 0x15, 0x12],                   // the beginning of one
            &[0xe8, 0x12, 0x34, 0x56, 0x78, 0x90],
        ];
        for other in others {
            assert!(!ends_in_call(ending(other)), "{other:02x?}");
        }
    }
}
