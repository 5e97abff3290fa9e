//! The build ID: a hash of the linker's output that identifies a build whatever its path.
//!
//! In: an ELF file's notes. Out: the ID. Pure. See `ld --build-id` in binutils' manual.

use object::Endianness;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, NoteIterator};
use std::fmt::{self, Write as _};

/// Longer than any hash that linkers use, in bytes.
const MAX_BYTES: usize = 64;

/// A build ID.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// An ID, if its length is plausible.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (2..=MAX_BYTES)
            .contains(&bytes.len())
            .then(|| Self(bytes.into()))
    }

    /// The ID among the notes of one segment, if there is one of plausible length.
    pub fn among<H: FileHeader>(notes: NoteIterator<'_, H>, endian: H::Endian) -> Option<Self> {
        notes
            .map_while(Result::ok)
            .find(|note| note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID)
            .and_then(|note| Self::new(note.desc()))
    }

    /// The ID among notes without a file around them, in this machine's byte order.
    pub fn in_notes(notes: &[u8]) -> Option<Self> {
        let endian = Endianness::default();
        let notes = NoteIterator::<FileHeader64<Endianness>>::new(endian, 4, notes).ok()?;
        Self::among(notes, endian)
    }

    /// The ID as it is in the file.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The ID in hexadecimal, split as in the paths of debug files: `ab`, `cdef…`.
    pub fn split(&self) -> (String, String) {
        let mut digits = self.to_string();
        let rest = digits.split_off(2);
        (digits, rest)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuildId(")?;
        fmt::Display::fmt(self, f)?;
        f.write_char(')')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8; 4], kind: u8, id: &[u8]) -> Vec<u8> {
        let length = u8::try_from(id.len()).unwrap();
        let mut note = vec![4, 0, 0, 0, length, 0, 0, 0, kind, 0, 0, 0];
        note.extend(name);
        note.extend(id);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    fn find(notes: &[u8]) -> Option<BuildId> {
        BuildId::in_notes(notes)
    }

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let id: Vec<u8> = (0xa0..0xb4).collect();
        let notes = [
            note(b"GNU\0", 1, &[1; 16]),
            note(b"FDO\0", 3, &[2; 8]),
            note(b"GNU\0", 3, &id),
        ];
        let found = find(&notes.concat()).unwrap();
        assert_eq!(
            found.to_string(),
            "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3"
        );
        assert_eq!(found.split().0, "a0");
        assert!(found.split().1.starts_with("a1a2"));
    }

    #[test]
    fn hostile_notes_hold_no_build_id() {
        assert_eq!(find(&note(b"GNU\0", 3, &[])), None);
        assert_eq!(find(&note(b"GNU\0", 3, &[7])), None);
        assert_eq!(find(&note(b"GNU\0", 3, &[7; 65])), None);
        assert_eq!(find(&[0xff; 40]), None);
        assert_eq!(find(&note(b"GNU\0", 3, &[7; 20])[..20]), None);
    }
}
