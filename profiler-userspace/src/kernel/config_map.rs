//! The map with the constants that programs are loaded with.
//!
//! In: a [`Config`]. Out: nothing; the programs that are loaded from then on have it. Such a map is read-only to programs and
//! frozen, so that the verifier takes what is in it for constants: other constants take another map. The object's
//! instructions name it by the number of a descriptor, which is given to each map in turn.
#![expect(
    unsafe_code,
    reason = "a descriptor that aya would close, and a system call that no library of ours has"
)]

use super::{Error, Result};
use aya::maps::{Array, IterableMap as _, MapData};
use profiler_common::abi::Config;
use rustix::io::DupFlags;
use std::io;
use std::mem::{forget, size_of};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use syscalls::{Sysno, syscall};

/// `BPF_F_RDONLY_PROG` (`include/uapi/linux/bpf.h`).
const READ_ONLY: u32 = 1 << 7;

/// The number of `BPF_MAP_FREEZE`.
const MAP_FREEZE: usize = 22;

/// The fields of `union bpf_attr` for `BPF_MAP_FREEZE`.
#[repr(C)]
struct MapFreeze {
    map: i32,
}

/// The map, by the number that the object's programs name.
pub(super) struct ConfigMap {
    named: OwnedFd,
}

impl ConfigMap {
    /// Takes over the map that the object was loaded with.
    pub(super) fn new(map: MapData) -> Self {
        let number = map.fd().as_fd().as_raw_fd();
        forget(map);
        // SAFETY: the descriptor is open, and what owned it was forgotten.
        let named = unsafe { OwnedFd::from_raw_fd(number) };
        Self { named }
    }

    /// Gives these constants to programs that are loaded from now on.
    pub(super) fn set(&mut self, config: &Config) -> Result<()> {
        let failed = |detail: String| Error::Loader {
            step: "making the map of its constants",
            detail,
        };
        let mut map: Array<MapData, Config> =
            Array::create(1, READ_ONLY).map_err(|error| failed(error.to_string()))?;
        map.set(0, config, 0)
            .map_err(|error| failed(error.to_string()))?;
        let fd = map.map().fd().as_fd();
        freeze(fd).map_err(|error| failed(error.to_string()))?;
        rustix::io::dup3(fd, &mut self.named, DupFlags::CLOEXEC)
            .map_err(|error| failed(error.to_string()))
    }
}

/// Lets nobody change a map any more.
fn freeze(map: BorrowedFd<'_>) -> io::Result<()> {
    let attributes = MapFreeze {
        map: map.as_raw_fd(),
    };
    // SAFETY: the kernel reads as many bytes as said of a value that outlives the call.
    let answer = unsafe {
        syscall!(
            Sysno::bpf,
            MAP_FREEZE,
            &raw const attributes,
            size_of::<MapFreeze>()
        )
    };
    match answer {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::from_raw_os_error(error.into_raw())),
    }
}
