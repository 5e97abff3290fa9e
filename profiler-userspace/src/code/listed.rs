//! Functions that a file lists for its loader.
//!
//! In: the dynamic section, and arrays of functions. Out: their addresses. See the System V ABI, chapter 5, "Initialization
//! and Termination Functions".

use super::image::{Image, read};
use super::relocations;
use object::elf::{DT_FINI, DT_INIT};
use std::fs::File;

/// How much of one array is read, in bytes: 131,072 functions.
const MAX_ARRAY_BYTES: u64 = 1 << 20;

/// The functions that are called when the object is loaded and unloaded.
pub(super) fn listed(image: &Image<'_>, file: &File) -> Vec<u64> {
    let tags = [DT_INIT, DT_FINI].into_iter();
    let mut listed: Vec<u64> = tags.filter_map(|tag| image.dynamic(tag)).collect();
    let arrays = image.function_arrays();
    for array in &arrays {
        let bytes = read(
            file,
            array.offset,
            array.bytes.min(MAX_ARRAY_BYTES) as usize,
        );
        let words = bytes.as_chunks::<8>().0.iter();
        listed.extend(words.map(|word| u64::from_le_bytes(*word)));
    }
    relocations::each_relative(image, file, &arrays, |_, function| listed.push(function));
    listed
}
