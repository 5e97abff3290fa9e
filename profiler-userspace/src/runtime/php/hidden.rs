//! Where a PHP that exports nothing, being linked statically, has its loop and its innermost frame.
//!
//! In: an object's file. Out: `execute_ex`, and the address of `executor_globals`, read out of code. The loop is the one large function that moves its argument to register 14 and stores that register as the innermost frame over and
//! over. Where there is more than one candidate, none is believed.

use super::super::cold::larger;
use super::super::only;
use super::{Places, body};
use crate::object::Image;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use profiler_common::runtime::php::CURRENT_EXECUTE_DATA;
use std::collections::HashMap;
use std::ops::Range;

/// Bytes of the smallest loop: it has some thousand instructions of PHP's, although those that are rare are functions.
const SMALLEST: u64 = 8 << 10;
/// Larger functions are not looked at.
const LARGEST: u64 = 1 << 20;
/// A place that the loop stores its frame at less often is not believed.
const FEWEST: u32 = 5;

/// `execute_ex`, and where the innermost frame is kept.
pub(super) fn find(image: &Image<'_>) -> Option<Places> {
    let all = larger(image, SMALLEST).into_iter();
    let (execute, current) = only(all.filter_map(|function| {
        body(image, function.start)?;
        let current = current(image, &function)?;
        Some((function, current))
    }))?;
    Some(Places {
        execute,
        globals: current.checked_sub(CURRENT_EXECUTE_DATA)?,
        slot: None,
    })
}

/// Where a function stores register 14 most often: a variable, or what lies as far behind one as the innermost frame does in
/// `executor_globals`.
fn current(image: &Image<'_>, function: &Range<u64>) -> Option<u64> {
    let bytes = function.end.checked_sub(function.start)?;
    if bytes > LARGEST {
        return None;
    }
    let mut code = vec![0; usize::try_from(bytes).ok()?];
    image.copy(function.start, &mut code)?;
    most(&stores(Decoder::with_ip(
        64,
        &code,
        function.start,
        DecoderOptions::NONE,
    )))
}

/// How often register 14 is stored at which address.
fn stores(code: Decoder<'_>) -> HashMap<u64, u32> {
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

/// The address that is stored at often, and twice as often as any other.
fn most(all: &HashMap<u64, u32>) -> Option<u64> {
    let (place, times) = all.iter().max_by_key(|(_, times)| **times)?;
    let others = all.iter().filter(|(other, _)| *other != place);
    let next = others.map(|(_, times)| *times).max().unwrap_or(0);
    (*times >= FEWEST && *times >= next.saturating_mul(2)).then_some(*place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_an_object_exports_is_found_without_that() {
        let Ok(file) = File::open("/usr/bin/php") else {
            return;
        };
        let image = Image::read(&file).unwrap();
        let found = find(&image).unwrap();
        let exported = image.symbol("execute_ex").unwrap();
        assert_eq!(found.execute.start, exported.address);
        let globals = image.symbol("executor_globals").unwrap();
        assert_eq!(found.globals, globals.address);
    }

    #[test]
    fn other_objects_have_no_loop() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert!(find(&Image::read(&file).unwrap()).is_none());
    }

    #[test]
    fn stores_are_at_variables_and_behind_addresses_in_registers() {
        let stored = |code: &[u8]| {
            let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
            stores(decoder).into_iter().collect::<Vec<_>>()
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
