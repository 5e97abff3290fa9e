//! The functions of a BPF object, and what they call.
//!
//! In: a parsed object file. Out: its functions with the stack that they take, the calls between them and the kernel functions
//! called. It reads calls, addresses of functions, their relocations and what counts from the frame pointer, as the kernel's
//! documentation of the instruction set lays them out
//! (<https://docs.kernel.org/bpf/standardization/instruction-set.html>), and nothing else of the code.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, Section, SectionIndex,
    SectionKind, SymbolKind,
};

/// Bytes per instruction.
const INSTRUCTION: u64 = 8;

/// The opcode of a call.
const CALL: u8 = 0x85;

/// The source register of a call to one of the kernel's helpers.
const TO_KERNEL: u8 = 0;

/// The opcode that loads an address into a register, which may be a function's that the kernel is to call.
const LOAD_ADDRESS: u8 = 0x18;

/// The opcode that copies a register.
const MOVE: u8 = 0xbf;

/// The opcode that adds a number to a register.
const ADD: u8 = 0x07;

/// The frame pointer.
const FRAME_POINTER: u8 = 10;

/// How the names of the sections begin whose functions are no programs.
const SHARED: &str = ".text";

/// The functions of an object, and their calls.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// Every function, in the order of the file.
    pub(crate) functions: Vec<Function>,
    /// Names of functions, to the names of the functions in this object that they call or have the kernel call.
    pub(crate) calls: BTreeMap<String, BTreeSet<String>>,
    /// Numbers of the kernel functions called.
    pub(crate) kernel: BTreeSet<i32>,
    /// Names of functions that are called but not in this object.
    pub(crate) undefined: BTreeSet<String>,
}

/// One function.
#[derive(Debug)]
pub(crate) struct Function {
    /// As in the symbol table.
    pub(crate) name: String,
    /// The name of its section, which says what kind of program it is.
    pub(crate) section: String,
    /// How many instructions it has.
    pub(crate) instructions: u64,
    /// How far below its frame pointer it reaches, in bytes.
    pub(crate) stack_bytes: u64,
    index: SectionIndex,
    start: u64,
}

/// Where a call goes.
enum Callee {
    Kernel(i32),
    Here(SectionIndex, u64),
    Undefined(String),
}

impl Function {
    /// Whether the kernel calls it, rather than another function.
    pub(crate) fn is_program(&self) -> bool {
        !self.section.starts_with(SHARED)
    }

    fn holds(&self, index: SectionIndex, offset: u64) -> bool {
        let end = self.start + self.instructions * INSTRUCTION;
        self.index == index && (self.start..end).contains(&offset)
    }
}

impl Code {
    /// Reads every section of code.
    pub(crate) fn read(file: &object::File<'_>) -> Result<Self> {
        let mut code = Self {
            functions: functions(file)?,
            ..Self::default()
        };
        for section in file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
        {
            code.read_calls(file, &section)?;
        }
        Ok(code)
    }

    /// The functions that the kernel calls.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &Function> {
        self.functions
            .iter()
            .filter(|function| function.is_program())
    }

    fn read_calls(&mut self, file: &object::File<'_>, section: &Section<'_, '_>) -> Result<()> {
        let relocations: BTreeMap<u64, RelocationTarget> = section
            .relocations()
            .map(|(offset, relocation)| (offset, relocation.target()))
            .collect();
        let data = section.data().context("a section cannot be read")?;
        let mut offset = 0;
        for instruction in data.as_chunks().0 {
            if let Some(callee) = callee(file, section.index(), offset, instruction, &relocations)?
            {
                self.add(section.index(), offset, callee)?;
            }
            offset += INSTRUCTION;
        }
        Ok(())
    }

    fn add(&mut self, index: SectionIndex, offset: u64, callee: Callee) -> Result<()> {
        match callee {
            Callee::Kernel(number) => {
                self.kernel.insert(number);
            }
            Callee::Undefined(name) => {
                self.undefined.insert(name);
            }
            Callee::Here(to, at) => {
                let (from, to) = (self.name(index, offset)?, self.name(to, at)?);
                self.calls.entry(from).or_default().insert(to);
            }
        }
        Ok(())
    }

    fn name(&self, index: SectionIndex, offset: u64) -> Result<String> {
        let function = self.functions.iter().find(|f| f.holds(index, offset));
        Ok(function
            .context("a call from or to code outside of any function")?
            .name
            .clone())
    }
}

fn functions(file: &object::File<'_>) -> Result<Vec<Function>> {
    let mut functions = Vec::new();
    for symbol in file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text)
    {
        let Some(index) = symbol.section_index() else {
            continue;
        };
        let section = file
            .section_by_index(index)
            .context("a function in no section")?;
        functions.push(Function {
            name: symbol
                .name()
                .context("a function without a name")?
                .to_owned(),
            section: section
                .name()
                .context("a section without a name")?
                .to_owned(),
            instructions: symbol.size() / INSTRUCTION,
            stack_bytes: section
                .data_range(symbol.address(), symbol.size())
                .ok()
                .flatten()
                .map_or(0, stack_bytes),
            index,
            start: symbol.address(),
        });
    }
    functions.sort_by_key(|function| (function.index.0, function.start));
    Ok(functions)
}

