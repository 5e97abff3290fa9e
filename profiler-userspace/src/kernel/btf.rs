//! The running kernel's type information, as far as it is needed: offsets of struct fields, whether a helper
//! exists, names of tracepoints.
//!
//! In: the bytes of `/sys/kernel/btf/vmlinux`. Out: numbers. Pure; never reads a file. The format is
//! described in the kernel's `Documentation/bpf/btf.rst`. General readers first index all 150,000 types,
//! which took 96 ms and 41 MB here; looking for a dozen structs takes one scan that stores nothing.

use super::shared::TypeInformation;
use memchr::{memchr_iter, memmem};
use profiler_common::abi::Path;
use std::collections::{HashMap, HashSet};

/// Type information of one kernel.
pub(super) struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

const MAGIC: u16 = 0xeb9f;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_POINTER: u32 = 2;
const KIND_FORWARD: u32 = 7;
const KIND_TYPEDEF: u32 = 8;
const KIND_RESTRICT: u32 = 11;
const KIND_FUNCTION: u32 = 12;
const KIND_PROTOTYPE: u32 = 13;
const KIND_TYPE_TAG: u32 = 18;

/// Minimal type information for aya: one function of the running kernel keeps its number and everything else
/// is of the smallest kind, because only numbers are looked up. None if the kernel has no such function or no
/// type information.
pub(super) fn stand_in(function: &str) -> Option<aya::Btf> {
    let bytes = TypeInformation::read().ok()?;
    let number = Btf::parse(&bytes)?.function(function)?;
    let fillers = number as usize - 1;
    let strings = format!("\0{function}\0");
    let types = 12 * (fillers + 1);
    let word = |value: usize| u32::try_from(value).ok();
    let mut small = Vec::with_capacity(24 + types + strings.len());
    small.extend(MAGIC.to_ne_bytes());
    small.extend([1, 0]);
    for value in [24, 0, word(types)?, word(types)?, word(strings.len())?] {
        small.extend(value.to_ne_bytes());
    }
    let filler = [0, KIND_FORWARD << 24, 0];
    let wanted = [1, KIND_FUNCTION << 24, 0];
    for head in std::iter::repeat_n(filler, fillers).chain([wanted]) {
        small.extend(head.iter().flat_map(|word| word.to_ne_bytes()));
    }
    small.extend(strings.as_bytes());
    aya::Btf::parse(&small, aya::Endianness::default()).ok()
}

/// Names of the running kernel's tracepoints that are similar to this one, as a phrase. The kernel's type
/// information has one type for each tracepoint.
pub(super) fn near_tracepoints(name: &str) -> String {
    /// More suggestions than this are noise.
    const MAX: usize = 3;
    /// The Jaro-Winkler similarity, from 0 to 1, below which names are unrelated.
    const NEAR: f64 = 0.8;
    let bytes = TypeInformation::read();
    let Some(btf) = bytes.as_deref().ok().and_then(Btf::parse) else {
        return "; its type information, which would list them, cannot be read".to_owned();
    };
    let known = btf
        .strings
        .split(|&byte| byte == 0)
        .filter_map(|string| std::str::from_utf8(string.strip_prefix(b"btf_trace_")?).ok());
    let mut scored: Vec<(f64, &str)> = known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    scored.truncate(MAX);
    let names: Vec<&str> = scored.into_iter().map(|(_, known)| known).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; similar: {}", names.join(", "))
    }
}

/// The first twelve bytes of every type: name; kind and number of members; size or type.
struct Head {
    name: u32,
    kind: u32,
    parts: usize,
    fields_are_bits: bool,
    size: u32,
}

