//! Scopes of compiled code: which calls were compiled into it, at which instruction.
//!
//! In: a blob of compiled code. Out: for each stretch of its instructions, the calls within which they are. HotSpot describes
//! instructions behind which the collector may run (`PcDesc`): a number leads to a scope, and from there to its callers' scopes
//! (`debugInfo.hpp`).

use crate::runtime::TargetMemory;
use profiler_common::runtime::{Described as _, hotspot::Offsets};
use profiler_common::walk::Memory as _;

/// The most bytes of descriptions, and of scopes.
const MAX_BYTES: usize = 1 << 18;
/// Bytes of the numbers at the beginning of a scope that are read, at most.
const HEAD: usize = 15;
/// Memory that can be read ends with one of these.
const PAGE: u64 = 4096;
/// How deep calls are compiled into one another, at most.
const MAX_CALLS: usize = 64;

/// Instructions within the same calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    /// Where they end, from the first instruction.
    pub(super) end: u32,
    /// The methods that were called, and the bytecodes they are at, innermost first, without the method that the code is of.
    pub(super) calls: Vec<(u64, u32)>,
    /// The bytecode of the method that the code is of.
    pub(super) bytecode: u32,
}

/// Where a blob of compiled code has its tables.
pub(super) struct Tables {
    /// Where descriptions begin, and how many bytes they have.
    descriptions: u64,
    bytes: usize,
    /// Where scopes begin.
    scopes: u64,
    /// Where the addresses of methods begin.
    metadata: u64,
}

impl Tables {
    /// Those of a blob.
    pub(super) fn of(memory: &TargetMemory, blob: u64) -> Option<Self> {
        let offsets = Offsets::of(memory);
        let word = |offset: u16| {
            let [word] = memory.read(blob.checked_add(offset.into())?)?;
            Some(word)
        };
        let number = |offset: u16| Some(u64::from(word(offset)? as u32));
        let (start, end) = (
            number(offsets.descriptions)?,
            number(offsets.descriptions_end)?,
        );
        let (base, scopes) = match offsets.immutable_data {
            0 => (blob, word(offsets.scopes)?),
            immutable => {
                let base = word(immutable)?;
                (base, base.checked_add(end)?)
            }
        };
        let metadata = if offsets.metadata != 0 {
            blob.checked_add(number(offsets.metadata)?)?
        } else {
            let relocations = number(offsets.relocation_bytes)?;
            word(offsets.mutable_data)?.checked_add(relocations.next_multiple_of(8))?
        };
        let bytes = usize::try_from(end.checked_sub(start)?).ok()?;
        Some(Self {
            descriptions: base.checked_add(start)?,
            bytes: bytes.min(MAX_BYTES),
            scopes,
            metadata,
        })
    }

    /// Where they lie: the first two pages of the descriptions, and the beginnings of the others.
    pub(super) fn places(&self) -> [u64; 4] {
        let last = self.bytes.min(PAGE as usize).saturating_sub(1) as u64;
        let behind = self.descriptions.saturating_add(last);
        [self.descriptions, behind, self.scopes, self.metadata]
    }
}

/// All descriptions of a blob, in order. `bytecodes`: whether these are wanted; otherwise all are zero.
pub(super) fn descriptions(
    memory: &TargetMemory,
    blob: u64,
    bytecodes: bool,
) -> Option<Vec<Description>> {
    let tables = Tables::of(memory, blob)?;
    let mut table = vec![0; tables.bytes];
    memory.copy(tables.descriptions, &mut table)?;
    let description_bytes = Offsets::of(memory).description_bytes.into();
    let entries = || entries(&table, description_bytes);
    // Those of callers are in front.
    let last = entries().map(|(_, scope)| scope).max()?;
    let scopes = readable(memory, tables.scopes, last.saturating_add(HEAD))?;
    let method = |index: u32| {
        let index = u64::from(index.checked_sub(1)?);
        let [method] = memory.read(tables.metadata.checked_add(8 * index)?)?;
        Some(method)
    };
    let read = |scope| {
        let mut calls = calls(&scopes, scope, least_digit(memory), &method);
        let dropped = calls.iter_mut().filter(|_| !bytecodes);
        dropped.for_each(|(_, bytecode)| *bytecode = 0);
        calls
    };
    Some(join(entries(), read))
}

/// The byte that stands for zero in numbers (`UNSIGNED5`): since 20, none is zero itself.
pub(super) fn least_digit(memory: &TargetMemory) -> u8 {
    u8::from(memory.descriptor(0) >> 24 & 0xffff >= 20)
}

