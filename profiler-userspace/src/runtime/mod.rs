//! Runtimes whose frames are shown: how their files are recognized, and what their functions are called.
//!
//! In: an object's file; what the kernel half copied of a function. Out: the words of a descriptor, with which the kernel half
//! follows the runtime's frames ([`profiler_common::runtime`]); a function's name, file and lines. Detection is by content,
//! never by a file's name. Everything read may be forged: what makes no sense is no runtime, or no name.
//!
//! One row in [`RUNTIMES`] for each.

mod cpython;
mod function_bounds;
mod hotspot;
mod lua;
mod luajit;
mod memory;
mod namer;
mod perl;
mod php;
mod ruby;
mod scattered;
mod search;
mod v8;
mod x86_64;

use memory::BLOCK_BYTES;
pub use memory::TargetMemory;
pub use namer::{MAX_TOGETHER, Namer};

use crate::object::Image;
use crate::process::{FunctionEvent, FunctionLines, RuntimeFunction};
use crate::profile::interpreters::HiddenFrames;
use memchr::memmem;
use profiler_common::runtime::{DESCRIPTOR_WORDS, Encoding, RuntimeKind, RuntimeKinds};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use x86_64 as arch;

/// The words of a descriptor.
pub type Descriptor = [u64; DESCRIPTOR_WORDS];

/// A runtime in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// Which.
    pub kind: RuntimeKind,
    /// The runtime and its version: `CPython 3.11`.
    pub name: String,
    /// How its frames are found; otherwise why they are not, as the end of a sentence: `its version is not known`.
    pub words: Result<Box<Descriptor>, &'static str>,
}

impl Detected {
    /// Code of the file that keeps frame pointers throughout, and of which nothing else need be known.
    pub fn keeps_frame_pointers(&self) -> Option<Range<u64>> {
        let words = self.words.as_ref().ok()?;
        (self.kind == RuntimeKind::V8).then(|| v8::builtins_in(words))
    }
}

