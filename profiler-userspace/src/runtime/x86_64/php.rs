//! Where a function of PHP's stores its innermost frame, which the loop keeps in register 14.
//!
//! In: an object's file, and a function. Out: the addresses that it stores register 14 at.

use crate::object::Image;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use profiler_common::runtime::php::CURRENT_EXECUTE_DATA;
use std::collections::HashMap;
use std::ops::Range;

/// The loop moves its argument to register 14: `mov %rdi, %r14`.
pub(in crate::runtime) const MOVE: &[u8] = &[0x49, 0x89, 0xfe];

/// Larger functions are not looked at.
const MAX: u64 = 1 << 20;
/// How often a function stores register 14 at which address: that of a variable, or of what lies as far behind one as the innermost
/// frame does in `executor_globals`. None if the function is too large.
pub(in crate::runtime) fn stores(
    image: &Image<'_>,
    function: &Range<u64>,
) -> Option<HashMap<u64, u32>> {
    let bytes = function.end.checked_sub(function.start)?;
    if bytes > MAX {
        return None;
    }
    let mut code = vec![0; usize::try_from(bytes).ok()?];
    image.copy(function.start, &mut code)?;
    let decoder = Decoder::with_ip(64, &code, function.start, DecoderOptions::NONE);
    Some(stores_of(decoder))
}

/// How often register 14 is stored at which address.
fn stores_of(code: Decoder<'_>) -> HashMap<u64, u32> {
    let mut stores = HashMap::new();
    let mut addresses: HashMap<Register, u64> = HashMap::new();
    for instruction in code {
        if let Some(place) = stored(&instruction, &addresses) {
            *stores.entry(place).or_default() += 1;
        }
        if instruction.op0_kind() == OpKind::Register {
            let register = instruction.op0_register().full_register();
            match address(&instruction) {
                Some(address) => addresses.insert(register, address),
                None => addresses.remove(&register),
            };
        }
    }
    stores
}

/// Where an instruction stores register 14, if it does so at an address that is known.
fn stored(instruction: &Instruction, addresses: &HashMap<Register, u64>) -> Option<u64> {
    let is_store = instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_register() == Register::R14
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None;
    if !is_store {
        return None;
    }
    let distance = instruction.memory_displacement64();
    match instruction.memory_base() {
        Register::None | Register::RIP => Some(distance),
        base if distance == CURRENT_EXECUTE_DATA => {
            addresses.get(&base)?.checked_add(CURRENT_EXECUTE_DATA)
        }
        _ => None,
    }
}

/// The address that an instruction loads into a register, if it does nothing else.
fn address(instruction: &Instruction) -> Option<u64> {
    match instruction.mnemonic() {
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
            Some(instruction.memory_displacement64())
        }
        Mnemonic::Mov => match instruction.op1_kind() {
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                Some(instruction.immediate(1))
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_at_variables_and_behind_addresses_in_registers() {
        let stored = |code: &[u8]| {
            let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
            stores_of(decoder).into_iter().collect::<Vec<_>>()
        };
        // `mov %r14,0x100(%rip)`.
        assert_eq!(stored(b"\x4c\x89\x35\x00\x01\x00\x00"), [(0x1107, 1)]);
        // `mov $0x2000,%rax`, `mov %r14,0x1e8(%rax)`.
        let constant = b"\x48\xc7\xc0\x00\x20\x00\x00\x4c\x89\xb0\xe8\x01\x00\x00";
        assert_eq!(stored(constant), [(0x21e8, 1)]);
        // `lea 0x100(%rip),%rax`, `xor %eax,%eax`, `mov %r14,0x1e8(%rax)`.
        let gone = b"\x48\x8d\x05\x00\x01\x00\x00\x31\xc0\x4c\x89\xb0\xe8\x01\x00\x00";
        assert_eq!(stored(gone), []);
    }
}
