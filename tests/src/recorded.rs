//! Memory of processes that ran an interpreter, as far as a walk along its chain reads it, and what the walk shows.
//!
//! In: a walk over a live process, or a file of an earlier one. Out: the file, or the walk once more, in nothing but the words
//! that the file has. A file is text, one thing a line, numbers in hexadecimal but for lines and places:
//!
//! ```text
//! # anything
//! descriptor PLACE WORD                    of those that are not zero
//! bias ADDRESS
//! thread-pointer ADDRESS
//! registers WORD…                          the first sixteen by their DWARF numbers
//! native ADDRESS SP CALLER_SP IS_FIRST FP SAVED KINDS    a frame in the runtime's object; KINDS as `Frame::words` has it
//! breaks                                   the native walk ended before the root
//! memory ADDRESS BYTES                     what was read, in the order of its bytes
//! shows native | function ADDRESS at POSITION: NAME (FILE:LINE) | broken    from leaf to root
//! ```

mod broken;

pub use broken::{break_at_will, check_broken};

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use anyhow::{Context as _, Result, bail};
use flame_bpf::process::{CopiedText, FunctionEvent, ProcessKey};
use flame_bpf::runtime::Namer;
use profiler_common::abi::FrameWord;
use profiler_common::runtime::{
    Chain, DESCRIPTOR_WORDS, Described, Encoding, FunctionInfo, NativeFrame, Process, RemoteString,
    RuntimeKind,
    cpython::CPython,
    lua::Lua,
    luajit::LuaJit,
    memory::{Recorded, StackEntry, walk, walk_asking_each},
    perl::Perl,
    php::Php,
    ruby::Ruby,
};
use profiler_common::walk::{Memory, native::Frame};

/// The most bytes of a string that are copied: as many as the kernel half copies.
const MAX_TEXT: u64 = 256;

/// Frames of a program: what was read of it, and what came of that.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The memory, registers and descriptor that were read.
    pub process: Recorded,
    /// The native frames in the runtime's object, from leaf to root.
    pub natives: Vec<NativeFrame>,
    /// Whether the native walk ended before the root.
    pub breaks: bool,
    /// The stack that the walk showed, from leaf to root.
    pub shows: Vec<String>,
}

/// Result of a walk along a chain, with the names of functions.
#[derive(Clone, Debug)]
pub struct Walk {
    /// From leaf to root.
    pub shown: Vec<StackEntry>,
    /// The same as text.
    pub lines: Vec<String>,
}

impl Recording {
    /// The runtime; none if the descriptor is of none.
    pub fn kind(&self) -> Option<RuntimeKind> {
        kind_of(&self.process)
    }

