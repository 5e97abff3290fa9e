//! Ruby 3.1 to 3.3: how it is recognized, which functions are hidden.
//!
//! In: an object's file. Out: a descriptor. Where the thread's variable is found, and which function is the loop, is read out
//! of the object; offsets are those of the version's headers.

mod lines;
mod names;
mod signatures;

pub(super) use lines::lines;
pub(super) use names::complete;

use super::arch::ruby::{LOAD, calls};
use super::function_bounds::{cold_part, extent};
use super::{Descriptor, Detected};
use crate::object::{Image, Symbol};
use profiler_common::runtime::{
    DESCRIPTOR_WORDS, RuntimeKind, first_word,
    ruby::{Access, ClassPath, Length, at},
};
use std::ops::Range;

/// The native functions that are the loop, or stand directly around it.
pub(super) const HIDDEN_FRAMES: &[&str] = &[
    "rb_vm_exec",
    "vm_exec_core",
    "vm_exec",
    "vm_sendish",
    "vm_call_cfunc",
    "vm_call_cfunc_with_frame",
    "vm_call_method",
    "vm_call_method_each_type",
    "vm_call_general",
    "vm_invoke_block",
    "vm_call_opt_call",
    "vm_call_opt_send",
    "invoke_block_from_c_bh",
    "invoke_iseq_block_from_c",
    "rb_vm_invoke_proc",
    "rb_vm_call0",
    "vm_call0_body",
    "rb_vm_call_kw",
    "rb_call0",
    "rb_yield",
    "rb_yield_0",
    "rb_yield_1",
    "rb_yield_values",
    "rb_yield_values2",
    "rb_block_call",
    "rb_iterate0",
    "rb_funcallv",
    "rb_funcallv_kw",
    "rb_funcall",
    "rb_check_funcall",
];

/// The symbol type of thread-local variables (`STT_TLS`).
const THREAD_LOCAL: u8 = 6;

/// Bytes of the smallest loop: it has some hundred instructions of Ruby's, and what else `rb_vm_exec` calls is far smaller.
const SMALLEST: u64 = 8 << 10;

/// Recognizes Ruby by what it exports.
pub(super) fn detect(image: &Image<'_>) -> Option<Detected> {
    let version = image.symbol("ruby_version")?;
    image.symbol("ruby_description")?;
    let mut text = [0; 5];
    image.copy(version.address, &mut text)?;
    let text = std::str::from_utf8(&text).ok()?;
    let (major, rest) = text.split_once('.')?;
    let (minor, _) = rest.split_once('.')?;
    Some(Detected {
        kind: RuntimeKind::Ruby,
        name: format!("Ruby {major}.{minor}"),
        words: match (major, minor) {
            ("3", "1") => words(image, 1, Length::InFlags, 64),
            ("3", "2") => words(image, 2, Length::InFront, 64),
            ("3", "3") => words(image, 3, Length::InFront, 56),
            _ => Err("its version is not known"),
        },
    })
}

