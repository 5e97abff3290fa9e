//! The kernel's own name for one of its addresses, and its code.
//!
//! Reading `/proc/kallsyms` costs user space tens of milliseconds and megabytes, and a profile needs a few hundred names.
//! The kernel's own printing knows all of them: functions, modules, BPF programs.
//! Code is read from memory: files have it as it was before the kernel moved and patched it, and few kernels have `/dev/mem`.
#![expect(unsafe_code, reason = "the helpers take raw pointers")]

use crate::platform::maps::SYMBOL;
use aya_ebpf::helpers::generated::{bpf_probe_read_kernel, bpf_snprintf};
use profiler_common::abi::{SYMBOL_BYTES, TEXT_BYTES};

/// `%pS`: the symbol that contains an address, and how far into it that is (`Documentation/core-api/printk-formats.rst`).
#[unsafe(no_mangle)]
static SYMBOL_FORMAT: [u8; 4] = *b"%pS\0";

/// Prints the name of the symbol at `address` into the map, NUL-terminated.
#[inline(always)]
pub(crate) fn name(address: u64) {
    let Some(name) = SYMBOL.get_ptr_mut(0) else {
        return;
    };
    let arguments = [address];
    // SAFETY: the map's value has as many bytes as said; the format is NUL-terminated and lies in a
    // read-only map, as the helper asks; one argument stands for one conversion.
    unsafe {
        bpf_snprintf(
            name.cast(),
            SYMBOL_BYTES as u32,
            SYMBOL_FORMAT.as_ptr().cast(),
            arguments.as_ptr().cast_mut().cast(),
            size_of_val(&arguments) as u32,
        )
    };
}

/// Copies the code at `address` into the same map, and behind it whether that could be done.
#[inline(always)]
pub(crate) fn read_text(address: u64) {
    let Some(text) = SYMBOL.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: the map's value has more bytes than are copied, and one behind them; the helper checks the source.
    unsafe {
        let failed = bpf_probe_read_kernel(text.cast(), TEXT_BYTES as u32, address as *const _);
        (*text)[TEXT_BYTES] = u8::from(failed == 0);
    }
}