    /// Walks in what was recorded.
    pub fn replay(&self) -> Walk {
        walk_in(&self.process, &self.natives, self.breaks)
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it is not of this kind.
    pub fn parse(text: &str) -> Result<Self> {
        let mut recording = Self {
            process: Recorded::default(),
            natives: Vec::new(),
            breaks: false,
            shows: Vec::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            recording
                .read(line)
                .with_context(|| format!("{line:?} makes no sense here"))?;
        }
        Ok(recording)
    }

    fn read(&mut self, line: &str) -> Result<()> {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words = || -> Result<Vec<u64>> {
            let words = rest.split(' ').map(|word| u64::from_str_radix(word, 16));
            words.collect::<Result<_, _>>().context("no numbers")
        };
        let process = &mut self.process;
        match what {
            "descriptor" => {
                let (place, word) = rest.split_once(' ').context("two numbers are wanted")?;
                let place: usize = place.parse()?;
                let place = process.descriptor.get_mut(place).context("so far")?;
                *place = u64::from_str_radix(word, 16)?;
            }
            "bias" => process.bias = u64::from_str_radix(rest, 16)?,
            "thread-pointer" => process.thread_pointer = u64::from_str_radix(rest, 16)?,
            "registers" => {
                let all = words()?.try_into();
                process.registers = all.ok().context("sixteen are wanted")?;
            }
            "native" => {
                let [address, sp, caller_sp, is_first, fp, saved, kinds] = words()?[..] else {
                    bail!("seven numbers are wanted");
                };
                let frame = Frame::from_words([0, 0, fp, saved, kinds]);
                self.natives.push(NativeFrame {
                    address,
                    sp,
                    caller_sp,
                    is_first,
                    fp: frame.fp,
                    saved: frame.saved,
                });
            }
            "breaks" => self.breaks = true,
            "memory" => {
                let (address, bytes) = rest.split_once(' ').context("bytes are wanted")?;
                let (pairs, []) = bytes.as_bytes().as_chunks::<2>() else {
                    bail!("half a byte");
                };
                let bytes = pairs.iter().map(|pair| {
                    let text = str::from_utf8(pair).context("no text")?;
                    u8::from_str_radix(text, 16).context("no byte")
                });
                let bytes = bytes.collect::<Result<Vec<u8>>>()?;
                process.bytes(u64::from_str_radix(address, 16)?, &bytes);
            }
            "shows" => self.shows.push(rest.to_owned()),
            _ => bail!("no such thing"),
        }
        Ok(())
    }
}

impl Display for Recording {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let process = &self.process;
        for (place, word) in process.descriptor.iter().enumerate() {
            if *word != 0 {
                writeln!(out, "descriptor {place} {word:x}")?;
            }
        }
        writeln!(out, "bias {:x}", process.bias)?;
        writeln!(out, "thread-pointer {:x}", process.thread_pointer)?;
        let registers = process.registers.map(|word| format!("{word:x}"));
        writeln!(out, "registers {}", registers.join(" "))?;
        for native in &self.natives {
            let NativeFrame {
                address,
                sp,
                caller_sp,
                is_first,
                fp,
                saved,
            } = *native;
            let frame = Frame {
                fp,
                saved,
                ..Frame::from_words([0; 5])
            };
            let [_, _, fp, saved, kinds] = frame.words();
            writeln!(
                out,
                "native {address:x} {sp:x} {caller_sp:x} {is_first:x} {fp:x} {saved:x} {kinds:x}"
            )?;
        }
        if self.breaks {
            writeln!(out, "breaks")?;
        }
        let mut next = None;
        for (address, byte) in &process.memory {
            if next != Some(*address) {
                let line = if next.is_some() { "\n" } else { "" };
                write!(out, "{line}memory {address:x} ")?;
            }
            write!(out, "{byte:02x}")?;
            next = address.checked_add(1);
        }
        if next.is_some() {
            writeln!(out)?;
        }
        for line in &self.shows {
            writeln!(out, "shows {line}")?;
        }
        Ok(())
    }
}

/// A process that notes what is read of it.
#[derive(Debug)]
pub struct Noting<P> {
    live: P,
    descriptor: [u64; DESCRIPTOR_WORDS],
    bias: u64,
    thread_pointer: u64,
    registers: [u64; 16],
    noted: RefCell<Recorded>,
}

/// Memory that is read byte by byte.
pub trait Bytes {
    /// Reads so many bytes; none if any of them cannot be read.
    fn bytes(&self, address: u64, into: &mut [u8]) -> Option<()>;
}

impl<P: Bytes> Noting<P> {
    /// A process, of which nothing was read yet. `known` has its descriptor, bias, thread pointer and registers.
    pub fn new(live: P, known: Recorded) -> Self {
        Self {
            live,
            descriptor: known.descriptor,
            bias: known.bias,
            thread_pointer: known.thread_pointer,
            registers: known.registers,
            noted: RefCell::new(known),
        }
    }

    /// Walks, and gives what was read meanwhile.
    pub fn record(self, natives: Vec<NativeFrame>, breaks: bool) -> Recording {
        let walk = walk_in(&self, &natives, breaks);
        Recording {
            process: self.noted.into_inner(),
            natives,
            breaks,
            shows: walk.lines,
        }
    }

    fn note(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        self.live.bytes(address, bytes)?;
        self.noted.borrow_mut().bytes(address, bytes);
        Some(())
    }
}

impl<P: Bytes> Memory for Noting<P> {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut bytes = [[0; 8]; N];
        self.note(address, bytes.as_flattened_mut())?;
        Some(bytes.map(u64::from_le_bytes))
    }
}

impl<P: Bytes> Described for Noting<P> {
    fn descriptor(&self, index: usize) -> u64 {
        self.descriptor.get(index).copied().unwrap_or(0)
    }
}

impl<P: Bytes> Process for Noting<P> {
    fn bias(&self) -> u64 {
        self.bias
    }

    fn thread_pointer(&self) -> u64 {
        self.thread_pointer
    }