/// How far below the frame pointer instructions reach, in bytes.
fn stack_bytes(code: &[u8]) -> u64 {
    let mut deepest = 0;
    let mut is_copy = [false; 16];
    for &[opcode, registers, low, high, immediate @ ..] in code.as_chunks::<8>().0 {
        let (to, from) = (registers & 15, registers >> 4);
        // The lowest bits are the class: 1 loads from memory, 2 and 3 store.
        let base = match opcode & 7 {
            1 => Some(from),
            2 | 3 => Some(to),
            _ => None,
        };
        let place = if base == Some(FRAME_POINTER) {
            i64::from(i16::from_le_bytes([low, high]))
        } else if opcode == ADD && is_copy[usize::from(to)] {
            i64::from(i32::from_le_bytes(immediate))
        } else {
            0
        };
        deepest = deepest.max(place.min(0).unsigned_abs());
        if opcode == MOVE || opcode == ADD {
            is_copy[usize::from(to)] = opcode == MOVE && from == FRAME_POINTER;
        }
    }
    deepest
}

fn callee(
    file: &object::File<'_>,
    section: SectionIndex,
    offset: u64,
    instruction: &[u8; 8],
    relocations: &BTreeMap<u64, RelocationTarget>,
) -> Result<Option<Callee>> {
    let [opcode, registers, _, _, immediate @ ..] = *instruction;
    let immediate = i32::from_le_bytes(immediate);
    if opcode == LOAD_ADDRESS {
        return function_at(file, relocations.get(&offset), immediate);
    }
    if opcode != CALL {
        return Ok(None);
    }
    // Both kinds of relative target count instructions from the one after the place that they are relative to.
    let relative = |place: u64| {
        place.checked_add_signed((i64::from(immediate) + 1) * INSTRUCTION.cast_signed())
    };
    let Some(target) = relocations.get(&offset) else {
        return Ok(Some(if registers >> 4 == TO_KERNEL {
            Callee::Kernel(immediate)
        } else {
            Callee::Here(
                section,
                relative(offset).context("a call to before its section")?,
            )
        }));
    };
    let RelocationTarget::Symbol(symbol) = *target else {
        anyhow::bail!("a call to something other than a symbol");
    };
    let symbol = file
        .symbol_by_index(symbol)
        .context("a call to a symbol that is not there")?;
    Ok(Some(match symbol.section_index() {
        None => Callee::Undefined(
            symbol
                .name()
                .context("a call to a nameless symbol")?
                .to_owned(),
        ),
        Some(index) if symbol.kind() == SymbolKind::Section => {
            Callee::Here(index, relative(0).context("a call to before its section")?)
        }
        Some(index) => Callee::Here(index, symbol.address()),
    }))
}

/// The function whose address is loaded, if it is one's.
fn function_at(
    file: &object::File<'_>,
    target: Option<&RelocationTarget>,
    immediate: i32,
) -> Result<Option<Callee>> {
    let Some(&RelocationTarget::Symbol(symbol)) = target else {
        return Ok(None);
    };
    let symbol = file
        .symbol_by_index(symbol)
        .context("the address of a symbol that is not there")?;
    let Some(index) = symbol.section_index() else {
        return Ok(None);
    };
    let section = file
        .section_by_index(index)
        .context("a symbol in no section")?;
    if section.kind() != SectionKind::Text {
        return Ok(None);
    }
    let place = symbol.address().checked_add_signed(immediate.into());
    let place = place.context("a function before its section")?;
    Ok(Some(Callee::Here(index, place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_reaches_as_far_as_loads_stores_and_addresses() {
        let store = [0x7b, 0x1a, 0xf0, 0xff, 0, 0, 0, 0]; // *(u64 *)(r10 - 16) = r1
        let load = [0x79, 0xa1, 0xe8, 0xff, 0, 0, 0, 0]; // r1 = *(u64 *)(r10 - 24)
        let copy = [0xbf, 0xa2, 0, 0, 0, 0, 0, 0]; // r2 = r10
        let add = [0x07, 0x02, 0, 0, 0xd8, 0xff, 0xff, 0xff]; // r2 += -40
        let other = [0x7b, 0x19, 0x00, 0xff, 0, 0, 0, 0]; // *(u64 *)(r9 - 256) = r1
        assert_eq!(stack_bytes(&[other, add].concat()), 0);
        assert_eq!(stack_bytes(&[store, other].concat()), 16);
        assert_eq!(stack_bytes(&[store, load].concat()), 24);
        assert_eq!(stack_bytes(&[store, copy, add, add].concat()), 40);
    }
}
