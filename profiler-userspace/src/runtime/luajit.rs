//! LuaJIT 2.1: how it is recognized, what its functions are called.
//!
//! In: an object's file. Out: a descriptor. The interpreter is one piece of assembly, with one entry in `.eh_frame` that says
//! how large its native frame is. Where a `global_State` keeps the running `lua_State`, its instructions say, which differ
//! from build to build.

mod function;
mod names;
mod proto;

pub(super) use function::{complete, lines};

use super::arch::luajit::{FRAME_BYTES, current_state};
use super::function_bounds::largest_with_frame;
use super::{Descriptor, Detected};
use crate::object::Image;
use profiler_common::runtime::{DESCRIPTOR_WORDS, RuntimeKind, first_word, luajit::at};

/// The native functions that are the interpreter, or stand directly around it.
pub(super) const HIDDEN_FRAMES: &[&str] = &[
    "lj_BC_FUNCC",
    "lj_vm_call",
    "lj_vm_pcall",
    "lj_vm_cpcall",
    "lj_vm_resume",
    "lj_vm_ffi_callback",
    "lj_vm_ffi_call",
    "lj_ccall_func",
    "lj_ccallback_enter",
    "lj_cf_ffi_meta___call",
    "lj_cf_coroutine_resume",
    "lua_call",
    "lua_pcall",
    "lua_cpcall",
    "lua_resume",
];

/// Recognizes LuaJIT by what it exports.
pub(super) fn detect(image: &Image<'_>) -> Option<Detected> {
    let set_mode = image.symbol("luaJIT_setmode")?;
    // Since 2.1.
    let is_known = image.symbol("luaJIT_profile_start").is_some();
    Some(Detected {
        kind: RuntimeKind::LuaJit,
        name: format!("LuaJIT 2.{}", u8::from(is_known)),
        words: if is_known {
            words(image, set_mode.address)
        } else {
            Err("its version is not known")
        },
    })
}

/// How far the parts of the library lie from each other, at most.
const NEAR: u64 = 1 << 20;
/// The interpreter is no smaller, and not much larger.
const SMALLEST: u64 = 8 << 10;
const MAX: u64 = 64 << 10;

fn words(image: &Image<'_>, near: u64) -> Result<Box<Descriptor>, &'static str> {
    let near = near.saturating_sub(NEAR)..near.saturating_add(NEAR);
    let interpreter = largest_with_frame(image, near, FRAME_BYTES)
        .filter(|addresses| (SMALLEST..MAX).contains(&(addresses.end - addresses.start)))
        .ok_or("its interpreter is not one with 64-bit pointers")?;
    let mut words: Descriptor = [0; DESCRIPTOR_WORDS];
    words[0] = first_word(RuntimeKind::LuaJit, 2 << 16 | 1 << 8);
    [words[at::LOOP], words[at::LOOP + 1]] = [interpreter.start, interpreter.end];
    let mut code = vec![0; (interpreter.end - interpreter.start) as usize];
    image
        .copy(interpreter.start, &mut code)
        .ok_or("its interpreter cannot be read")?;
    words[at::CURRENT_STATE] =
        current_state(&code).ok_or("where it keeps the running state is not known")?;
    Ok(Box::new(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn an_installed_luajit_is_recognized() {
        let Ok(file) = File::open("/usr/bin/luajit") else {
            return;
        };
        let detected = detect(&Image::read(&file).unwrap()).unwrap();
        assert_eq!(
            (detected.kind, &*detected.name),
            (RuntimeKind::LuaJit, "LuaJIT 2.1")
        );
        let words = detected.words.unwrap();
        assert!(words[at::LOOP + 1] - words[at::LOOP] > SMALLEST);
        assert_eq!(words[at::CURRENT_STATE], 0x170);
    }
}
