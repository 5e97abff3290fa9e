//! Memory shared with the kernel half: (part of) an array map, mapped into our address space; and with the kernel itself: its
//! type information.
#![expect(unsafe_code, reason = "a memory mapping is a raw pointer")]

use super::errors::missing;
use super::{Error, Result};
use crate::machine::TYPE_INFORMATION;
use aya::Ebpf;
use aya::maps::{Map, MapData};
use memmap2::{Mmap, MmapOptions, MmapRaw};
use rustix::fs::fstatfs;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::atomic::AtomicU64;

/// The file system in which the kernel shows its type information (`include/uapi/linux/magic.h`).
const SYSFS_MAGIC: rustix::fs::FsWord = 0x6265_6572;

/// Bytes of a page of memory: mappings begin at one.
pub(super) const PAGE_BYTES: usize = 4096;

/// A mapped range of a map's words. Mapping costs resident memory for as long as this lives.
pub(super) struct Shared {
    mapping: MmapRaw,
    words: usize,
}

impl Shared {
    /// Maps `words` words of an array map, starting `skip` words in, at the beginning of a page.
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

/// The running kernel's type information: some megabytes.
pub(super) enum TypeInformation {
    /// The kernel's own memory (Linux 6.16).
    Mapped(Mmap),
    /// A copy. The kernel hands it out page by page, which takes ten milliseconds.
    Read(Vec<u8>),
}

impl TypeInformation {
    /// That of the running kernel.
    ///
    /// # Errors
    /// It has none, or does not show it.
    pub(super) fn read() -> io::Result<Self> {
        let mut file = File::open(TYPE_INFORMATION)?;
        let is_the_kernels = fstatfs(&file).is_ok_and(|system| system.f_type == SYSFS_MAGIC);
        if is_the_kernels {
            // SAFETY: what the kernel shows in this file is its own constant memory, which lives as long as the machine runs.
            let mapped = unsafe { MmapOptions::new().map_copy_read_only(&file) };
            if let Ok(mapped) = mapped {
                return Ok(Self::Mapped(mapped));
            }
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Self::Read(bytes))
    }
}

impl Deref for TypeInformation {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Read(bytes) => bytes,
        }
    }
}

/// Takes an array out of the object, by its name.
pub(super) fn array(ebpf: &mut Ebpf, name: &'static str) -> Result<MapData> {
    match ebpf.take_map(name) {
        Some(Map::Array(data)) => Ok(data),
        _ => Err(missing(name)),
    }
}
