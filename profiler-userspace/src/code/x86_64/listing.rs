//! The instructions of one stretch of code, as text.
//!
//! In: bytes of code and their address. Out: instructions in AT&T's syntax, which perf and objdump use.

use crate::object::Image;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter as _, GasFormatter, Instruction, Mnemonic,
    OpKind, SymbolResolver, SymbolResult,
};
use std::collections::HashMap;
use std::ops::Range;

/// Where operands begin.
const OPERANDS: u32 = 8;

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) address: u64,
    pub(crate) text: String,
}

/// Instructions that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The addresses of the code, as far as it is read.
    pub(crate) addresses: Range<u64>,
    instructions: Vec<Instruction>,
}

impl Stretch {
    pub(in crate::code) fn read(image: &Image<'_>, addresses: Range<u64>) -> Option<Self> {
        let most = usize::try_from(addresses.end - addresses.start).ok()?;
        let bytes = image.bytes(addresses.start, most);
        Self::of(&bytes, addresses.start)
    }

    /// Code that begins at this address; none of no bytes.
    pub(crate) fn of(bytes: &[u8], begin: u64) -> Option<Self> {
        let mut decoder = Decoder::with_ip(64, bytes, begin, DecoderOptions::NONE);
        let instructions: Vec<Instruction> = decoder.iter().collect();
        (!instructions.is_empty()).then(|| Self {
            addresses: begin..begin.saturating_add(bytes.len() as u64),
            instructions,
        })
    }

    /// The same without what fills up the space behind a function, but for what is at `kept` or before.
    pub(crate) fn without_padding(mut self, kept: u64) -> Self {
        let is_padding = |last: &mut Instruction| {
            let fills = matches!(last.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            fills && last.ip() > kept
        };
        while let Some(last) = self.instructions.pop_if(is_padding) {
            self.addresses.end = last.ip();
        }
        self
    }

    /// The address of each instruction, ascending.
    pub(crate) fn begins(&self) -> impl ExactSizeIterator<Item = u64> {
        self.instructions.iter().map(Instruction::ip)
    }

    /// The place among all instructions of the one that an address lies in.
    pub(crate) fn place(&self, address: u64) -> Option<usize> {
        if !self.addresses.contains(&address) {
            return None;
        }
        let behind = (self.instructions).partition_point(|instruction| instruction.ip() <= address);
        behind.checked_sub(1)
    }

    /// Addresses outside of it that it jumps to, calls, or has the address of.
    pub(crate) fn targets(&self) -> impl Iterator<Item = u64> {
        let all = self.instructions.iter().filter_map(target);
        all.filter(|target| !self.addresses.contains(target))
    }

    /// All instructions as text. `names` are those of [targets](Self::targets).
    pub(crate) fn text(&self, names: &HashMap<u64, String>) -> Vec<Listed> {
        let begin = self.addresses.start;
        let names = Names {
            names: names.clone(),
            own: self.addresses.clone(),
        };
        let mut formatter = GasFormatter::with_options(Some(Box::new(names)), None);
        let options = formatter.options_mut();
        options.set_uppercase_hex(false);
        options.set_branch_leading_zeros(false);
        options.set_small_hex_numbers_in_decimal(false);
        options.set_space_after_operand_separator(false);
        options.set_first_operand_char_index(OPERANDS);
        options.set_rip_relative_addresses(true);
        options.set_show_symbol_address(false);
        let listed = |instruction: &Instruction| {
            let mut text = String::new();
            formatter.format(instruction, &mut text);
            if let Some(address) = relative(instruction) {
                text.push_str(&format!("  # {address:#x}"));
            }
            Listed {
                address: instruction.ip(),
                text,
            }
        };
        debug_assert!(
            self.instructions
                .first()
                .is_none_or(|first| first.ip() == begin)
        );
        self.instructions.iter().map(listed).collect()
    }
}

/// Where an instruction leads.
fn target(instruction: &Instruction) -> Option<u64> {
    let is_branch = matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call
    );
    (is_branch && instruction.op0_kind() == OpKind::NearBranch64)
        .then(|| instruction.near_branch64())
}

/// The address that an operand has relative to the instruction.
fn relative(instruction: &Instruction) -> Option<u64> {
    instruction
        .is_ip_rel_memory_operand()
        .then(|| instruction.ip_rel_memory_address())
}

/// Names for what branches lead to: those that are known, and for code of the same stretch how far into it.
struct Names {
    names: HashMap<u64, String>,
    own: Range<u64>,
}

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _: u32,
        _: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        if target(instruction) != Some(address) || self.own.contains(&address) {
            return None;
        }
        let name = self.names.get(&address)?;
        Some(SymbolResult::with_str(address, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_listed_with_the_names_of_what_it_calls() {
        // push %rbp; mov %rsp,%rbp; call 0x2000; lea 0x10(%rip),%rax; jmp to the beginning; ret.
        let bytes = [
            0x55, 0x48, 0x89, 0xe5, 0xe8, 0xf7, 0x0f, 0, 0, 0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xeb,
            0xee, 0xc3,
        ];
        let mut decoder = Decoder::with_ip(64, &bytes, 0x1000, DecoderOptions::NONE);
        let stretch = Stretch {
            addresses: 0x1000..0x1000 + bytes.len() as u64,
            instructions: decoder.iter().collect(),
        };
        assert_eq!(stretch.targets().collect::<Vec<_>>(), [0x2000]);
        let names = HashMap::from([(0x2000, "work<T>".to_owned())]);
        let listed = stretch.text(&names);
        let text: Vec<&str> = listed.iter().map(|listed| &*listed.text).collect();
        assert_eq!(
            text,
            [
                "push    %rbp",
                "mov     %rsp,%rbp",
                "call    work<T>",
                "lea     0x10(%rip),%rax  # 0x1020",
                "jmp     0x1000",
                "ret",
            ]
        );
        // The last byte of the call.
        assert_eq!(stretch.place(0x1008), Some(2));
        assert_eq!(stretch.place(0x1013), None);
    }

    #[test]
    fn padding_behind_a_function_is_not_shown() {
        // nop; ret; int3; nop; int3.
        let bytes = [0x90, 0xc3, 0xcc, 0x90, 0xcc];
        let begins = |kept| {
            let stretch = Stretch::of(&bytes, 0x1000).expect("code");
            let stretch = stretch.without_padding(kept);
            (stretch.begins().collect::<Vec<_>>(), stretch.addresses.end)
        };
        assert_eq!(begins(0), (vec![0x1000, 0x1001], 0x1002));
        assert_eq!(
            begins(0x1003),
            (vec![0x1000, 0x1001, 0x1002, 0x1003], 0x1004)
        );
        assert_eq!(
            Stretch::of(&[0xcc], 1)
                .expect("code")
                .without_padding(0)
                .begins()
                .len(),
            0
        );
        assert!(Stretch::of(&[], 0).is_none());
    }
}
