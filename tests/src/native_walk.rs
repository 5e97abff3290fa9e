//! Walking by unwind rules on the host.
//!
//! In: registers, the memory of a process that does not run meanwhile, and what is mapped into it. Out: its native frames.

use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use flame_bpf::object::{Elf, ElfAddress, FileOffset};
use flame_bpf::unwind::UnwindTable;
use profiler_common::abi::{Rule, StackEnd};
use profiler_common::walk::native::{self, Frame};
use profiler_common::walk::{Memory, Registers as FirstRegisters, Step};

/// The general registers in the order of DWARF's numbers, then the instruction pointer.
pub type Registers = [u64; 17];

/// The position of the instruction pointer behind the general registers.
pub const RIP: usize = 16;
/// The place of the stack pointer among the registers.
pub const RSP: usize = 7;
/// The place of the frame pointer among the registers.
pub const RBP: usize = 6;
const RBX: usize = 3;

/// A stack that was copied.
#[derive(Debug)]
pub struct Stack {
    /// Where its first word was.
    pub start: u64,
    /// Its words, upwards.
    pub words: Vec<u64>,
}

impl Stack {
    /// The word at an address.
    pub fn word(&self, address: u64) -> Option<u64> {
        let into = usize::try_from(address.checked_sub(self.start)?).ok()?;
        if !into.is_multiple_of(8) {
            return None;
        }
        self.words.get(into / 8).copied()
    }
}

impl Memory for Stack {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.word(address.checked_add(8 * i as u64)?)?;
        }
        Some(words)
    }
}

/// Code of one object, where the program had it.
#[derive(Debug)]
pub struct Mapped {
    /// Where it was.
    pub code: Range<u64>,
    /// The place in the file of its first byte.
    pub offset: u64,
    /// How far addresses are from the object's own.
    pub bias: u64,
    /// The file.
    pub path: String,
    table: UnwindTable,
}

/// Makes an ELF file look as if it had no unwind instructions: `.eh_frame` and its index have no bytes, and no program
/// header tells where the index is.
fn hide_unwind_sections(bytes: &mut [u8]) {
    use object::elf::{FileHeader64, PT_GNU_EH_FRAME, SHT_NOBITS};
    use object::read::elf::{FileHeader as _, ProgramHeader as _};
    let endian = object::LittleEndian;
    let header = FileHeader64::<object::LittleEndian>::parse(&*bytes).expect("an ELF file");
    let at = |table: u64, entry: u16, number: usize| table as usize + usize::from(entry) * number;
    let sections = header.sections(endian, &*bytes).expect("sections");
    let segments = header.program_headers(endian, &*bytes).expect("segments");
    let mut words: Vec<(usize, u32)> = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        let name = sections.section_name(endian, section);
        if matches!(name, Ok(b".eh_frame" | b".eh_frame_hdr")) {
            let place = at(
                header.e_shoff.get(endian),
                header.e_shentsize.get(endian),
                number,
            );
            words.push((place + 4, SHT_NOBITS));
        }
    }
    for (number, segment) in segments.iter().enumerate() {
        if segment.p_type(endian) == PT_GNU_EH_FRAME {
            let place = at(
                header.e_phoff.get(endian),
                header.e_phentsize.get(endian),
                number,
            );
            words.push((place, 0));
        }
    }
    for (place, word) in words {
        bytes[place..place + 4].copy_from_slice(&word.to_le_bytes());
    }
}

impl Mapped {
    /// Code at these addresses, and the bytes of the file that it comes from; none if these cannot be had.
    ///
    /// # Panics
    ///
    /// When the file is not what is mapped.
    pub fn new(code: Range<u64>, offset: u64, path: &str) -> Option<(Self, Vec<u8>)> {
        let bytes = if path == "[vdso]" {
            own_vdso()?
        } else {
            fs::read(path).ok()?
        };
        let elf = Elf::parse(bytes.as_slice()).expect("a mapped ELF file");
        let address = elf
            .segments
            .address(FileOffset(offset))
            .expect("what is mapped is in a segment");
        let bias = code.start.wrapping_sub(address.0);
        let table = UnwindTable::parse(bytes.as_slice()).expect("an x86-64 object");
        let path = path.to_owned();
        Some((
            Self {
                code,
                offset,
                bias,
                path,
                table,
            },
            bytes,
        ))
    }

    /// The same code, with rows that are read from it as if its file had no unwind instructions.
    ///
    /// # Panics
    ///
    /// When the file is not there any more.
    #[must_use]
    pub fn read_from_code(&self) -> Self {
        let mut bytes = fs::read(&self.path).expect("it was read before");
        hide_unwind_sections(&mut bytes);
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&bytes).expect("room for a file");
        Self {
            code: self.code.clone(),
            path: self.path.clone(),
            table: UnwindTable::read(&file).expect("an x86-64 object"),
            ..*self
        }
    }

    /// Whether the row for an address of the process is there, and was read from code.
    pub fn is_read_from_code(&self, address: u64) -> bool {
        let rule = self
            .table
            .rule_at(ElfAddress(address.wrapping_sub(self.bias)));
        rule.is_some_and(Rule::is_from_code)
    }
}

/// The vDSO, which the kernel maps into every process alike.
fn own_vdso() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, rest) = line.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(rest.split_once(' ')?.0)?);
    let mut bytes = vec![0; usize::try_from(end - start).ok()?];
    let memory = fs::File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}

/// Walks by unwind rules: the frames, the first included, and why there are no more.
///
/// # Panics
///
/// When an object has no rule for its own code.
pub fn walk_natively(
    registers: &Registers,
    memory: &impl Memory,
    mapped: &[Mapped],
) -> (Vec<Frame>, StackEnd) {
    let first = FirstRegisters {
        ip: registers[RIP],
        sp: registers[RSP],
        fp: registers[RBP],
    };
    let mut frame = Frame::running(first, registers[RBX]);
    let mut frames = Vec::new();
    loop {
        let lookup = frame.lookup();
        let Some(object) = mapped.iter().find(|object| object.code.contains(&lookup)) else {
            return (frames, StackEnd::NotLoaded);
        };
        frames.push(frame);
        let address = ElfAddress(lookup.wrapping_sub(object.bias));
        let rule = object.table.rule_at(address).expect("mapped code is code");
        let register = |number: u8| registers.get(usize::from(number)).copied();
        match native::step(rule, &frame, register, memory) {
            Step::Caller(caller) => frame = caller,
            Step::End(end) => return (frames, end),
        }
    }
}
