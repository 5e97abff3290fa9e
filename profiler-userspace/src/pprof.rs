//! The messages of a `profile.proto`, as Protocol Buffers encode them.
//!
//! In: numbers. Out: bytes, and back. The field numbers are those of
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>. Fields that nothing here writes or reads are left out.

use prost::Message;
use prost::bytes::Buf as _;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// All of a profile. Texts, mappings, locations and functions are said once and referred to by number.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) function: Vec<Function>,
    /// UTF-8 by rights, which not all writers keep to.
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub(crate) string_table: Vec<Vec<u8>>,
    /// Functions that readers are to drop, with all that they called: a text that is a regular expression.
    #[prost(int64, tag = "7")]
    pub(crate) drop_frames: i64,
    /// Those of them that stay.
    #[prost(int64, tag = "8")]
    pub(crate) keep_frames: i64,
    #[prost(int64, tag = "9")]
    pub(crate) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(crate) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(crate) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(crate) period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(crate) comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub(crate) default_sample_type: i64,
}

/// Meaning and unit of a value: indices of texts.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(crate) kind: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

/// A stack, from the leaf on, and what was counted on it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) label: Vec<Label>,
}

/// A key and its value: numbers of texts, or a number in place of the value's text.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Label {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) text: i64,
    #[prost(int64, tag = "3")]
    pub(crate) number: i64,
}

/// A file, or a stretch of memory, that holds code.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(crate) filename: i64,
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(crate) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(crate) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(crate) has_inline_frames: bool,
}

/// A place in a mapping. Its first line is that of the innermost inlined function.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<Line>,
}

/// A function at a location, and the line in its source; 0 where that is not known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct Line {
    #[prost(uint64, tag = "1")]
    pub(crate) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
}

/// A function. Its texts are numbers.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Function {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(crate) filename: i64,
}

/// The most memory, in bytes, that decoding such a message takes, whatever is in it: two bytes may stand for a whole
/// function. What is broken counts up to there.
pub(crate) fn memory(mut bytes: &[u8]) -> u64 {
    /// An entry of a list with all its fields, the largest there is.
    const ENTRY: u64 = 72;
    /// A byte within an entry: two are a label.
    const BYTE: u64 = 12;
    /// Texts are as long as they are.
    const TEXTS: u32 = 6;
    let mut memory = 0_u64;
    while bytes.has_remaining() {
        let Ok((tag, wire_type)) = decode_key(&mut bytes) else {
            break;
        };
        if wire_type != WireType::LengthDelimited {
            memory = memory.saturating_add(ENTRY);
            if skip_field(wire_type, tag, &mut bytes, DecodeContext::default()).is_err() {
                break;
            }
            continue;
        }
        let length = decode_varint(&mut bytes).unwrap_or(u64::MAX);
        let of_byte = if tag == TEXTS { 1 } else { BYTE };
        memory = memory
            .saturating_add(ENTRY)
            .saturating_add(length.saturating_mul(of_byte));
        match usize::try_from(length) {
            Ok(length) if length <= bytes.len() => bytes.advance(length),
            _ => break,
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_never_less_than_what_decoding_takes() {
        let functions = [0x2a, 0].repeat(1000);
        let message = Profile::decode(&*functions).unwrap();
        assert!(memory(&functions) >= (message.function.len() * size_of::<Function>()) as u64);
        let labels = [&[0x12, 200, 1][..], &[0x1a, 0].repeat(100)].concat();
        let message = Profile::decode(&*labels).unwrap();
        assert_eq!(message.sample[0].label.len(), 100);
        assert!(memory(&labels) >= (size_of::<Sample>() + 100 * size_of::<Label>()) as u64);
        let values = [&[0x12, 102, 0x12, 100][..], &[1; 100]].concat();
        let message = Profile::decode(&*values).unwrap();
        assert_eq!(message.sample[0].value.len(), 100);
        assert!(memory(&values) >= (size_of::<Sample>() + 800) as u64);
        assert!(size_of::<Sample>() <= 72 && size_of::<Function>() <= 72);
        assert!(size_of::<Mapping>() <= 72 && size_of::<Location>() <= 72);
        // Broken ones end somewhere.
        assert!(memory(&[0x2a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]) > 1 << 30);
        let _any = memory(&[255; 20]);
    }
}
