//! Where an object's debug information is: its own sections, and links to other files.
//!
//! In: section headers, and the open file. Out: where DWARF is and its unpacked bytes; links to other
//! files. Never unpacks more than a fixed amount, whatever a section claims.

use flate2::read::ZlibDecoder;
use lzma_rust2::XzReader;
use object::Endianness;
use object::elf::{ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD};
use ruzstd::decoding::StreamingDecoder;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;

/// The most bytes a section may unpack to: twice what all sections of the largest known programs have
/// together.
const MAX_DEBUG_BYTES: u64 = 4 << 30;

/// The most bytes of minimal debug information, unpacked. It holds only a symbol table, which takes a
/// few MiB for the largest libraries.
const MAX_MINIMAL_BYTES: u64 = 24 << 20;

/// The most memory a decoder may use besides its output, in bytes: twice what packers need at their
/// default level.
const MAX_DECODER_BYTES: u64 = 16 << 20;

/// The name of a separate debug file, and the checksum it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// A file name, without any directory.
    pub name: OsString,
    /// The CRC-32 of the whole debug file.
    pub crc: u32,
}

/// A file that several debug files share, made by `dwz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLink {
    /// Where it is, absolute or from the directory of the debug file.
    pub path: OsString,
    /// Its build ID.
    pub build_id: Box<[u8]>,
}

/// How a section is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    None,
    /// By zlib.
    Zlib,
    /// By zstd.
    Zstd,
    /// By an unknown method.
    Unknown,
}

impl Packing {
    /// By the number that a section's header has for it (`ch_type`).
    pub fn of(kind: u32) -> Self {
        match kind {
            ELFCOMPRESS_ZLIB => Self::Zlib,
            ELFCOMPRESS_ZSTD => Self::Zstd,
            _ => Self::Unknown,
        }
    }

    /// The first `bytes` bytes that `stored` unpacks to; none if there are fewer.
    pub fn unpack(self, stored: impl Read, bytes: u64) -> Option<Vec<u8>> {
        match self {
            Self::None => unpack(stored, bytes),
            Self::Zlib => unpack(ZlibDecoder::new(stored), bytes),
            Self::Zstd => {
                let decoder = StreamingDecoder::new_with_max_window_size(stored, MAX_DECODER_BYTES);
                unpack(decoder.ok()?, bytes)
            }
            Self::Unknown => None,
        }
    }
}

/// Where a section of DWARF is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugSection {
    /// Its name, such as `.debug_info`.
    pub name: Box<[u8]>,
    /// Its bytes in the file; of a compressed one, without the compression header.
    pub file: Range<u64>,
    /// How it is packed.
    pub packing: Packing,
    /// Its unpacked size in bytes, as the file claims.
    pub bytes: u64,
}

impl DebugSection {
    /// The section's unpacked bytes; none if their number is not the claimed one.
    pub fn read(&self, file: &File) -> Option<Vec<u8>> {
        if self.bytes > MAX_DEBUG_BYTES {
            return None;
        }
        let stored = FilePart::new(file, &self.file);
        self.packing.unpack(stored, self.bytes)
    }
}

/// All of an object's debug information, and links to more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Debug {
    /// Its sections of DWARF.
    pub sections: Vec<DebugSection>,
    /// The separate file with what was stripped from it.
    pub link: Option<DebugLink>,
    /// The file with what it shares with other debug files.
    pub shared: Option<SharedLink>,
    /// Where the minimal debug information is: a packed object with a symbol table.
    pub minimal: Option<Range<u64>>,
}

impl Debug {
    /// Whether there is DWARF that describes functions.
    pub fn has_dwarf(&self) -> bool {
        self.section(b".debug_info").is_some()
    }

    /// The section of that name.
    pub fn section(&self, name: &[u8]) -> Option<&DebugSection> {
        self.sections.iter().find(|section| *section.name == *name)
    }

    /// Unpacks the minimal debug information, an object of its own, into a file.
    ///
    /// # Errors
    /// When there is none, it is damaged, or it is larger than the limit.
    pub fn unpack_minimal(&self, file: &File, to: &mut impl io::Write) -> io::Result<()> {
        let minimal = self.minimal.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let stored = FilePart::new(file, minimal);
        let most_kib = u32::try_from(MAX_DECODER_BYTES >> 10).expect("a constant that fits");
        let unpacked = XzReader::new_mem_limit(stored, true, most_kib);
        let bytes = io::copy(&mut unpacked.take(MAX_MINIMAL_BYTES + 1), to)?;
        match bytes <= MAX_MINIMAL_BYTES {
            true => Ok(()),
            false => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }
}

/// Exactly `bytes` bytes; none if there are fewer.
fn unpack(from: impl Read, bytes: u64) -> Option<Vec<u8>> {
    // Grows as bytes arrive: the claimed size may be a lie.
    let mut unpacked = Vec::new();
    from.take(bytes).read_to_end(&mut unpacked).ok()?;
    (unpacked.len() as u64 == bytes).then_some(unpacked)
}

/// A part of a file, read from its beginning.
struct FilePart<'f> {
    file: &'f File,
    left: Range<u64>,
}