/// So many bytes from an address on, or those up to where the last page of them begins.
fn readable(memory: &TargetMemory, address: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut read = vec![0; bytes.min(MAX_BYTES)];
    if memory.copy(address, &mut read).is_none() {
        let behind = address.checked_add(read.len() as u64)? % PAGE;
        read.truncate(read.len().saturating_sub(behind as usize));
        memory.copy(address, &mut read)?;
    }
    Some(read)
}

/// The end of instructions and the scope of each description in a table, which have so many bytes: two numbers of 32 bits begin
/// them. Those without a scope are left out.
fn entries(table: &[u8], bytes: usize) -> impl Iterator<Item = (u32, usize)> {
    table.chunks_exact(bytes.max(8)).filter_map(|entry| {
        let number = |at: usize| {
            i32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
        };
        let (end, scope) = (u32::try_from(number(0)), usize::try_from(number(4)));
        Some((end.ok()?, scope.ok().filter(|scope| *scope != 0)?))
    })
}

/// Descriptions by where they end, ascending, and what their scopes are read as. Those that say the same are one.
fn join(
    entries: impl Iterator<Item = (u32, usize)>,
    read: impl Fn(usize) -> Vec<(u64, u32)>,
) -> Vec<Description> {
    let mut all: Vec<Description> = Vec::new();
    for (end, scope) in entries {
        if all.last().is_some_and(|last| last.end >= end) {
            continue;
        }
        let mut calls = read(scope);
        let bytecode = calls.pop().map_or(0, |(_, bytecode)| bytecode);
        match all.last_mut() {
            Some(last) if last.calls == calls && last.bytecode == bytecode => last.end = end,
            _ => all.push(Description {
                end,
                calls,
                bytecode,
            }),
        }
    }
    all
}

/// The methods of a scope and its callers'; empty if they cannot be read.
fn calls(
    scopes: &[u8],
    mut scope: usize,
    least: u8,
    method: &impl Fn(u32) -> Option<u64>,
) -> Vec<(u64, u32)> {
    let mut calls = Vec::new();
    while scope != 0 && calls.len() <= MAX_CALLS {
        let Some(mut rest) = scopes.get(scope..) else {
            return Vec::new();
        };
        let mut next = || unsigned(&mut rest, least);
        let (Some(sender), Some(index), Some(bytecode)) = (next(), next(), next()) else {
            return Vec::new();
        };
        let Some(method) = method(index) else {
            return Vec::new();
        };
        // One is added, so that none is negative.
        calls.push((method, bytecode.saturating_sub(1)));
        scope = sender as usize;
    }
    if scope != 0 {
        return Vec::new();
    }
    calls
}

/// A number of up to five digits of base 64, the lowest first; a digit of 192 and more says that another follows.
pub(super) fn unsigned(bytes: &mut &[u8], least: u8) -> Option<u32> {
    let mut number = 0u32;
    for place in 0..5 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let digit = u32::from(byte.checked_sub(least)?);
        number = number.wrapping_add(digit.checked_shl(6 * place)?);
        if *byte < 192 {
            break;
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_up_to_five_digits() {
        let number = |mut bytes: &[u8], least| unsigned(&mut bytes, least);
        assert_eq!(number(&[5], 0), Some(5));
        assert_eq!(number(&[5], 1), Some(4));
        assert_eq!(number(&[200, 1], 0), Some(200 + 64));
        assert_eq!(number(&[0], 1), None);
        assert_eq!(number(&[200], 0), None);
    }

    #[test]
    fn calls_are_those_of_the_scopes() {
        // At 1 the outermost, method 1 at bytecode 4; at 4 method 2 at 8, called from there.
        let scopes = [0, 0, 1, 5, 1, 2, 9];
        let table: Vec<u8> = [(-1i32, 0i32), (8, 1), (16, 1), (32, 4), (48, 0), (32, 1)]
            .into_iter()
            .flat_map(|(end, scope)| {
                [end.to_le_bytes(), scope.to_le_bytes(), [0; 4], [0; 4]].concat()
            })
            .collect();
        let method = |index: u32| [0x100, 0x200].get(index as usize - 1).copied();
        let all = join(entries(&table, 16), |scope| {
            calls(&scopes, scope, 0, &method)
        });
        assert_eq!(
            all,
            [
                Description {
                    end: 16,
                    calls: vec![],
                    bytecode: 4,
                },
                Description {
                    end: 32,
                    calls: vec![(0x200, 8)],
                    bytecode: 4,
                },
            ]
        );
        // In a circle, and out of bounds.
        let scopes = [0, 1, 1, 1];
        assert_eq!(calls(&scopes, 1, 0, &method), []);
        assert_eq!(calls(&scopes, 9, 0, &method), []);
    }
}
