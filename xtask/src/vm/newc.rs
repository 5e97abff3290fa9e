//! Writes the cpio archive that a kernel unpacks as its first file system.
//!
//! In: paths and bytes. Out: a "newc" cpio archive, uncompressed, as the kernel's documentation lays it out
//! (<https://docs.kernel.org/driver-api/early-userspace/buffer-format.html>). It knows folders and files only, all of them
//! root's; the kernel brings `/dev/console` itself.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};

/// The type and the permissions of a folder.
const FOLDER: u32 = 0o040_755;

/// The type and the permissions of a file; all may be run.
const FILE: u32 = 0o100_755;

/// Names and contents begin at multiples of this.
const ALIGNMENT: usize = 4;

/// A cpio archive being written.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    folders: BTreeSet<String>,
}

impl Archive {
    /// Adds an empty folder and the folders that it lies in, each once. Paths are relative to the root.
    pub(super) fn folder(&mut self, path: &str) -> Result<()> {
        let ends = path.match_indices('/').map(|(end, _)| end);
        for end in ends.chain([path.len()]) {
            let folder = &path[..end];
            if !folder.is_empty() && self.folders.insert(folder.to_owned()) {
                self.entry(folder, FOLDER, &[])?;
            }
        }
        Ok(())
    }

    /// Adds a file that may be run, and the folders that it lies in.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) -> Result<()> {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder)?;
        }
        self.entry(path, FILE, content)
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        self.entry("TRAILER!!!", 0, &[])?;
        Ok(self.bytes)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        let size = |bytes: usize| {
            u32::try_from(bytes).with_context(|| format!("{path} is too large for an archive"))
        };
        self.entries += 1;
        let (owner, group, links, time) = (0, 0, 1, 0);
        let (length, name) = (size(content.len())?, size(path.len() + 1)?);
        // Devices that hold the file, then those that it is.
        let devices = [0; 4];
        let before = [self.entries, mode, owner, group, links, time, length];
        let unchecked = 0;
        self.bytes.extend(b"070701");
        for field in before.into_iter().chain(devices).chain([name, unchecked]) {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
        Ok(())
    }

    fn align(&mut self) {
        let length = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(length, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every entry's path, mode and content, read by the format's own rules.
    fn entries(archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        let mut rest = archive;
        while !rest.is_empty() {
            assert_eq!(&rest[..6], b"070701");
            let field = |index: usize| {
                let digits = &rest[6 + 8 * index..][..8];
                u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
            };
            let (mode, size, name) = (field(1), field(6) as usize, field(11) as usize);
            let content = (110 + name).next_multiple_of(4);
            let path = std::str::from_utf8(&rest[110..110 + name]).unwrap();
            let path = path.strip_suffix('\0').expect("a name ends in a zero");
            entries.push((
                path.to_owned(),
                mode,
                rest[content..content + size].to_vec(),
            ));
            rest = &rest[(content + size).next_multiple_of(4)..];
        }
        entries
    }

    #[test]
    fn an_archive_lists_folders_before_their_files() {
        let mut archive = Archive::default();
        archive.file("lib/x/libc.so.6", b"elf").unwrap();
        archive.file("lib/x/libm.so.6", b"12345").unwrap();
        archive.file("init", b"").unwrap();
        archive.folder("lib").unwrap();
        assert_eq!(
            entries(&archive.finish().unwrap()),
            [
                ("lib", FOLDER, &b""[..]),
                ("lib/x", FOLDER, b""),
                ("lib/x/libc.so.6", FILE, b"elf"),
                ("lib/x/libm.so.6", FILE, b"12345"),
                ("init", FILE, b""),
                ("TRAILER!!!", 0, b""),
            ]
            .map(|(path, mode, content)| (path.to_owned(), mode, content.to_vec()))
        );
    }

    #[test]
    fn an_archive_entry_has_the_newc_layout() {
        let mut archive = Archive::default();
        archive.file("ab", b"xyz").unwrap();
        let expected = concat!(
            "070701",
            "00000001",
            "000081ed",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000003",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000003",
            "00000000",
            "ab\0\0\0\0",
            "xyz\0"
        );
        // 110 bytes of header and 3 of name end at 116, the next multiple of 4.
        assert_eq!(&archive.bytes[..], expected.as_bytes());
    }
}