impl<'f> FilePart<'f> {
    fn new(file: &'f File, range: &Range<u64>) -> Self {
        Self {
            file,
            left: range.clone(),
        }
    }
}

impl Read for FilePart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.end.saturating_sub(self.left.start);
        let most = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.left.start)?;
        self.left.start += read as u64;
        Ok(read)
    }
}

/// A debug link: a name, NULs up to a multiple of four bytes, and a checksum.
pub(super) fn debug_link(section: &[u8], endian: Endianness) -> Option<DebugLink> {
    let end = section.iter().position(|&byte| byte == 0)?;
    let crc = section
        .get((end + 1).next_multiple_of(4)..)?
        .first_chunk()?;
    let name = &section[..end];
    // A name with directories in it could escape the directories that are searched.
    let plain = !name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..";
    plain.then(|| DebugLink {
        name: OsString::from_vec(name.to_vec()),
        crc: match endian {
            Endianness::Little => u32::from_le_bytes(*crc),
            Endianness::Big => u32::from_be_bytes(*crc),
        },
    })
}

/// A link to a shared file: a path, a NUL, and the file's build ID.
pub(super) fn shared_link(section: &[u8]) -> Option<SharedLink> {
    let end = section.iter().position(|&byte| byte == 0)?;
    let (path, build_id) = (&section[..end], &section[end + 1..]);
    (!path.is_empty() && (2..=64).contains(&build_id.len())).then(|| SharedLink {
        path: OsString::from_vec(path.to_vec()),
        build_id: build_id.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use std::io::Write as _;

    #[test]
    fn a_debug_link_is_a_plain_name_and_a_checksum() {
        let link = |bytes: &[u8]| debug_link(bytes, Endianness::Little);
        let found = link(b"libx.debug\0\0\x78\x56\x34\x12").unwrap();
        assert_eq!(
            (found.name.to_str(), found.crc),
            (Some("libx.debug"), 0x1234_5678)
        );
        assert!(link(b"abc\0\x78\x56\x34\x12").is_some());
        for bad in [
            b"../x\0\0\0\0\x01\x02\x03\x04".as_slice(),
            b"..\0\0\x01\x02\x03\x04",
            b"abc\0\x78\x56",
            b"abc",
            b"",
        ] {
            assert_eq!(link(bad), None);
        }
    }

    #[test]
    fn a_shared_link_is_a_path_and_a_build_id() {
        let found = shared_link(b"../.dwz/all.debug\0\x01\x02\x03").unwrap();
        assert_eq!(found.path, "../.dwz/all.debug");
        assert_eq!(&*found.build_id, [1, 2, 3]);
        for bad in [b"x".as_slice(), b"", b"\0\x01\x02", b"x\0", b"x\0\x01"] {
            assert_eq!(shared_link(bad), None);
        }
        assert_eq!(shared_link(&[b"x\0".as_slice(), &[1; 65]].concat()), None);
    }

    fn stored(bytes: &[u8], packing: Packing, claimed: u64) -> Option<Vec<u8>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before").unwrap();
        file.write_all(bytes).unwrap();
        file.write_all(b"behind").unwrap();
        let section = DebugSection {
            name: (*b".debug_info").into(),
            file: 6..6 + bytes.len() as u64,
            packing,
            bytes: claimed,
        };
        section.read(&file)
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn sections_are_unpacked_to_their_declared_size_at_most() {
        let plain = b"DWARF".repeat(1000);
        let zstd = ruzstd::encoding::compress_to_vec(
            plain.as_slice(),
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        for (bytes, packing) in [
            (plain.clone(), Packing::None),
            (zlib(&plain), Packing::Zlib),
            (zstd, Packing::Zstd),
        ] {
            assert_eq!(stored(&bytes, packing, 5000).as_ref(), Some(&plain));
            assert_eq!(stored(&bytes, packing, 5), Some(b"DWARF".to_vec()));
            assert_eq!(stored(&bytes, packing, 5001), None, "{packing:?}");
            assert_eq!(stored(&bytes, packing, u64::MAX), None, "{packing:?}");
            assert_eq!(stored(&bytes[..bytes.len() / 2], packing, 5000), None);
        }
        assert_eq!(stored(&plain, Packing::Unknown, 5), None);
        assert_eq!(stored(&plain, Packing::Zlib, 5), None);
        assert_eq!(stored(&plain, Packing::Zstd, 5), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            head in proptest::sample::select(vec![
                b"".as_slice(),
                b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46",
                b"\x28\xb5\x2f\xfd",
                b"\x78\x9c",
            ]),
        ) {
            let bytes = [head, &bytes].concat();
            for packing in [Packing::None, Packing::Zlib, Packing::Zstd] {
                stored(&bytes, packing, 1 << 16);
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            let debug = Debug {
                minimal: Some(0..bytes.len() as u64),
                ..Debug::default()
            };
            let _unpacked = debug.unpack_minimal(&file, &mut Vec::new());
        }
    }
}
