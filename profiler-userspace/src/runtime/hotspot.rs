//! HotSpot of the JDKs 17 to 25: how it is recognized, which functions are hidden.
//!
//! In: an object's file. Out: a descriptor. What fields there are, and where, HotSpot says in tables for debuggers, which it fills when
//! it is loaded: so they are read from a process that has the file mapped.

mod lines;
mod live;
mod names;
mod scopes;
mod threads;

pub(super) use names::{Methods, UNNAMED, complete, is_same, is_worth, places, read};
pub(super) use threads::Threads;

use super::{Descriptor, Detected, HiddenFrames};
use crate::object::Image;
use live::Tables;
use profiler_common::runtime::{
    DESCRIPTOR_WORDS, RuntimeKind, first_word,
    hotspot::{Offsets, at},
};

/// The functions that call Java.
pub(super) const HIDDEN_FRAMES: HiddenFrames = HiddenFrames {
    names: &["JavaCalls::call*", "call_stub"],
    has_loop: false,
};

/// The first and the last version whose layouts are known.
const VERSIONS: std::ops::RangeInclusive<u64> = 17..=25;

/// Recognizes HotSpot by the tables that it exports.
pub(super) fn detect(image: &Image<'_>) -> Option<Detected> {
    image.symbol("gHotSpotVMStructs")?;
    image.symbol("gHotSpotVMTypes")?;
    let tables = Tables::read(image);
    let version = tables.as_ref().and_then(Tables::version);
    Some(Detected {
        kind: RuntimeKind::HotSpot,
        name: match version {
            Some(version) => format!("HotSpot {version}"),
            None => "HotSpot".to_owned(),
        },
        words: match (tables, version) {
            (None, _) => Err("no process was there to read its tables from"),
            (Some(_), None) => Err("its version is not known"),
            (Some(_), Some(version)) if !VERSIONS.contains(&version) => {
                Err("its version is not known")
            }
            (Some(tables), Some(version)) => {
                words(&tables, version).ok_or("where it keeps methods is not known")
            }
        },
    })
}

fn words(tables: &Tables, version: u64) -> Option<Box<Descriptor>> {
    let field = |name: &str| tables.field(name);
    let size = |name: &str| tables.size(name);
    let memory = field("VirtualSpace._low")?;
    let near = field("CodeBlob._code_offset");
    let offsets = Offsets {
        elements: field("GrowableArray<int>._data")?,
        heap_memory: field("CodeHeap._memory")?.checked_add(memory)?,
        heap_segments: field("CodeHeap._segmap")?.checked_add(memory)?,
        // `CodeCacheSegmentSize` is 128 wherever C2 is (the machine's `globals_….hpp`).
        segment_bits: 7,
        heap_block: size("HeapBlock")?,
        block_length: field("HeapBlock::Header._length")?,
        block_used: field("HeapBlock::Header._used")?,
        blob_name: field("CodeBlob._name")?,
        frame_size: field("CodeBlob._frame_size")?,
        frame_complete: field("CodeBlob._frame_complete_offset")?,
        // Since `CodeBlob` says its kind itself.
        is_frame_complete_short: field("CodeBlob._kind").is_some().into(),
        code: near.or(field("CodeBlob._code_begin"))?,
        is_code_near: near.is_some().into(),
        method: field("nmethod._method").or(field("CompiledMethod._method"))?,
        compile_id: field("nmethod._compile_id")?,
        const_method: field("Method._constMethod")?,
        const_method_bytes: size("ConstMethod")?,
        constants: field("ConstMethod._constants")?,
        name_index: field("ConstMethod._name_index")?,
        constant_pool_bytes: size("ConstantPool")?,
        pool_holder: field("ConstantPool._pool_holder")?,
        file_index: field("ConstantPool._source_file_name_index")?,
        class_name: field("Klass._name")?,
        symbol_length: field("Symbol._length")?,
        symbol_body: field("Symbol._body")?,
        descriptions: field("nmethod._scopes_pcs_offset")?,
        descriptions_end: field("nmethod._dependencies_offset")
            .filter(|_| field("nmethod._immutable_data").is_none())
            .or(field("nmethod._scopes_data_offset"))?,
        scopes: field("CompiledMethod._scopes_data_begin").unwrap_or(0),
        metadata: field("nmethod._metadata_offset").unwrap_or(0),
        immutable_data: field("nmethod._immutable_data").unwrap_or(0),
        mutable_data: field("CodeBlob._mutable_data").unwrap_or(0),
        relocation_bytes: field("CodeBlob._relocation_size").unwrap_or(0),
        description_bytes: size("PcDesc")?,
        const_method_flags: field("ConstMethod._flags").or(field("ConstMethod._flags._flags"))?,
        const_method_words: field("ConstMethod._constMethod_size")?,
        code_bytes: field("ConstMethod._code_size")?,
    };
    let mut words: Descriptor = [0; DESCRIPTOR_WORDS];
    words[0] = first_word(RuntimeKind::HotSpot, (version as u32) << 16);
    words[at::HEAPS] = tables.address("CodeCache._heaps")?;
    words[at::CALL_STUB] = tables.address("StubRoutines._call_stub_return_address")?;
    words[at::OFFSETS..at::OFFSETS + Offsets::WORDS].copy_from_slice(&offsets.words());
    threads::describe(tables, &mut words);
    Some(Box::new(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn another_program_is_not_recognized() {
        let file = File::open("/proc/self/exe").unwrap();
        assert_eq!(detect(&Image::read(&file).unwrap()), None);
    }
}