/// Properties of a runtime beside its frames.
struct RuntimeSpec {
    kind: RuntimeKind,
    /// Stands in the names of files that have it, as a rule.
    in_file_names: &'static str,
    /// Recognizes it in a file.
    detect: fn(&Image<'_>) -> Option<Detected>,
    /// Stands between what a function belongs to and its name.
    separator: &'static str,
    /// Name for a function that has none.
    unnamed: &'static str,
    /// Whether a function's name does not tell it from others, so that file and line of its definition are shown, too.
    is_nameless: fn(&str) -> bool,
    /// Meaning of positions in a function.
    lines: Lines,
    /// The native functions that are the interpreter's loop, or lead to it and from it.
    hidden_frames: HiddenFrames,
    /// Completes what the event says, where functions have no names of their own.
    complete: Option<fn(&FunctionEvent, &TargetMemory, &mut RuntimeFunction)>,
    /// Reads more of functions than lines.
    reading: Option<Reading>,
}

/// Caches by a namer, because many functions share it.
#[derive(Debug, Default)]
struct Caches {
    /// Whether lines are wanted.
    lines: bool,
    scripts: v8::Scripts,
    functions: v8::Functions,
    heads: v8::Heads,
    methods: hotspot::Methods,
}

/// How functions are read that are told by more than their address, or of which more than lines is read.
#[derive(Clone, Copy)]
struct Reading {
    /// Whether anything is to be read of a function, of which this was told. `lines`: whether lines are wanted.
    is_worth: fn(&FunctionEvent, &RuntimeFunction, lines: bool) -> bool,
    /// Whether a function is still the one that was reported.
    is_same: fn(&FunctionEvent, &TargetMemory, &mut Caches) -> bool,
    /// Adds addresses at which is read: first those of what tells whether it is the same, and in each further step those that were found there.
    places: fn(&FunctionEvent, &TargetMemory, &mut Caches, step: usize, places: &mut Vec<u64>),
    /// Reads a function that has a number among those that are read together. The last is what was told of it.
    read:
        fn(&FunctionEvent, usize, &TargetMemory, &mut Caches, &RuntimeFunction) -> RuntimeFunction,
}

/// Meaning of positions in functions.
#[derive(Clone, Copy)]
enum Lines {
    /// Lines.
    Position,
    /// Places in code, whose lines are read from the process while it lives.
    Read(fn(&TargetMemory, function: u64) -> FunctionLines),
}

/// The runtimes that a file of this name is likely to have, so that it is worth to be looked at early. What is in it, its content
/// says.
pub(crate) fn likely_in(file_name: &OsStr) -> RuntimeKinds {
    let is_in = |part: &str| memmem::find(file_name.as_bytes(), part.as_bytes()).is_some();
    let likely = RUNTIMES
        .iter()
        .filter(|runtime| is_in(runtime.in_file_names));
    likely.fold(RuntimeKinds::NONE, |all, runtime| {
        all.with(runtime.kind.into())
    })
}

/// All runtimes, in the order of their kinds.
static RUNTIMES: [RuntimeSpec; RuntimeKind::ALL.len()] = [
    RuntimeSpec {
        kind: RuntimeKind::CPython,
        in_file_names: "python",
        detect: cpython::detect,
        separator: ".",
        unnamed: "<anonymous>",
        is_nameless: cpython::is_nameless,
        lines: Lines::Read(cpython::lines),
        hidden_frames: HiddenFrames::around_loop(cpython::HIDDEN_FRAMES),
        complete: None,
        reading: None,
    },
    RuntimeSpec {
        kind: RuntimeKind::Perl,
        in_file_names: "perl",
        detect: perl::detect,
        separator: "::",
        unnamed: "<file>",
        is_nameless: perl::is_nameless,
        lines: Lines::Position,
        hidden_frames: HiddenFrames::around_loop(perl::HIDDEN_FRAMES),
        complete: None,
        reading: None,
    },
    RuntimeSpec {
        kind: RuntimeKind::Php,
        in_file_names: "php",
        detect: php::detect,
        separator: "::",
        unnamed: "<file>",
        is_nameless: php::is_nameless,
        lines: Lines::Position,
        hidden_frames: HiddenFrames::around_loop(php::HIDDEN_FRAMES),
        complete: None,
        reading: None,
    },
    RuntimeSpec {
        kind: RuntimeKind::Ruby,
        in_file_names: "ruby",
        detect: ruby::detect,
        separator: "#",
        unnamed: "<anonymous>",
        is_nameless: ruby::is_nameless,
        lines: Lines::Read(ruby::lines),
        hidden_frames: HiddenFrames::around_loop(ruby::HIDDEN_FRAMES),
        complete: Some(ruby::complete),
        reading: None,
    },
    RuntimeSpec {
        kind: RuntimeKind::LuaJit,
        in_file_names: "luajit",
        detect: luajit::detect,
        separator: ".",
        unnamed: "<anonymous>",
        is_nameless: |_| true,
        lines: Lines::Read(luajit::lines),
        hidden_frames: HiddenFrames::around_loop(luajit::HIDDEN_FRAMES),
        complete: Some(luajit::complete),
        reading: None,
    },
    RuntimeSpec {
        kind: RuntimeKind::Lua,
        in_file_names: "lua",
        detect: lua::detect,
        separator: ".",
        unnamed: "<anonymous>",
        is_nameless: |_| true,
        lines: Lines::Read(lua::lines),
        hidden_frames: HiddenFrames::around_loop(lua::HIDDEN_FRAMES),
        complete: Some(lua::complete),
        reading: None,
    },
    RuntimeSpec {
        kind: RuntimeKind::V8,
        in_file_names: "node",
        detect: v8::detect,
        separator: ".",
        unnamed: v8::UNNAMED,
        is_nameless: |_| false,
        lines: Lines::Position,
        hidden_frames: v8::HIDDEN_FRAMES,
        complete: Some(v8::complete),
        reading: Some(Reading {
            is_worth: v8::is_worth,
            is_same: v8::is_same,
            places: v8::places,
            read: v8::read,
        }),
    },
    RuntimeSpec {
        kind: RuntimeKind::HotSpot,
        in_file_names: "libjvm",
        detect: hotspot::detect,
        separator: ".",
        unnamed: hotspot::UNNAMED,
        is_nameless: |_| false,
        lines: Lines::Position,
        hidden_frames: hotspot::HIDDEN_FRAMES,
        complete: Some(hotspot::complete),
        reading: Some(Reading {
            is_worth: hotspot::is_worth,
            is_same: hotspot::is_same,
            places: hotspot::places,
            read: hotspot::read,
        }),
    },
];

const _: () = {
    let mut index = 0;
    while index < RUNTIMES.len() {
        assert!(RUNTIMES[index].kind as usize == index);
        index += 1;
    }
};

fn row(kind: RuntimeKind) -> &'static RuntimeSpec {
    &RUNTIMES[kind as usize]
}

/// The runtime in a file, if there is one.
pub fn detect(file: &File) -> Option<Detected> {
    let image = Image::read(file).ok()?;
    RUNTIMES.iter().find_map(|row| (row.detect)(&image))
}

