//! Reads of memory that may not be there.
#![expect(unsafe_code, reason = "the kernel's reading helpers take raw pointers")]

use crate::{
    events::scratch::REPORT_WORDS,
    platform::word::Word,
    walk::{kstack_scratch::STACK_WORDS, runtime::scratch::FETCHED_PLACES},
};
use aya_ebpf::cty::c_void;
use aya_ebpf::helpers::{
    bpf_probe_read_kernel,
    generated::{
        bpf_probe_read_kernel as bpf_copy_kernel, bpf_probe_read_kernel_str, bpf_probe_read_user,
        bpf_probe_read_user_str,
    },
};
use core::{hint::black_box, mem::MaybeUninit};
use profiler_common::{
    abi::{
        FUNCTION_EVENT_WORDS, FUNCTION_FILE_BYTES, FUNCTION_NAME_BYTES, MAPPING_EVENT_WORDS,
        NAME_BYTES, NAME_WORDS, OWNER_BYTES, PATH_BYTES,
    },
    walk::{Memory, ahead::AHEAD, maple::PIVOTS},
};

/// The memory of the process that is running.
pub(crate) struct UserMemory;

impl Memory for UserMemory {
    #[inline(always)]
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        // Not zeros: to write these would be a call that takes stack of its own.
        let mut words = MaybeUninit::<[u64; N]>::uninit();
        // SAFETY: the destination is as large as said; the source is checked by the helper.
        let failed = unsafe {
            bpf_probe_read_user(
                words.as_mut_ptr().cast(),
                size_of::<[u64; N]>() as u32,
                address as *const _,
            )
        };
        if failed != 0 {
            return None;
        }
        // SAFETY: the helper has filled it; any bytes are words.
        Some(unsafe { words.assume_init() })
    }
}

/// Copies words of the running process's stack; false if any of them is unreadable.
#[inline(always)]
pub(crate) fn copy_user_stack(into: &'static [Word; AHEAD], address: u64, bytes: u64) -> bool {
    // Hidden from the compiler, which would check another number than the one that is used.
    let bytes = black_box(bytes);
    if bytes > 8 * AHEAD as u64 {
        return false;
    }
    // SAFETY: there is room for as many bytes; the source is checked by the helper.
    let failed =
        unsafe { bpf_probe_read_user(into[0].as_ptr().cast(), bytes as u32, address as *const _) };
    failed == 0
}

/// Copies bytes of the running process's memory to the beginning of `into`; false if there is no room or any is unreadable.
#[inline(always)]
pub(crate) fn fetch(into: &'static [Word; FETCHED_PLACES], address: u64, bytes: u64) -> bool {
    // Hidden from the compiler, which would check another number than the one that is used.
    let bytes = black_box(bytes);
    if bytes > size_of_val(into) as u64 {
        return false;
    }
    // SAFETY: the destination is at least as large as said, and made to be written through shared references; the source is
    // checked by the helper.
    let failed = unsafe {
        bpf_probe_read_user(
            into.as_ptr().cast::<c_void>().cast_mut(),
            bytes as u32,
            address as *const _,
        )
    };
    failed == 0
}

/// Reads a value in kernel memory; zero if the address is invalid.
#[inline(always)]
pub(crate) fn kernel<T: Copy + Default>(address: u64) -> T {
    // SAFETY: the helper checks the address; `T` is an integer, for which any bytes are a value.
    unsafe { bpf_probe_read_kernel(address as *const T) }.unwrap_or_default()
}

/// Reads consecutive words in kernel memory; none if any of them is unreadable.
#[inline(always)]
pub(crate) fn kernel_words<const N: usize>(address: u64) -> Option<[u64; N]> {
    // SAFETY: the helper checks the address; any bytes are words.
    unsafe { bpf_probe_read_kernel(address as *const [u64; N]) }.ok()
}

/// Copies text in kernel memory up to its NUL or the end of the buffer. Returns the number of bytes without the NUL; zero
/// if it is unreadable.
#[inline(always)]
pub(crate) fn copy_text(into: &'static [Word; NAME_WORDS], address: u64) -> u64 {
    const BYTES: u32 = (NAME_WORDS * 8) as u32;
    // SAFETY: there is room for as many bytes; the source is checked by the helper.
    let copied =
        unsafe { bpf_probe_read_kernel_str(into[0].as_ptr().cast(), BYTES, address as *const _) };
    if copied <= 0 || copied > i64::from(BYTES) {
        return 0;
    }
    copied as u64 - 1
}

/// Copies the pivots of a node of a maple tree.
#[inline(always)]
pub(crate) fn copy_pivots(into: &'static [Word; PIVOTS + 1], address: u64) -> Option<()> {
    const BYTES: u32 = (PIVOTS * 8) as u32;
    // SAFETY: there is room for as many bytes; the source is checked by the helper.
    let failed = unsafe { bpf_copy_kernel(into[0].as_ptr().cast(), BYTES, address as *const _) };
    (failed == 0).then_some(())
}

