//! Where direct calls lead.
//!
//! In: an object's code. Out: the targets of its direct calls. Code is read from the beginning of each section
//! to its end, one instruction after the other. Data among it is read as instructions, too; so a target counts only
//! where a function can begin: aligned, or behind an instruction that never goes on.

use super::image::{ALIGNMENT, Image, read};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
use std::fs::File;

/// How much code of one object is read, in bytes: a second's work.
const MAX_CODE_BYTES: u64 = 128 << 20;

/// How much is read at a time, in bytes.
const BLOCK_BYTES: u64 = 1 << 20;

/// At most so many targets are kept.
const MAX_TARGETS: usize = 1 << 20;

/// The targets of direct calls that are `wanted`, in any order.
pub(super) fn targets(image: &Image<'_>, file: &File, wanted: &dyn Fn(u64) -> bool) -> Vec<u64> {
    let mut left = MAX_CODE_BYTES;
    let mut found = Vec::new();
    let mut behind_end = Vec::new();
    for part in &image.code {
        let size = part.bytes.min(left);
        left -= size;
        let mut at = 0;
        while at < size {
            let block = read(file, part.offset.saturating_add(at), BLOCK_BYTES as usize);
            let block = &block[..block.len().min((size - at) as usize)];
            let ip = part.address.wrapping_add(at);
            let is_last = (at + block.len() as u64) >= size || block.len() < BLOCK_BYTES as usize;
            let taken = scan(block, ip, is_last, wanted, &mut found, &mut behind_end);
            if is_last || taken == 0 || found.len() > MAX_TARGETS {
                break;
            }
            at += taken as u64;
        }
    }
    behind_end.sort_unstable();
    found.sort_unstable();
    found.dedup();
    found.retain(|target| target % ALIGNMENT == 0 || behind_end.binary_search(target).is_ok());
    found
}

/// Reads one block, and says how many of its bytes were taken: an instruction may go on behind it.
fn scan(
    block: &[u8],
    ip: u64,
    is_last: bool,
    wanted: &dyn Fn(u64) -> bool,
    found: &mut Vec<u64>,
    behind_end: &mut Vec<u64>,
) -> usize {
    /// The longest instruction of the machine.
    const LONGEST: usize = 15;
    let mut decoder = Decoder::with_ip(64, block, ip, DecoderOptions::NONE);
    let end = block.len() - if is_last { 0 } else { LONGEST.min(block.len()) };
    let mut ended = false;
    while decoder.position() < end {
        let instruction = decoder.decode();
        if ended && wanted(instruction.ip()) {
            behind_end.push(instruction.ip());
        }
        ended = match instruction.flow_control() {
            FlowControl::Call if instruction.is_call_near() => {
                let target = instruction.near_branch_target();
                if wanted(target) {
                    found.push(target);
                }
                false
            }
            FlowControl::Return
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch => true,
            _ => {
                matches!(instruction.mnemonic(), Mnemonic::Ud2 | Mnemonic::Hlt)
                    || ended && matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
            }
        };
    }
    decoder.position()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_followed_and_jumps_are_not() {
        // call 0x1010; call rax; jmp 0x1020; ret; nop; call behind the block
        let code = b"\xe8\x0b\0\0\0\xff\xd0\xeb\x17\xc3\x90\xe8\xff\xff\0\0";
        let (mut found, mut behind_end) = (Vec::new(), Vec::new());
        let all = |_| true;
        let taken = scan(code, 0x1000, true, &all, &mut found, &mut behind_end);
        assert_eq!(taken, code.len());
        assert_eq!(found, [0x1010, 0x1_100f]);
        assert_eq!(behind_end, [0x1009, 0x100a, 0x100b]);
        let taken = scan(code, 0x1000, false, &all, &mut found, &mut behind_end);
        assert!((1..code.len()).contains(&taken));
    }
}
