//! The vDSO: code that the kernel maps into every process.
//!
//! In: our own mapping of it. Out: its bytes as a file. All 64-bit processes have the same image, so ours
//! serves for theirs, even after they have ended. See `vdso(7)`.

use super::proc_maps;
use crate::object::RegularFile;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Larger than any image, in bytes; images have two or three pages.
const MAX_BYTES: u64 = 1 << 20;

/// The address range of the image in our own process; none if there is none.
pub fn mapping() -> Option<Range<u64>> {
    let maps = BufReader::new(File::open("/proc/self/maps").ok()?);
    let mut range: Option<Range<u64>> = None;
    proc_maps::each_executable(maps, |entry| {
        if entry.name == b"[vdso]" {
            range = Some(entry.range);
        }
        range.is_none()
    })
    .ok()?;
    range.filter(|range| range.end - range.start <= MAX_BYTES)
}

/// The image; none if there is none.
pub fn image() -> Option<RegularFile> {
    let range = mapping()?;
    let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
    File::open("/proc/self/mem")
        .ok()?
        .read_exact_at(&mut bytes, range.start)
        .ok()?;
    RegularFile::in_memory("vdso", &bytes).ok()
}

/// Whether the process that maps the image there is a 64-bit one; others have another image.
pub fn is_ours(mapping: &Range<u64>) -> bool {
    mapping.end > u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Elf;

    #[test]
    fn the_vdso_is_an_object_with_symbols() {
        let image = image().unwrap();
        let elf = Elf::read(&image.file).unwrap();
        assert!(elf.dynamic_symbols.is_some());
        assert!(elf.layout.wide);
    }
}