/// See [`HiddenFrames`].
pub fn hidden_frames(kind: RuntimeKind) -> HiddenFrames {
    row(kind).hidden_frames
}

/// The common value, if all candidates agree.
fn only<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// A value that occurs less often is not believed.
const MIN_TIMES: u32 = 5;

/// The value that occurs often, and at least twice as often as any other.
fn commonest<T: Copy + Eq>(times: &HashMap<T, u32>) -> Option<T> {
    let (value, most) = times.iter().max_by_key(|(_, times)| **times)?;
    let others = times.iter().filter(|(other, _)| *other != value);
    let next = others.map(|(_, times)| *times).max().unwrap_or(0);
    (*most >= MIN_TIMES && *most >= next.saturating_mul(2)).then_some(*value)
}

/// A string of the process's as text. What is no text is replaced, and what is missing is told.
fn text(copied: &crate::process::CopiedText) -> String {
    let bytes = &copied.bytes;
    let from_units = |width: usize| -> String {
        let units = bytes.chunks_exact(width).map(|unit| {
            let code = unit
                .iter()
                .rev()
                .fold(0u32, |code, byte| code << 8 | u32::from(*byte));
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
        });
        units.collect()
    };
    let text = match Encoding::from_code(copied.encoding) {
        Some(Encoding::Latin1) => from_units(1),
        Some(Encoding::Ucs2) => from_units(2),
        Some(Encoding::Ucs4) => from_units(4),
        Some(Encoding::CString | Encoding::Bytes) | None => {
            // Bytes behind a NUL tell the runtime's own names apart, and are not for readers.
            let end = bytes.iter().position(|byte| *byte == 0);
            String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
        }
    };
    match (copied.lacks_beginning, copied.lacks_end) {
        (true, _) => format!("…{text}"),
        (_, true) => format!("{text}…"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::CopiedText;
    use std::fs::File;

    #[test]
    fn names_of_files_tell_which_runtimes_are_likely() {
        let likely = |name: &str| likely_in(OsStr::new(name));
        assert_eq!(likely("libc.so.6"), RuntimeKinds::NONE);
        assert_eq!(likely("libjvm.so"), RuntimeKind::HotSpot.into());
        let both = RuntimeKinds::from(RuntimeKind::Lua).with(RuntimeKind::LuaJit.into());
        assert_eq!(likely("libluajit-5.1.so.2"), both);
    }

    #[test]
    fn other_programs_are_no_runtime() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let image = Image::read(&file).unwrap();
        for runtime in &RUNTIMES {
            assert_eq!((runtime.detect)(&image), None, "{:?}", runtime.kind);
        }
    }

    #[test]
    fn only_what_is_one_is_believed() {
        assert_eq!(only::<u64>([].into_iter()), None);
        assert_eq!(only([7, 7].into_iter()), Some(7));
        assert_eq!(only([7, 8].into_iter()), None);
    }

    #[test]
    fn only_what_is_used_most_is_believed() {
        let uses = |all: &[(u64, u32)]| commonest::<u64>(&all.iter().copied().collect());
        assert_eq!(uses(&[(8, 34), (16, 17), (24, 1)]), Some(8));
        assert_eq!(uses(&[(8, 34), (16, 18)]), None);
        assert_eq!(uses(&[(8, 4)]), None);
        assert_eq!(uses(&[]), None);
    }

    #[test]
    fn strings_of_every_encoding_become_text() {
        let copied = |bytes: &[u8], encoding: Encoding| {
            text(&CopiedText {
                bytes: bytes.into(),
                encoding: encoding as u8,
                lacks_beginning: false,
                lacks_end: false,
            })
        };
        assert_eq!(copied(b"caf\xe9", Encoding::Latin1), "café");
        assert_eq!(copied(&[0x42, 0x04, 0x3e, 0x04], Encoding::Ucs2), "то");
        assert_eq!(copied(&[0x40, 0xf6, 1, 0], Encoding::Ucs4), "🙀");
        assert_eq!(copied(&[0x00, 0xd8], Encoding::Ucs2), "\u{fffd}");
        assert_eq!(copied("été".as_bytes(), Encoding::Bytes), "été");
        assert_eq!(copied(b"\xff", Encoding::CString), "\u{fffd}");
        let anonymous = b"class@anonymous\0/srv/a.php:3$0";
        assert_eq!(copied(anonymous, Encoding::Bytes), "class@anonymous");
    }
}