/// The offsets of a minor version: where strings keep their length, and bytes of a frame.
fn words(
    image: &Image<'_>,
    minor: u32,
    length: Length,
    frame_bytes: u64,
) -> Result<Box<Descriptor>, &'static str> {
    let mut words: Descriptor = [0; DESCRIPTOR_WORDS];
    words[0] = first_word(RuntimeKind::Ruby, 3 << 16 | minor << 8);
    words[at::LENGTH] = length as u64;
    words[at::FRAME_BYTES] = frame_bytes;
    words[at::LIBC] = image.libc() as u64;
    let object = image.symbol("rb_cObject").map(|object| object.address);
    (words[at::CLASS_PATH], words[at::OBJECT], words[at::LOCAL]) = match (minor, object) {
        (1, Some(object)) => (ClassPath::Variable as u64, object, 8 * 22),
        (3, _) => (ClassPath::Field as u64, 0, 8 * 21),
        _ => (ClassPath::Unknown as u64, 0, 0),
    };
    words[at::OBJECT_SLOT] = image.slot_of("rb_cObject").unwrap_or(0);
    let exported = image.symbol("ruby_current_ec");
    match exported.filter(|context| context.kind == THREAD_LOCAL) {
        Some(context) => put_access(image, context, &mut words),
        None => signatures::context(image).map(|variable| {
            words[at::ACCESS] = Access::Module as u64;
            [words[at::PLACE], words[at::OFFSET]] = variable;
        }),
    }
    .ok_or("how it finds its threads is not known")?;
    let exported = image.symbol("rb_vm_exec");
    let (execute, inner) = match exported.filter(|execute| execute.size > 0) {
        Some(execute) => {
            let end = execute.address.saturating_add(execute.size);
            (execute.address..end, inner_loop(image, execute))
        }
        None => {
            let (execute, inner) =
                signatures::functions(image).ok_or("where its loop is is not known")?;
            (execute, Some(inner))
        }
    };
    put_function(image, execute, at::EXECUTE, &mut words);
    if let Some(inner) = inner {
        words[at::BODY] = body(image, inner.start).unwrap_or(0);
        put_function(image, inner, at::LOOP, &mut words);
    }
    Ok(Box::new(words))
}

fn put_function(image: &Image<'_>, function: Range<u64>, place: usize, words: &mut Descriptor) {
    [words[place], words[place + 1]] = [function.start, function.end];
    if let Some(cold) = cold_part(image, function.start) {
        [words[place + 2], words[place + 3]] = [cold.start, cold.end];
    }
}

/// Says how the variable of a thread is found.
fn put_access(image: &Image<'_>, context: Symbol, words: &mut Descriptor) -> Option<()> {
    if let Some(module) = image.module_word() {
        words[at::ACCESS] = Access::Module as u64;
        words[at::PLACE] = module;
        words[at::OFFSET] = context.address;
        return Some(());
    }
    if !image.is_executable() {
        return None;
    }
    let (bytes, alignment) = image.thread_local()?;
    let bytes = bytes.checked_next_multiple_of(alignment.max(1))?;
    words[at::ACCESS] = Access::Executable as u64;
    words[at::PLACE] = bytes.checked_sub(context.address)?;
    Some(())
}

/// The addresses of `vm_exec_core`, which is not exported: the largest function that `rb_vm_exec` calls.
fn inner_loop(image: &Image<'_>, execute: Symbol) -> Option<Range<u64>> {
    /// More of a function is not looked at.
    const MAX: u64 = 64 << 10;
    let mut code = vec![0; usize::try_from(execute.size.min(MAX)).ok()?];
    image.copy(execute.address, &mut code)?;
    let calls = calls(&code, execute.address).filter_map(|(_, called)| extent(image, called));
    let largest = calls.max_by_key(|function| function.end - function.start)?;
    (largest.end - largest.start >= SMALLEST).then_some(largest)
}

/// Where the body of the loop begins if it keeps its frame and its instruction in the registers that it asks for: behind what loads
/// the instruction.
fn body(image: &Image<'_>, function: u64) -> Option<u64> {
    let mut code = [0; 128];
    image.copy(function, &mut code)?;
    let place = code.windows(LOAD.len()).position(|window| window == LOAD)?;
    function.checked_add((place + LOAD.len()) as u64)
}

/// All whose class is not known, because many methods have one name; see [`complete`] for the others.
pub(super) fn is_nameless(_: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn an_installed_ruby_is_recognized() {
        let Ok(file) = File::open("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1") else {
            return;
        };
        let detected = detect(&Image::read(&file).unwrap()).unwrap();
        assert_eq!(
            (detected.kind, &*detected.name),
            (RuntimeKind::Ruby, "Ruby 3.1")
        );
        let words = detected.words.unwrap();
        assert_eq!(words[at::ACCESS], Access::Module as u64);
        assert!(words[at::EXECUTE + 1] > words[at::EXECUTE]);
        let first = words[at::LOOP];
        assert!(words[at::LOOP + 1] - first > 8 << 10);
        assert!((first + 3..first + 128).contains(&words[at::BODY]));
    }
}
