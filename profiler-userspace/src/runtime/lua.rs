//! PUC Lua 5.3 and 5.4: how it is recognized, what its functions are called.
//!
//! In: an object's file. Out: a descriptor. The version is that of `lua_ident`, which is exported. The loop, `luaV_execute`, is
//! not: it is the largest function near those that are. Where it keeps what, its instructions say; offsets are those of the
//! versions' headers.

mod function;
mod names;
mod proto;

pub(super) use function::{complete, complete_with, lines, twice};

use super::arch;
use super::function_bounds::{cold_part, larger, largest};
use super::{Descriptor, Detected, search};
use crate::object::Image;
use profiler_common::runtime::{DESCRIPTOR_WORDS, RuntimeKind, first_word, lua::at};
use std::ops::Range;

/// The native functions that are the loop, or stand directly around it.
pub(super) const HIDDEN_FRAMES: &[&str] = &[
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

/// Differences between versions.
struct Version {
    minor: u8,
    /// The bits of an instruction that say which it is.
    codes: u32,
    words: &'static [(usize, u64)],
}

const VERSIONS: &[Version] = &[
    Version {
        minor: 3,
        codes: 0x3f,
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
        codes: 0x7f,
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

/// Recognizes Lua by what it exports, or by its text. An object that is linked dynamically and does not import `strcoll`, by which
/// `lvm.c` compares strings, is not searched for text, nor is one that needs the library.
pub(super) fn detect(image: &Image<'_>) -> Option<Detected> {
    let create = image.symbol("lua_newstate");
    let may_be_hidden =
        || image.is_static() || !image.needs("liblua") && image.mentions(&["strcoll"]);
    let minor = match create {
        Some(_) => minor(image).or_else(|| minor_by_text(image))?,
        None if may_be_hidden() => minor_by_text(image)?,
        None => return None,
    };
    let words = match VERSIONS.iter().find(|version| version.minor == minor) {
        Some(version) => words(image, create.map(|create| create.address), version),
        None => Err("this version is not supported"),
    };
    Some(Detected {
        kind: RuntimeKind::Lua,
        name: format!("Lua 5.{minor}"),
        words,
    })
}

/// Text in front of the minor version: `$LuaVersion: Lua 5.4.4  Copyright …`.
const BEFORE: &[u8] = b"$LuaVersion: Lua 5.";

/// The minor version, by `lua_ident`.
fn minor(image: &Image<'_>) -> Option<u8> {
    let mut text = [0; BEFORE.len() + 1];
    image.copy(image.symbol("lua_ident")?.address, &mut text)?;
    digit(text.strip_prefix(BEFORE)?)
}

/// As [`minor`], by text: that of `lua_ident`, which linkers may drop; otherwise the value of `_VERSION`, `Lua 5.4`, if there is a
/// message of the loop's, too (`ldebug.c`). Other programs may tell versions.
fn minor_by_text(image: &Image<'_>) -> Option<u8> {
    const VERSION: &[u8] = b"Lua 5.";
    const MESSAGE: &[u8] = b"attempt to compare two %s values\0";
    let found = |text: &[u8]| {
        let digit = digit(text.strip_prefix(VERSION)?)?;
        (text.get(VERSION.len() + 1) == Some(&0)).then_some(digit)
    };
    let ident = search::find_constant(image, BEFORE, BEFORE.len() + 1, |text| {
        digit(&text[BEFORE.len()..]).is_some()
    });
    if let Some(text) = ident {
        return digit(text.strip_prefix(BEFORE)?);
    }
    let text = search::find_constant(image, VERSION, VERSION.len() + 2, |text| {
        found(text).is_some()
    })?;
    search::find_constant(image, MESSAGE, MESSAGE.len(), |_| true)?;
    found(&text)
}

fn digit(text: &[u8]) -> Option<u8> {
    let digit = text.first()?;
    digit.is_ascii_digit().then(|| digit - b'0')
}

/// How far the parts of the library lie from each other, at most.
const NEAR: u64 = 256 << 10;
/// A loop of 80 instructions is no smaller.
const SMALLEST: u64 = 4 << 10;

fn words(
    image: &Image<'_>,
    create: Option<u64>,
    version: &Version,
) -> Result<Box<Descriptor>, &'static str> {
    let is_loop = |function: &Range<u64>| arch::lua::takes_codes(image, function, version.codes);
    let execute = match create {
        Some(create) => {
            let near = create.saturating_sub(NEAR)..create.saturating_add(NEAR);
            largest(image, near).filter(|function| function.end - function.start >= SMALLEST)
        }
        None => larger(image, SMALLEST).into_iter().find(is_loop),
    };
    let execute = execute.ok_or("where its loop is is not known")?;
    let mut words: Descriptor = [0; DESCRIPTOR_WORDS];
    words[0] = first_word(RuntimeKind::Lua, 5 << 16 | u32::from(version.minor) << 8);
    for &(place, word) in version.words {
        words[place] = word;
    }
    arch::lua::put(image, &execute, &mut words)
        .ok_or("its loop keeps its calls where they cannot be followed")?;
    [words[at::LOOP], words[at::LOOP + 1]] = [execute.start, execute.end];
    if let Some(cold) = cold_part(image, execute.start) {
        [words[at::LOOP + 2], words[at::LOOP + 3]] = [cold.start, cold.end];
    }
    Ok(Box::new(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn installed_luas_are_recognized() {
        // 5.3's loop marks its call by itself, which takes a few instructions.
        for (path, name, register, marking) in [
            ("/usr/bin/lua5.3", "Lua 5.3", 0, 1..64),
            ("/usr/bin/lua5.4", "Lua 5.4", 14, 0..1),
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
            assert!(marking.contains(&words[at::MARKED].saturating_sub(words[at::BODY])));
        }
    }
}
