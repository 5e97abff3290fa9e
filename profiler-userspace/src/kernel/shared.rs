//! Memory shared with the kernel half: (part of) an array map, mapped into our address space.
#![expect(unsafe_code, reason = "a memory mapping is a raw pointer")]

use super::errors::missing;
use super::{Error, Result};
use aya::Ebpf;
use aya::maps::{Map, MapData};
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::atomic::AtomicU64;

/// A mapped range of a map's words. Mapping costs resident memory for as long as this lives.
pub(super) struct Shared {
    mapping: MmapRaw,
    words: usize,
}

impl Shared {
    /// Maps `words` words of an array map, starting `skip` words in. `skip` must be a multiple of the page
    /// size.
    fn new(map: impl AsFd, skip: usize, words: usize) -> io::Result<Self> {
        let mapping = MmapOptions::new()
            .offset(skip as u64 * 8)
            .len(words * 8)
            .map_raw(map.as_fd().as_raw_fd())?;
        Ok(Self { mapping, words })
    }

    /// The words, which the kernel half may change at any time.
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, `words * 8` bytes long, readable and writable, and
        // lives as long as `self`. All that ever touches it, on either side, are single accesses of
        // aligned words, which is what an atomic is.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr().cast::<AtomicU64>(), self.words) }
    }
}

/// Maps a range of the array map `name`; see [`Shared::new`].
pub(super) fn map(name: &'static str, data: &MapData, skip: usize, words: usize) -> Result<Shared> {
    Shared::new(data.fd(), skip, words).map_err(|source| Error::Mapping { name, source })
}

/// Takes an array out of the object, by its name.
pub(super) fn array(ebpf: &mut Ebpf, name: &'static str) -> Result<MapData> {
    match ebpf.take_map(name) {
        Some(Map::Array(data)) => Ok(data),
        _ => Err(missing(name)),
    }
}
