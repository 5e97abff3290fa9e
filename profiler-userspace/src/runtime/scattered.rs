//! Reads many places of a process's memory with one system call.
//!
//! In: a process by its ID, and addresses. Out: their bytes, as far as they can be read. Never: knows whether it is the same process
//! as before; an ID may have become another's.

#![expect(
    unsafe_code,
    reason = "`process_vm_readv` is a function of C that writes to memory"
)]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// So many places are read at a time, at most (`UIO_MAXIOV` of `linux/uio.h`).
const MAX_PLACES: usize = 1024;

/// Where memory is, and how many bytes (`iovec` of `bits/types/struct_iovec.h`).
#[repr(C)]
struct IoVec {
    address: usize,
    bytes: usize,
}

unsafe extern "C" {
    // `process_vm_readv(2)`.
    fn process_vm_readv(
        process: i32,
        local: *const IoVec,
        local_count: usize,
        remote: *const IoVec,
        remote_count: usize,
        flags: usize,
    ) -> isize;
}

/// Whether numbers of processes are the same for the kernel, where it is called, as in `/proc`, which may show another namespace.
static NUMBERS_ARE_ONE: LazyLock<bool> = LazyLock::new(|| {
    fs::read_link("/proc/self").is_ok_and(|own| own == Path::new(&std::process::id().to_string()))
});

/// Reads `N` bytes at each of these addresses, one after the other. Says of each whether it could be read; where that is not known
/// of some, because the system call is refused or the process has gone, they count as not read.
pub(super) fn read<const N: usize>(
    tgid: u32,
    addresses: &[u64],
    into: &mut [[u8; N]],
) -> Vec<bool> {
    let mut is_read = vec![false; addresses.len()];
    let Ok(process) = i32::try_from(tgid) else {
        return is_read;
    };
    if !*NUMBERS_ARE_ONE {
        return is_read;
    }
    let mut next = 0;
    while next < addresses.len() {
        let end = addresses.len().min(next + MAX_PLACES);
        let Some(count) = read_first(process, &addresses[next..end], &mut into[next..end]) else {
            break;
        };
        is_read[next..next + count].fill(true);
        // The one behind them cannot be read.
        next += count + usize::from(next + count < end);
    }
    is_read
}

/// Reads at the first addresses, up to one where nothing can be read; returns how many were. None if the system call fails for
/// another reason.
fn read_first<const N: usize>(
    process: i32,
    addresses: &[u64],
    into: &mut [[u8; N]],
) -> Option<usize> {
    let remote: Vec<IoVec> = addresses
        .iter()
        .map(|address| IoVec {
            address: *address as usize,
            bytes: N,
        })
        .collect();
    let local = IoVec {
        address: into.as_mut_ptr() as usize,
        bytes: size_of_val(into),
    };
    // SAFETY: `local` is memory that `into` lends for writing alone, which is valid with any bytes in it; `remote` lives
    // throughout the call, and has as many places as are said. What they say is the other process's, which is only read.
    let bytes = unsafe {
        process_vm_readv(
            process,
            &raw const local,
            1,
            remote.as_ptr(),
            remote.len(),
            0,
        )
    };
    match usize::try_from(bytes) {
        Ok(bytes) => Some((bytes / N).min(addresses.len())),
        // `EFAULT`: the first cannot be read.
        Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(EFAULT) => Some(0),
        Err(_) => None,
    }
}

/// `asm-generic/errno-base.h`.
const EFAULT: i32 = 14;

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::id;

    const PAGE: usize = 4096;

    #[test]
    fn places_are_read_as_far_as_they_can_be() {
        let bytes: Vec<[u8; PAGE]> = (0..3).map(|number| [number + 1; PAGE]).collect();
        let address = |number: usize| bytes[number].as_ptr() as u64;
        for unread in [0, 1, 2, 3] {
            let mut addresses = vec![address(0), address(1), address(2)];
            addresses.insert(unread, 8);
            let mut into = [[9; PAGE]; 4];
            let is_read = read(id(), &addresses, &mut into);
            for number in 0..4 {
                assert_eq!(is_read[number], number != unread, "{unread} {is_read:?}");
                let expected = if number < unread { number + 1 } else { number };
                assert!(number == unread || into[number] == [expected as u8; PAGE]);
            }
        }
        assert_eq!(read::<PAGE>(id(), &[], &mut []), Vec::<bool>::new());
    }

    #[test]
    fn a_place_that_reaches_beyond_memory_is_not_read() {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let ranges: Vec<(u64, u64)> = maps
            .lines()
            .filter(|line| line.contains(" r") && !line.contains("[v"))
            .filter_map(|line| {
                let (start, end) = line.split_once(' ')?.0.split_once('-')?;
                let number = |text| u64::from_str_radix(text, 16).ok();
                Some((number(start)?, number(end)?))
            })
            .collect();
        let ends_alone = |end: u64| ranges.iter().all(|(start, _)| *start != end);
        let (start, end) = ranges.iter().find(|(_, end)| ends_alone(*end)).unwrap();
        let mut into = [[0; PAGE]; 2];
        let is_read = read(id(), &[end - 8, *start], &mut into);
        assert_eq!(is_read, [false, true]);
    }
}