impl<'a> Btf<'a> {
    /// Type information in these bytes; none if the byte order is foreign or they are truncated.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let word = |at| u32_at(bytes, at);
        let magic = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        let header = word(4)? as usize;
        let section = |offset, length| {
            let start = header.checked_add(offset as usize)?;
            bytes.get(start..start.checked_add(length as usize)?)
        };
        (magic == MAGIC).then_some(Self {
            types: section(word(8)?, word(12)?)?,
            strings: section(word(16)?, word(20)?)?,
        })
    }

    /// Whether a type, field or constant has this name.
    pub(super) fn has_name(&self, name: &str) -> bool {
        // The table begins with the empty string.
        let pattern = [b"\0", name.as_bytes(), b"\0"].concat();
        memmem::find(self.strings, &pattern).is_some()
    }

    /// The structs of these names, to be asked for their fields.
    pub(super) fn structs(&'a self, names: impl Iterator<Item = &'a str>) -> Structs<'a> {
        let named: HashMap<u32, &str> = self.name_offsets(names.collect());
        let mut places = vec![0];
        let mut by_name: HashMap<&str, Vec<u32>> = HashMap::new();
        let mut at = 0;
        while let Some(head) = self.head(at) {
            let place = u32::try_from(at).unwrap_or(u32::MAX);
            places.push(place);
            if head.kind == KIND_STRUCT
                && let Some(name) = named.get(&head.name)
            {
                by_name.entry(name).or_default().push(place);
            }
            let Some(size) = size_of(&head) else { break };
            at += size;
        }
        Structs {
            btf: self,
            places,
            by_name,
        }
    }

    /// Where each of these names stands in the table of strings. Types name their strings by these offsets, so that
    /// finding types by name compares numbers.
    fn name_offsets<'n>(&self, names: HashSet<&'n str>) -> HashMap<u32, &'n str> {
        // Of 100,000 strings nearly all differ in length or first letter; hashing these takes milliseconds.
        let mut lengths = [0u64; 256];
        let length = |length: usize| 1u64 << length.min(63);
        for name in &names {
            lengths[usize::from(name.as_bytes().first().copied().unwrap_or(0))] |=
                length(name.len());
        }
        let mut start = 0;
        let strings = memchr_iter(0, self.strings).map(|end| {
            let string = (start, &self.strings[start..end]);
            start = end + 1;
            string
        });
        let may_be = |string: &[u8]| {
            let first = string.first().copied().unwrap_or(0);
            lengths[usize::from(first)] & length(string.len()) != 0
        };
        strings
            .filter(|(_, string)| may_be(string))
            .filter_map(|(offset, string)| {
                let name = names.get(std::str::from_utf8(string).ok()?)?;
                Some((u32::try_from(offset).ok()?, *name))
            })
            .collect()
    }

    /// The constants of an enumeration, with their values.
    pub(super) fn constants(&self, name: &str) -> Vec<(&'a str, u32)> {
        const KIND_ENUMERATION: u32 = 6;
        let mut at = 0;
        while let Some(head) = self.head(at) {
            if head.kind == KIND_ENUMERATION && self.name(head.name) == name.as_bytes() {
                let parts = (0..head.parts).filter_map(|index| {
                    let constant = at + 12 + index * 8;
                    let name = self.name(u32_at(self.types, constant)?);
                    Some((
                        std::str::from_utf8(name).ok()?,
                        u32_at(self.types, constant + 4)?,
                    ))
                });
                return parts.collect();
            }
            let Some(size) = size_of(&head) else { break };
            at += size;
        }
        Vec::new()
    }

    /// How many arguments a tracepoint passes on. Its type is that of a function with one more before them.
    pub(super) fn tracepoint_arguments(&self, tracepoint: &str) -> Option<usize> {
        let name = format!("btf_trace_{tracepoint}");
        let (_, pointer) = self.find_kind(KIND_TYPEDEF, &name)?;
        let pointer = self.numbered(pointer.size)?;
        let function = self.numbered(pointer.size)?;
        let fits = pointer.kind == KIND_POINTER && function.kind == KIND_PROTOTYPE;
        function.parts.checked_sub(1).filter(|_| fits)
    }

    /// The number of the function of this name.
    fn function(&self, name: &str) -> Option<u32> {
        Some(self.find_kind(KIND_FUNCTION, name)?.0)
    }

    /// The first type of this kind and name, and its number.
    fn find_kind(&self, kind: u32, name: &str) -> Option<(u32, Head)> {
        let mut all = self.all();
        all.find(|(_, head)| head.kind == kind && self.name(head.name) == name.as_bytes())
    }

    /// The type of this number.
    fn numbered(&self, wanted: u32) -> Option<Head> {
        let (_, head) = self.all().find(|(number, _)| *number == wanted)?;
        Some(head)
    }

    /// All types by number.
    fn all(&self) -> impl Iterator<Item = (u32, Head)> {
        let mut at = Some(0);
        (1..).map_while(move |number| {
            let head = self.head(at?)?;
            at = size_of(&head).and_then(|size| at?.checked_add(size));
            Some((number, head))
        })
    }

    fn head(&self, at: usize) -> Option<Head> {
        let info = u32_at(self.types, at + 4)?;
        Some(Head {
            name: u32_at(self.types, at)?,
            kind: (info >> 24) & 0x1f,
            parts: (info & 0xffff) as usize,
            fields_are_bits: info >> 31 != 0,
            size: u32_at(self.types, at + 8)?,
        })
    }

    fn name(&self, offset: u32) -> &'a [u8] {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        let end = rest
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(rest.len());
        &rest[..end]
    }
}

