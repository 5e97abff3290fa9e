//! The functions of a BPF object, and what they call.
//!
//! In: a parsed object file. Out: its functions, the calls between them and the kernel functions called. It reads call
//! instructions and their relocations, as the kernel's documentation of the instruction set lays them out
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

/// What a call's source register says of its target.
const TO_KERNEL: u8 = 0;

/// How the names of the sections begin whose functions are no programs.
const SHARED: &str = ".text";

/// What an object's code consists of.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// Every function, in the order of the file.
    pub(crate) functions: Vec<Function>,
    /// Names of functions, to the names of the functions in this object that they call.
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
            index,
            start: symbol.address(),
        });
    }
    functions.sort_by_key(|function| (function.index.0, function.start));
    Ok(functions)
}

fn callee(
    file: &object::File<'_>,
    section: SectionIndex,
    offset: u64,
    instruction: &[u8; 8],
    relocations: &BTreeMap<u64, RelocationTarget>,
) -> Result<Option<Callee>> {
    let [opcode, registers, _, _, immediate @ ..] = *instruction;
    if opcode != CALL {
        return Ok(None);
    }
    let immediate = i32::from_le_bytes(immediate);
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
