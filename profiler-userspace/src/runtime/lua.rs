//! PUC Lua 5.3 and 5.4: how it is recognized, what its functions are called.
//!
//! In: an object's file. Out: a descriptor. The version is that of `lua_ident`, which is exported. The loop, `luaV_execute`, is
//! not: it is the largest function near those that are. In which registers it keeps what, its first instructions say;
//! offsets are those of the versions' headers.

mod function;
mod names;
mod proto;

pub(super) use function::{complete, complete_with, lines, twice};

use super::cold::{cold_part, largest};
use super::image::Image;
use super::{Detected, Words};
use profiler_common::runtime::{DESCRIPTOR_WORDS, RuntimeKind, first_word, lua::at};

/// The native functions that are the loop, or stand directly around it.
pub(super) const GLUE: &[&str] = &[
    "luaV_execute",
    "luaV_finishget",
    "luaV_finishset",
    "luaV_finishOp",
    "luaD_call",
    "luaD_callnoyield",
    "luaD_precall",
    "luaD_pretailcall",
    "luaD_rawrunprotected",
    "luaD_pcall",
    "luaD_throw",
    "luaT_callTM",
    "luaT_callTMres",
    "luaT_trybinTM",
    "luaT_callorderTM",
    "ccall",
    "precallC",
    "unroll",
    "resume",
    "f_call",
    "finishpcallk",
    "lua_callk",
    "lua_pcallk",
    "lua_resume",
];

/// What differs from version to version.
struct Version {
    minor: u8,
    words: &'static [(usize, u64)],
}

const VERSIONS: &[Version] = &[
    Version {
        minor: 3,
        words: &[
            (at::STATE_CALL, 32),
            (at::CALL_INSTRUCTION, 5),
            (at::CALL_STATUS, 64),
            (at::STATUS_SHIFT, 16),
            (at::FRESH, 8),
            (at::PROTO_TYPE, 9),
            (at::PROTO_CODE, 7),
            (at::LINE_SHIFT, 0),
            (at::PROTO_SOURCE, 104),
        ],
    },
    Version {
        minor: 4,
        words: &[
            (at::CALL_INSTRUCTION, 4),
            (at::CALL_STATUS, 56),
            (at::STATUS_SHIFT, 48),
            (at::FRESH, 4),
            (at::PROTO_TYPE, 10),
            (at::PROTO_CODE, 8),
            (at::LINE_SHIFT, 32),
            (at::PROTO_SOURCE, 112),
        ],
    },
];

/// Recognizes Lua by what it exports.
pub(super) fn detect(image: &Image<'_>) -> Option<Detected> {
    let create = image.symbol("lua_newstate")?;
    let minor = minor(image)?;
    let words = match VERSIONS.iter().find(|version| version.minor == minor) {
        Some(version) => words(image, create.address, version),
        None => Err("its version is not known"),
    };
    Some(Detected {
        kind: RuntimeKind::Lua,
        name: format!("Lua 5.{minor}"),
        words,
    })
}

/// The minor version: `$LuaVersion: Lua 5.4.4  Copyright …`.
fn minor(image: &Image<'_>) -> Option<u8> {
    const BEFORE: &[u8] = b"Lua 5.";
    let mut text = [0; 32];
    image.copy(image.symbol("lua_ident")?.address, &mut text)?;
    let places = text.windows(BEFORE.len() + 1);
    let digit = places
        .filter_map(|window| window.strip_prefix(BEFORE))
        .find_map(|rest| rest.first().filter(|digit| digit.is_ascii_digit()))?;
    Some(digit - b'0')
}

/// How far the parts of the library lie from each other, at most.
const NEAR: u64 = 256 << 10;
/// A loop of 80 instructions is no smaller.
const SMALLEST: u64 = 4 << 10;