    fn register(&self, number: u8) -> u64 {
        self.registers[usize::from(number & 15)]
    }

    fn fetch(&self, address: u64, bytes: u64) -> bool {
        let mut buffer = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX).min(1 << 12)];
        self.note(address, &mut buffer).is_some() && self.noted.borrow().fetch(address, bytes)
    }

    fn fetched(&self, index: usize) -> u64 {
        self.noted.borrow().fetched(index)
    }
}

fn kind_of(process: &impl Process) -> Option<RuntimeKind> {
    RuntimeKind::from_code(process.descriptor(0) as u8)
}

/// Walks along the chain of the runtime that the process's descriptor is of.
fn walk_in(process: &impl Process, natives: &[NativeFrame], breaks: bool) -> Walk {
    match kind_of(process) {
        Some(RuntimeKind::CPython) => walk_of::<CPython>(process, natives, breaks),
        Some(RuntimeKind::Perl) => walk_of::<Perl>(process, natives, breaks),
        Some(RuntimeKind::Php) => walk_of::<Php>(process, natives, breaks),
        Some(RuntimeKind::Ruby) => walk_of::<Ruby>(process, natives, breaks),
        Some(RuntimeKind::LuaJit) => walk_of::<LuaJit>(process, natives, breaks),
        Some(RuntimeKind::Lua) => walk_of::<Lua>(process, natives, breaks),
        // Its frames are native ones.
        Some(RuntimeKind::V8 | RuntimeKind::HotSpot) | None => Walk {
            shown: Vec::new(),
            lines: Vec::new(),
        },
    }
}

fn walk_of<R: Chain>(process: &impl Process, natives: &[NativeFrame], breaks: bool) -> Walk {
    let shown = walk::<R>(process, natives, breaks);
    assert_eq!(
        shown,
        walk_asking_each::<R>(process, natives, breaks),
        "what is passed runs no level"
    );
    let mut names = BTreeMap::new();
    let lines = shown.iter().map(|shown| match *shown {
        StackEntry::Native(_) => "native".to_owned(),
        StackEntry::Broken => "broken".to_owned(),
        StackEntry::Function { function, position } => {
            let name = names
                .entry(function)
                .or_insert_with(|| name_of::<R>(process, function));
            match name {
                Some(name) => format!("function {function:x} at {position}: {name}"),
                None => format!("function {function:x} at {position}"),
            }
        }
    });
    let lines = lines.collect();
    Walk { shown, lines }
}

/// Name of the function at an address, and the place of its definition.
fn name_of<R: FunctionInfo>(process: &impl Process, address: u64) -> Option<String> {
    let kind = kind_of(process)?;
    let check = R::check(process, address)?;
    let strings = R::strings(process, address)?;
    let event = FunctionEvent {
        // No process: there is nothing to be read but what was copied.
        process_key: ProcessKey {
            tgid: 0,
            incarnation: 0,
        },
        function: FrameWord::function(kind, address, check),
        check,
        descriptor: 0,
        bias: process.bias(),
        extra: strings.extra,
        first_line: strings.first_line,
        owner: text_of(process, strings.owner),
        name: text_of(process, strings.name),
        file: text_of(process, strings.file),
        caller: None,
        call: FrameWord(0),
        position: FrameWord(0),
    };
    let functions = Namer::new(true).functions(&[event], &[0; DESCRIPTOR_WORDS]);
    let function = functions.into_iter().next()?;
    Some(format!(
        "{} ({}:{})",
        function.name, function.file, function.first_line
    ))
}

/// Copies a string, byte for byte.
fn text_of(process: &impl Process, piece: RemoteString) -> CopiedText {
    let is_c_string = piece.encoding == Encoding::CString as u32;
    let most = if is_c_string {
        MAX_TEXT
    } else {
        u64::from(piece.bytes).min(MAX_TEXT)
    };
    let mut bytes = Vec::new();
    for place in 0..if piece.address == 0 { 0 } else { most } {
        if !process.fetch(piece.address.wrapping_add(place), 1) {
            break;
        }
        let byte = process.fetched(0) as u8;
        if is_c_string && byte == 0 {
            break;
        }
        bytes.push(byte);
    }
    CopiedText {
        bytes: bytes.into(),
        encoding: piece.encoding as u8,
        lacks_beginning: false,
        lacks_end: false,
    }
}
