//! The kernel's own name for one of its addresses.
//!
//! Reading `/proc/kallsyms` costs user space tens of milliseconds and megabytes, and a profile needs a few hundred names.
//! The kernel's own printing knows all of them: functions, modules, BPF programs.
#![expect(unsafe_code, reason = "the printing helper takes raw pointers")]

use crate::platform::maps::SYMBOL;
use aya_ebpf::helpers::generated::bpf_snprintf;
use profiler_common::abi::SYMBOL_BYTES;

/// `%ps`: the symbol that contains an address, without the offset (`Documentation/core-api/printk-formats.rst`).
#[unsafe(no_mangle)]
static SYMBOL_FORMAT: [u8; 4] = *b"%ps\0";

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
