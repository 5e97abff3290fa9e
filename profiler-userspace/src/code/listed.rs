//! Functions that a file lists for its loader.
//!
//! In: the dynamic section, and arrays of functions. Out: their addresses. See the System V ABI, chapter 5, "Initialization
//! and Termination Functions".

use super::relocations;
use crate::object::image::read_at;
use crate::object::{Image, Part};
use object::elf::{DT_FINI, DT_INIT, SHT_FINI_ARRAY, SHT_INIT_ARRAY, SHT_PREINIT_ARRAY};

/// How much of one array is read, in bytes: 131,072 functions.
const MAX_ARRAY_BYTES: u64 = 1 << 20;

/// The functions that are called when the object is loaded and unloaded.
pub(super) fn listed(image: &Image<'_>) -> Vec<u64> {
    let tags = [DT_INIT, DT_FINI].into_iter();
    let mut listed: Vec<u64> = tags.filter_map(|tag| image.dynamic(tag)).collect();
    let kinds = [SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY].into_iter();
    let arrays = kinds.flat_map(|kind| image.sections_of_type(kind));
    let arrays: Vec<Part> = arrays.map(Part::from).collect();
    for array in &arrays {
        let bytes = read_at(
            image.file,
            array.offset,
            array.bytes.min(MAX_ARRAY_BYTES) as usize,
        );
        let words = bytes.as_chunks::<8>().0.iter();
        listed.extend(words.map(|word| u64::from_le_bytes(*word)));
    }
    relocations::each_relative(image, &arrays, |_, function| listed.push(function));
    listed
}