/// Copies the first `bytes` bytes of the kernel stack at an address.
#[inline(always)]
pub(crate) fn copy_stack(
    into: &'static [Word; STACK_WORDS],
    address: u64,
    bytes: u64,
) -> Option<()> {
    // Hidden from the compiler, which knows the bound and would drop the comparison the verifier needs.
    let bytes = black_box(bytes);
    if bytes > 8 * STACK_WORDS as u64 {
        return None;
    }
    // SAFETY: there is room for as many bytes; the source is checked by the helper.
    let failed =
        unsafe { bpf_copy_kernel(into[0].as_ptr().cast(), bytes as u32, address as *const _) };
    (failed == 0).then_some(())
}

/// Appends a name in kernel memory to the `length` bytes of the path in a mapping event. Returns its length in bytes, NUL
/// included.
#[inline(always)]
pub(crate) fn copy_name(
    record: &'static [Word; REPORT_WORDS],
    length: usize,
    name: u64,
) -> Option<usize> {
    // Hidden from the compiler, which would compare before it has the number that is used.
    let length = black_box(length);
    if length >= PATH_BYTES {
        return None;
    }
    // SAFETY: behind `PATH_BYTES` bytes of path there is room for one name; the source is checked by the
    // helper.
    let copied = unsafe {
        let path = record[MAPPING_EVENT_WORDS].as_ptr().cast::<u8>();
        bpf_probe_read_kernel_str(path.add(length).cast(), NAME_BYTES as u32, name as *const _)
    };
    (1..=NAME_BYTES as i64)
        .contains(&copied)
        .then_some(copied as usize)
}

/// Strings may begin so many bytes behind the record of a function.
const STRINGS_BYTES: usize = OWNER_BYTES + FUNCTION_NAME_BYTES;

/// The longest string, its NUL included.
const STRING_BYTES: usize = FUNCTION_FILE_BYTES;
const _: () = assert!(FUNCTION_EVENT_WORDS * 8 + STRINGS_BYTES + STRING_BYTES <= REPORT_WORDS * 8);

/// Where a string goes that begins `length` bytes behind the record of a function.
#[inline(always)]
fn string_place(record: &'static [Word; REPORT_WORDS], length: u64) -> Option<*mut c_void> {
    // Hidden from the compiler, which would compare before it has the number that is used.
    let length = black_box(length as usize);
    if length > STRINGS_BYTES {
        return None;
    }
    // SAFETY: so far behind the record there is room for the longest string.
    let place = unsafe {
        let strings = record[FUNCTION_EVENT_WORDS].as_ptr().cast::<u8>();
        strings.add(length)
    };
    Some(place.cast())
}

/// Appends bytes of the running process, at most [`STRING_BYTES`], to the `length` bytes behind the record of a function;
/// false if they cannot be read.
#[inline(always)]
pub(crate) fn copy_user(
    record: &'static [Word; REPORT_WORDS],
    length: u64,
    address: u64,
    bytes: u64,
) -> bool {
    let Some(place) = string_place(record, length) else {
        return false;
    };
    // As above.
    let bytes = black_box(bytes);
    if bytes > STRING_BYTES as u64 {
        return false;
    }
    // SAFETY: there is room for as many bytes; the source is checked by the helper.
    unsafe { bpf_probe_read_user(place, bytes as u32, address as *const _) == 0 }
}

/// As [`copy_user`], up to a NUL, of at most `most` bytes with it. Returns the number of bytes without it; zero if they cannot
/// be read.
#[inline(always)]
pub(crate) fn copy_user_text(
    record: &'static [Word; REPORT_WORDS],
    length: u64,
    address: u64,
    most: u64,
) -> u64 {
    let Some(place) = string_place(record, length) else {
        return 0;
    };
    let most = black_box(most);
    if most > STRING_BYTES as u64 {
        return 0;
    }
    // SAFETY: as for `copy_user`.
    let copied = unsafe { bpf_probe_read_user_str(place, most as u32, address as *const _) };
    if copied <= 0 || copied > STRING_BYTES as i64 {
        return 0;
    }
    copied as u64 - 1
}

/// The first `bytes` bytes of a record of a mapping; there must be as many.
#[inline(always)]
pub(crate) fn first_bytes(record: &'static [Word; REPORT_WORDS], bytes: usize) -> &'static [u8] {
    // SAFETY: the caller has compared, and so does the verifier. Only a firing that interrupts this one could write to this
    // CPU's scratch memory, and nothing of such a firing is kept.
    unsafe { core::slice::from_raw_parts(record[0].as_ptr().cast(), bytes) }
}