fn words(image: &Image<'_>, create: u64, version: &Version) -> Result<Box<Words>, &'static str> {
    let near = create.saturating_sub(NEAR)..create.saturating_add(NEAR);
    let execute = largest(image, near)
        .filter(|function| function.end - function.start >= SMALLEST)
        .ok_or("where its loop is is not known")?;
    let mut words: Words = [0; DESCRIPTOR_WORDS];
    words[0] = first_word(RuntimeKind::Lua, 5 << 16 | u32::from(version.minor) << 8);
    for &(place, word) in version.words {
        words[place] = word;
    }
    put_registers(image, execute.start, &mut words)
        .ok_or("its loop keeps its calls where they cannot be followed")?;
    [words[at::LOOP], words[at::LOOP + 1]] = [execute.start, execute.end];
    if let Some(cold) = cold_part(image, execute.start) {
        [words[at::LOOP + 2], words[at::LOOP + 3]] = [cold.start, cold.end];
    }
    Ok(Box::new(words))
}

/// `%rbx` and `%rbp`, as instructions number them.
const RBX: u8 = 3;
const RBP: u8 = 5;

/// Says in which registers the loop keeps its `CallInfo` and its next instruction: the first instruction that loads
/// `savedpc` names the former, the first that steps over an instruction the latter.
fn put_registers(image: &Image<'_>, execute: u64, words: &mut Words) -> Option<()> {
    /// The instructions in front of the first of Lua's.
    const BYTES: usize = 160;
    let mut code = [0; BYTES];
    image.copy(execute, &mut code)?;
    // `mov %rsp, %rbp`: the register is a frame pointer.
    let is_frame_pointer = code[..32]
        .windows(3)
        .any(|bytes| bytes == [0x48, 0x89, 0xe5]);
    let saved = (8 * words[at::CALL_INSTRUCTION]) as u8;
    let mut loads = code.windows(4).enumerate();
    let (place, register) = loads.find_map(|(place, bytes)| match *bytes {
        // mov disp8(%rbx or %rbp), …
        [0x48 | 0x4c, 0x8b, mode, by] if mode & 0xc0 == 0x40 && by == saved => {
            let base = mode & 7;
            let is_followed = base == RBX || base == RBP && !is_frame_pointer;
            is_followed.then_some((place, base))
        }
        _ => None,
    })?;
    words[at::BODY] = execute.checked_add(place as u64)?;
    words[at::CALL_REGISTER] = dwarf(register);
    if version_keeps_instruction(words) {
        let step = code[place..].windows(4).find_map(|bytes| match *bytes {
            // lea 4(…), …
            [prefix @ 0x48..=0x4f, 0x8d, mode, 4] if mode & 0xc0 == 0x40 => {
                Some((mode >> 3 & 7) | (prefix & 4) << 1)
            }
            _ => None,
        });
        words[at::INSTRUCTION_REGISTER] = step.map_or(0, |register| dwarf(register) + 1);
    }
    Some(())
}

/// Since 5.4 the loop has its next instruction in a variable.
fn version_keeps_instruction(words: &Words) -> bool {
    words[at::STATE_CALL] == 0
}

/// The DWARF number of a register (System V ABI, AMD64 supplement, figure 3.36).
fn dwarf(register: u8) -> u64 {
    const FIRST: [u64; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    let others = u64::from(register);
    FIRST.get(usize::from(register)).copied().unwrap_or(others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn installed_luas_are_recognized() {
        for (path, name, register) in [
            ("/usr/bin/lua5.3", "Lua 5.3", 0),
            ("/usr/bin/lua5.4", "Lua 5.4", 14),
        ] {
            let Ok(file) = File::open(path) else { continue };
            let detected = detect(&Image::read(&file).unwrap()).unwrap();
            assert_eq!((detected.kind, &*detected.name), (RuntimeKind::Lua, name));
            let words = detected.words.unwrap();
            assert!(words[at::LOOP + 1] - words[at::LOOP] >= SMALLEST);
            let begin = words[at::LOOP];
            assert!((begin + 16..begin + 80).contains(&words[at::BODY]));
            assert_eq!(words[at::CALL_REGISTER], 6);
            assert_eq!(words[at::INSTRUCTION_REGISTER], register);
        }
    }

    #[test]
    fn other_objects_are_no_lua() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(detect(&Image::read(&file).unwrap()), None);
    }
}