/// The structs of some names.
pub(super) struct Structs<'a> {
    btf: &'a Btf<'a>,
    /// Where the type of each number stands: types name each other by number.
    places: Vec<u32>,
    /// Where the structs of each name stand; there may be several.
    by_name: HashMap<&'a str, Vec<u32>>,
}

impl Structs<'_> {
    /// How many bytes from the beginning of a struct the field lies that a path leads to; the size of the struct if the path
    /// is that alone.
    pub(super) fn find(&self, path: Path) -> Option<u32> {
        let (name, fields) = path.split_first()?;
        let all = self.by_name.get(name)?;
        all.iter().find_map(|&at| match fields {
            [] => Some(self.btf.head(at as usize)?.size),
            fields => self.offset(at as usize, fields),
        })
    }

    /// Where the field lies that these lead to from the struct or union at `at`.
    fn offset(&self, at: usize, fields: &[&str]) -> Option<u32> {
        let (first, rest) = fields.split_first()?;
        let (offset, of_type) = self.field(at, first, 0)?;
        if rest.is_empty() {
            return Some(offset);
        }
        Some(offset + self.offset(self.unqualified(of_type)?, rest)?)
    }

    /// Where the type of this number stands, without what is only said about it.
    fn unqualified(&self, mut number: u32) -> Option<usize> {
        /// `const volatile` behind one typedef or two is as deep as it gets.
        const DEEPEST: u32 = 8;
        for _ in 0..DEEPEST {
            let at = *self.places.get(number as usize)? as usize;
            let head = self.btf.head(at)?;
            if !matches!(head.kind, KIND_TYPEDEF..=KIND_RESTRICT | KIND_TYPE_TAG) {
                return Some(at);
            }
            number = head.size;
        }
        None
    }

    /// The byte offset of a field in the struct or union at `at`, and the number of its type. Fields of an unnamed part
    /// count as the whole's own.
    fn field(&self, at: usize, wanted: &str, depth: u32) -> Option<(u32, u32)> {
        /// Unnamed parts are nested two or three deep in practice.
        const DEEPEST: u32 = 8;
        let (btf, head) = (self.btf, self.btf.head(at)?);
        if depth > DEEPEST || !matches!(head.kind, KIND_STRUCT | KIND_UNION) {
            return None;
        }
        (0..head.parts).find_map(|index| {
            let member = at + 12 + index * 12;
            let name = btf.name(u32_at(btf.types, member)?);
            let of_type = u32_at(btf.types, member + 4)?;
            let raw = u32_at(btf.types, member + 8)?;
            let bits = if head.fields_are_bits {
                raw & 0xff_ffff
            } else {
                raw
            };
            if name == wanted.as_bytes() {
                (bits % 8 == 0).then_some((bits / 8, of_type))
            } else if name.is_empty() {
                let inner = *self.places.get(of_type as usize)? as usize;
                let (offset, of_type) = self.field(inner, wanted, depth + 1)?;
                Some((bits / 8 + offset, of_type))
            } else {
                None
            }
        })
    }
}

