//! Registers that functions without calls leave as they were.
//!
//! In: the place where such a function begins. Out: the general registers that none of its instructions writes. Assembly
//! shares helpers that keep no convention: x264's `hadamard_ac` holds its caller's stack pointer in rcx while it calls one.

use super::effect::written;
use super::parts::Parts;
use super::registers::Registers;
use foldhash::{HashMap, HashSet, HashSetExt as _};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind};

/// The longest function that is looked at, in instructions. Helpers of x264 have 150.
const MAX_INSTRUCTIONS: usize = 2048;

/// The functions that were looked at.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    known: HashMap<u32, Registers>,
}

impl Leaves {
    /// The registers that the function at a place never writes, nor whatever it jumps to. None of them if it calls
    /// anything, leads to where no code is known, or takes more than `steps` instructions, of which those read are
    /// subtracted.
    pub(super) fn unwritten(
        &mut self,
        parts: &Parts<'_>,
        place: u32,
        factory: &mut InstructionInfoFactory,
        steps: &mut usize,
    ) -> Registers {
        if let Some(&known) = self.known.get(&place) {
            return known;
        }
        let found = read(parts, place, factory, steps).unwrap_or_default();
        self.known.insert(place, found);
        found
    }
}

fn read(
    parts: &Parts<'_>,
    place: u32,
    factory: &mut InstructionInfoFactory,
    steps: &mut usize,
) -> Option<Registers> {
    let mut left = Registers::ALL;
    let mut seen = HashSet::new();
    let mut ways = vec![place];
    let mut instruction = Instruction::default();
    while let Some(way) = ways.pop() {
        let (part, into) = parts.at(way)?;
        let ip = part.address.wrapping_add(into as u64);
        let mut decoder = Decoder::with_ip(64, &part.bytes[into..], ip, DecoderOptions::NONE);
        loop {
            if !seen.insert(parts.place(decoder.ip())?) {
                break;
            }
            *steps = steps.checked_sub(1)?;
            if seen.len() > MAX_INSTRUCTIONS {
                return None;
            }
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                return None;
            }
            for register in written(&instruction, factory) {
                left = left.without(register);
            }
            let is_near =
                instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64;
            match instruction.flow_control() {
                FlowControl::Next => {}
                FlowControl::Return => break,
                FlowControl::ConditionalBranch if is_near => {
                    ways.push(parts.place(instruction.near_branch_target())?);
                }
                FlowControl::UnconditionalBranch if is_near => {
                    ways.push(parts.place(instruction.near_branch_target())?);
                    break;
                }
                _ => return None,
            }
        }
    }
    Some(left)
}
