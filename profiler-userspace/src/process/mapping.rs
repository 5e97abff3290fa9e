//! One mapping of a process, and the place of an address in it.
//!
//! In: addresses. Out: the backing and the offset in it. Pure.

use super::BackingId;
use profiler_common::abi::MappingKey;
use std::ops::Range;
use std::time::SystemTime;

/// Place of an address: a mapping, and the offset in its backing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedAddress {
    /// The backing that is mapped there.
    pub backing: BackingId,
    /// For a file, the offset in it; otherwise how far into the mapping.
    pub offset: u64,
    /// The whole mapping.
    pub mapping: Range<u64>,
    /// When the mapping was seen.
    pub seen: SystemTime,
}

/// Memory to which a file's text was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// To memory without a description.
    Anonymous,
    /// To a file, such as shared memory or one of huge pages, at this offset.
    Shared(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) range: Range<u64>,
    pub(super) offset: u64,
    pub(super) backing: BackingId,
    /// That of the kernel half; of what was read, whether it is memory.
    pub(super) mapping_key: MappingKey,
    /// Where this is memory that holds text of the backing, and not that itself.
    pub(super) moved: Option<Moved>,
}

impl Mapping {
    pub(super) fn place(&self, address: u64, seen: SystemTime) -> MappedAddress {
        MappedAddress {
            backing: self.backing,
            offset: self.offset.wrapping_add(address - self.range.start),
            mapping: self.range.clone(),
            seen,
        }
    }

    /// Whether the other mapping adds nothing.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let within = self.range.start <= other.range.start && other.range.end <= self.range.end;
        let ahead = other.range.start.wrapping_sub(self.range.start);
        within && self.backing == other.backing && self.offset.wrapping_add(ahead) == other.offset
    }
}

/// The mapping that an address lies in, of some that ascend.
pub(super) fn find(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.range.start <= address);
    let mapping = &mappings[after.checked_sub(1)?];
    mapping.range.contains(&address).then_some(mapping)
}