/// How many bytes a type takes, with all its parts; none for a kind from the future.
fn size_of(head: &Head) -> Option<usize> {
    let each = match head.kind {
        // Integer, variable, declaration tag: one word more.
        1 | 14 | 17 => return Some(12 + 4),
        KIND_ARRAY => return Some(12 + 12),
        KIND_STRUCT | KIND_UNION | 15 | 19 => 12, // Members, section variables, 64-bit constants.
        6 | 13 => 8,                              // Constants, parameters.
        2 | 7..=12 | 16 | 18 => 0, // Pointers, qualifiers, forward declarations, functions, floats.
        _ => return None,
    };
    Some(12 + head.parts * each)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type information with `struct outer { int first; union { struct { const struct outer inner; }; }; }`, and with a
    /// tracepoint of two arguments.
    fn sample() -> Vec<u8> {
        let strings = b"\0int\0outer\0first\0inner\0BPF_FUNC_loop\0btf_trace_two\0kinds\0one\0";
        let types: [&[u32]; 9] = [
            &[1, 1 << 24, 4, 32],                      // 1: int
            &[0, 4 << 24 | 1, 8, 17, 8, 0],            // 2: anonymous struct { inner }
            &[0, 5 << 24 | 1, 8, 0, 2, 0],             // 3: anonymous union { 2 }
            &[5, 4 << 24 | 2, 16, 11, 1, 0, 0, 3, 64], // 4: outer
            &[0, 13 << 24 | 3, 0, 0, 1, 0, 1, 0, 1],   // 5: void (int, int, int)
            &[0, 2 << 24, 5],                          // 6: pointer to 5
            &[37, 8 << 24, 6],                         // 7: btf_trace_two
            &[0, 10 << 24, 4],                         // 8: const outer
            &[51, 6 << 24 | 1, 4, 57, 7],              // 9: enum kinds { one = 7 }
        ];
        let types = types.concat();
        let mut bytes = Vec::new();
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend([1, 0]);
        let types_bytes = types.len() as u32 * 4;
        for word in [24, 0, types_bytes, types_bytes, strings.len() as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        for word in &types {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn finds_fields_sizes_and_names() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).unwrap();
        let structs = btf.structs(["outer", "absent"].into_iter());
        for (path, found) in [
            (["outer", "first"].as_slice(), Some(0)),
            (&["outer", "inner"], Some(8)),
            (&["outer", "inner", "inner", "first"], Some(16)),
            (&["outer", "first", "none"], None),
            (&["outer"], Some(16)),
            (&["outer", "none"], None),
            (&["absent", "first"], None),
        ] {
            assert_eq!(structs.find(path), found, "{path:?}");
        }
        assert!(
            btf.has_name("BPF_FUNC_loop") && !btf.has_name("FUNC_loop") && !btf.has_name("BPF")
        );
    }

    #[test]
    fn counts_the_arguments_of_tracepoints() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.tracepoint_arguments("two"), Some(2));
        assert_eq!(btf.tracepoint_arguments("none"), None);
    }

    #[test]
    fn finds_the_constants_of_enumerations() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.constants("kinds"), [("one", 7)]);
        assert!(btf.constants("outer").is_empty());
    }

    #[test]
    fn truncated_or_wrong_bytes_never_panic() {
        let bytes = sample();
        let look = |bytes: &[u8]| {
            if let Some(btf) = Btf::parse(bytes) {
                let structs = btf.structs(["outer"].into_iter());
                let _found = structs.find(&["outer", "inner", "first"]);
                let _any = btf.tracepoint_arguments("two");
            }
        };
        for place in 0..bytes.len() {
            look(&bytes[..place]);
            let mut wrong = bytes.clone();
            wrong[place] ^= 0xff;
            look(&wrong);
        }
    }
}
