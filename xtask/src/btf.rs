//! The functions that an object's type section describes.
//!
//! In: the bytes of a `.BTF` section (<https://docs.kernel.org/bpf/btf.html>). Out: which functions it describes wrongly. It
//! reads no other kind of type than it must. Not the library's reader: that one looks for a few types among 150,000 and
//! passes over the rest, and is no part of the library's interface, which this crate does not use.

use anyhow::{Context as _, Result};

/// A function, and the function type that it points at.
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;

/// One type: what it is, its name's offset, and the type that it points at, if it is of a kind that does.
struct Type {
    kind: u32,
    name: usize,
    points_at: usize,
}

/// Names of functions that point at something other than a function type.
pub(crate) fn functions_without_type(section: &[u8]) -> Result<Vec<String>> {
    let btf = Btf(section);
    let strings = btf.body(btf.word(12)?)?;
    let types = btf.types()?;
    // Type 0 is `void` and not in the section.
    let kind = |id: usize| {
        id.checked_sub(1)
            .and_then(|index| Some(types.get(index)?.kind))
    };
    let wrong = types
        .iter()
        .filter(|ty| ty.kind == FUNCTION && kind(ty.points_at) != Some(PROTOTYPE));
    wrong.map(|ty| name_at(strings, ty.name)).collect()
}

fn name_at(strings: &[u8], offset: usize) -> Result<String> {
    let name = strings
        .get(offset..)
        .and_then(|rest| rest.split(|byte| *byte == 0).next());
    Ok(
        String::from_utf8_lossy(name.context("BTF names a type outside of its strings")?)
            .into_owned(),
    )
}

struct Btf<'section>(&'section [u8]);

impl<'section> Btf<'section> {
    fn word(&self, offset: usize) -> Result<u32> {
        let bytes = self
            .0
            .get(offset..)
            .and_then(<[u8]>::first_chunk)
            .context("BTF ends too soon")?;
        Ok(u32::from_le_bytes(*bytes))
    }

    /// The bytes behind the header, from `offset` on.
    fn body(&self, offset: u32) -> Result<&'section [u8]> {
        let start = self.word(4)? as usize + offset as usize;
        self.0.get(start..).context("BTF ends before its own parts")
    }

    fn types(&self) -> Result<Vec<Type>> {
        let bytes = Self(self.body(self.word(8)?)?);
        let (mut types, mut offset, end) = (Vec::new(), 0, self.word(12)? as usize);
        while offset < end {
            let properties = bytes.word(offset + 4)?;
            let (kind, members) = (properties >> 24 & 0x1f, properties as usize & 0xffff);
            types.push(Type {
                kind,
                name: bytes.word(offset)? as usize,
                points_at: bytes.word(offset + 8)? as usize,
            });
            offset += 12 + tail_bytes(kind, members);
        }
        Ok(types)
    }
}

/// How many bytes follow the three words that every type begins with.
fn tail_bytes(kind: u32, members: usize) -> usize {
    match kind {
        1 | 14 | 17 => 4,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * members,
        6 | PROTOTYPE => 8 * members,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `int f(void)`, `f` itself, and `g`, which points at `target`.
    fn section(target: u32) -> Vec<u8> {
        let words = [
            [1, 1 << 24, 4].as_slice(), // int, 32 bits
            &[32],
            &[0, PROTOTYPE << 24, 1],
            &[5, FUNCTION << 24, 2],
            &[7, FUNCTION << 24, target],
        ];
        let types: Vec<u8> = words
            .concat()
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        let strings = b"\0int\0f\0g\0";
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a small section");
        let header = [
            0x0001_eb9f,
            24,
            0,
            size(&types),
            size(&types),
            size(strings),
        ];
        let header = header.iter().flat_map(|word| word.to_le_bytes());
        header.chain(types.clone()).chain(*strings).collect()
    }

    #[test]
    fn functions_with_a_function_type_are_accepted() {
        assert!(
            functions_without_type(&section(2))
                .expect("well-formed")
                .is_empty()
        );
    }

    #[test]
    fn a_function_with_another_type_is_named() {
        for target in [0, 1, 3, 0x5636] {
            assert_eq!(
                functions_without_type(&section(target)).expect("well-formed"),
                ["g"]
            );
        }
    }

    #[test]
    fn a_truncated_btf_section_is_an_error() {
        let whole = section(2);
        assert!(functions_without_type(&whole[..30]).is_err());
    }
}
