//! Methods: what they are called and where they are.

use super::{
    HotSpot,
    blob::Blob,
    layout::{CALL_STUB, Offsets},
};
use crate::{
    intern::Hash,
    runtime::{COMPILED, Encoding, FunctionInfo, Process, RemoteString, Strings, check_of},
    walk::is_user_address,
};

/// Lowest bits of a constant that are not part of its address.
const FLAGS: u64 = 1;

impl FunctionInfo for HotSpot {
    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        if function & COMPILED != 0 {
            let blob = Blob::read(process, function & !COMPILED)?;
            return Some(compiled_check(&blob));
        }
        let [constant] = process.read(function.wrapping_add(Offsets::const_method(process)))?;
        Some(method_check(constant))
    }

    /// `extra`: the address of the `Method`.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        if function == CALL_STUB {
            return Some(Strings::default());
        }
        let method = if function & COMPILED != 0 {
            let blob = Blob::read(process, function & !COMPILED)?;
            if !blob.is_method() {
                return Some(stub(&blob));
            }
            let [method] = process.read(blob.address.wrapping_add(Offsets::method(process)))?;
            method
        } else {
            function
        };
        let [constant] = process.read(method.wrapping_add(Offsets::const_method(process)))?;
        let [pool] = process.read(constant.wrapping_add(Offsets::constants(process)))?;
        let symbol = |number: u64| {
            let place = pool
                .wrapping_add(Offsets::constant_pool_bytes(process))
                .wrapping_add(8 * (number & 0xffff));
            let [symbol] = process.read(place)?;
            piece(process, symbol & !FLAGS)
        };
        let [name] = process.read(constant.wrapping_add(Offsets::name_index(process)))?;
        let [file] = process.read(pool.wrapping_add(Offsets::file_index(process)))?;
        let [class] = process.read(pool.wrapping_add(Offsets::pool_holder(process)))?;
        let [class] = process.read(class.wrapping_add(Offsets::class_name(process)))?;
        Some(Strings {
            owner: piece(process, class).unwrap_or_default(),
            name: symbol(name)?,
            // Number zero is no constant.
            file: if file & 0xffff == 0 {
                RemoteString::default()
            } else {
                symbol(file).unwrap_or_default()
            },
            first_line: 0,
            extra: method,
        })
    }
}

/// Tells methods at one address apart.
#[inline(always)]
pub(super) fn method_check(const_method: u64) -> u32 {
    check_of(Hash::new(1).with(const_method))
}

/// Tells blobs at one address apart. Stubs stay.
#[inline(always)]
pub(super) fn compiled_check(blob: &Blob) -> u32 {
    if blob.is_method() { blob.compile_id } else { 0 }
}

/// The name of a stub: its blob's.
#[inline(always)]
fn stub(blob: &Blob) -> Strings {
    Strings {
        name: RemoteString::new(blob.name, 0, Encoding::CString),
        ..Strings::default()
    }
}

/// Where the characters of a `Symbol` are.
#[inline(always)]
fn piece(process: &impl Process, symbol: u64) -> Option<RemoteString> {
    if !is_user_address(symbol) {
        return None;
    }
    let [length] = process.read(symbol.wrapping_add(Offsets::symbol_length(process)))?;
    Some(RemoteString::new(
        symbol.wrapping_add(Offsets::symbol_body(process)),
        length as u32 & 0xffff,
        Encoding::Bytes,
    ))
}
