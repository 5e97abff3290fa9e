//! The sections that a raw recording is made of.
//!
//! In: kinds and messages. Out: bytes with their length and checksum in front, and back. A section is taken
//! whole or not at all.

use lzma_rust2::{LzmaOptions, LzmaReader, LzmaWriter};
use std::io::{self, Read, Write};

/// How every raw recording begins. The first byte is in no text, and the last ones are damaged by programs that take
/// the file for text.
pub(super) const MAGIC: [u8; 8] = *b"\x93FBPF\r\n\x1a";

/// The version of the format, which stands behind the magic.
pub(super) const VERSION: u8 = 9;

/// The most bytes of a message.
pub(super) const MAX_UNPACKED: usize = 1 << 20;

/// The most bytes of a packed message: LZMA adds a little to what cannot be packed.
const MAX_PACKED: usize = MAX_UNPACKED + (MAX_UNPACKED >> 4) + 64;

/// LZMA's lc, lp and pb: bits of the byte before and of the position that predict the next. Columns of small numbers
/// have no alignment, and say little about their neighbours.
const CONTEXT: (u32, u32, u32) = (1, 0, 0);

/// How far back a repetition may lie, in bytes: anywhere in a message.
const DICTIONARY: u32 = MAX_UNPACKED as u32;

/// The smallest of LZMA's dictionaries, in bytes.
const MIN_DICTIONARY: u32 = 4096;

/// The preset of xz whose search for repetitions is used: the first that looks further than the next one.
const PRESET: u32 = 4;

/// Kind, packed length, unpacked length, checksum.
const HEADER_BYTES: usize = 1 + 4 + 4 + 4;

/// Kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// [`super::wire::Head`], first.
    Head = 1,
    /// [`super::wire::Batch`], any number.
    Batch = 2,
    /// [`super::wire::End`], last.
    End = 3,
    /// [`super::wire::Window`], before the batches of each.
    Window = 4,
}

/// Result of reading at a place in a file.
pub(super) enum SectionRead {
    /// A whole section.
    Section(Section),
    /// The end of the file, between sections.
    End,
    /// The end of the file within a section.
    CutOff,
    /// Something that is not what was written.
    Damaged,
}

/// A section as it is in a file, with the right checksum.
pub(super) struct Section {
    /// The kind's number.
    pub(super) kind: u8,
    /// How many bytes the message has.
    pub(super) plain_bytes: usize,
    packed: Vec<u8>,
}

impl Section {
    /// How many bytes of the file it takes.
    pub(super) fn bytes(&self) -> usize {
        HEADER_BYTES + self.packed.len()
    }

    /// The message, if it is as long as the header says.
    pub(super) fn unpack(&self) -> Option<Vec<u8>> {
        let (lc, lp, pb) = CONTEXT;
        let bytes = self.plain_bytes as u64;
        let unpacker = LzmaReader::new(&*self.packed, bytes, lc, lp, pb, DICTIONARY, None);
        let mut plain = Vec::new();
        unpacker.ok()?.read_to_end(&mut plain).ok()?;
        (plain.len() == self.plain_bytes).then_some(plain)
    }
}

/// Packs a message.
pub(super) fn pack(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut options = LzmaOptions::with_preset(PRESET);
    (options.lc, options.lp, options.pb) = CONTEXT;
    // No more memory than the message asks for.
    options.dict_size = length(plain).max(MIN_DICTIONARY);
    let mut packer = LzmaWriter::new_no_header(Vec::new(), &options, false)?;
    packer.write_all(plain)?;
    packer.finish()
}

/// Writes one section.
pub(super) fn write(
    out: &mut dyn Write,
    kind: Kind,
    message: &impl prost::Message,
) -> io::Result<()> {
    let plain = message.encode_to_vec();
    if plain.len() > MAX_UNPACKED {
        return Err(io::Error::other(format!(
            "a section of {} bytes is too large to be read back",
            plain.len()
        )));
    }
    let packed = pack(&plain)?;
    let mut header = [0; HEADER_BYTES];
    header[0] = kind as u8;
    header[1..5].copy_from_slice(&length(&packed).to_le_bytes());
    header[5..9].copy_from_slice(&length(&plain).to_le_bytes());
    let sum = checksum(&header[..9], &packed);
    header[9..].copy_from_slice(&sum.to_le_bytes());
    out.write_all(&header)?;
    out.write_all(&packed)
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("sections are far smaller")
}

fn checksum(header: &[u8], packed: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(packed);
    hasher.finalize()
}

/// Reads one section.
pub(super) fn read(from: &mut impl Read) -> io::Result<SectionRead> {
    let header = up_to(from, HEADER_BYTES)?;
    let Some(header) = header.first_chunk::<HEADER_BYTES>() else {
        return Ok(match header.is_empty() {
            true => SectionRead::End,
            false => SectionRead::CutOff,
        });
    };
    let number = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize
    };
    let (packed_bytes, plain_bytes, sum) = (number(1), number(5), number(9));
    if packed_bytes > MAX_PACKED || plain_bytes > MAX_UNPACKED {
        return Ok(SectionRead::Damaged);
    }
    let packed = up_to(from, packed_bytes)?;
    if packed.len() < packed_bytes {
        return Ok(SectionRead::CutOff);
    }
    if checksum(&header[..9], &packed) as usize != sum {
        return Ok(SectionRead::Damaged);
    }
    Ok(SectionRead::Section(Section {
        kind: header[0],
        plain_bytes,
        packed,
    }))
}

/// So many bytes, or as many as there are.
pub(super) fn up_to(from: &mut impl Read, bytes: usize) -> io::Result<Vec<u8>> {
    let mut taken = Vec::new();
    from.take(bytes as u64).read_to_end(&mut taken)?;
    Ok(taken)
}
