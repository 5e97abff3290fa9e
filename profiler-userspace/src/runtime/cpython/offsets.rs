//! `_Py_DebugOffsets`, with which `_PyRuntime` begins since 3.13: where in its structures an interpreter keeps what.
//!
//! In: the table's words. Out: words of a descriptor, or why the frames cannot be followed. The layout is that of
//! `pycore_debug_offsets.h` of 3.13 and 3.14.

use crate::runtime::Descriptor;
use profiler_common::runtime::cpython::{CODE_BEGIN, FREE_THREADED_HEAD, at};

/// How many words of it are looked at.
const WORDS: usize = 64;

/// The cookie that it begins with.
const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");

/// No offset is as large.
const MAX: u64 = 4096;

/// Why there are no offsets.
pub(super) const NOT_THERE: &str = "its table of offsets is not there";

/// Puts what the table says into a descriptor.
pub(super) fn put(table: &[u64; WORDS], words: &mut Descriptor) -> Result<(), &'static str> {
    const OTHER: &str = "its frames lie otherwise than in the versions that are known";
    let [cookie, version, free_threaded, ..] = *table;
    if cookie != COOKIE {
        return Err(NOT_THERE);
    }
    // Behind cookie, version and flag: words of the runtime (size first), of an interpreter, of a thread, of a frame, of code.
    let is_3_14 = version >> 16 & 0xff >= 14;
    let is_free_threaded = free_threaded != 0;
    if is_free_threaded && is_3_14 {
        // Each thread has a copy of the bytecode (`co_tlbc`).
        return Err("its free-threaded build is not understood");
    }
    let (interpreter, thread) = (6, if is_3_14 { 22 } else { 19 });
    let frame = thread + 9;
    let code = frame + if is_3_14 { 8 } else { 6 };
    let get = |place: usize| table[place];
    let (current, previous, executable) = (get(thread + 4), get(frame + 1), get(frame + 2));
    let (instruction, owner) = (get(frame + 3), get(frame + 5));
    let [file, name, qualified, _table, first_line] =
        [code + 1, code + 2, code + 3, code + 4, code + 5].map(get);
    let bytecode = get(code + 9);
    let head_more = if is_free_threaded {
        FREE_THREADED_HEAD
    } else {
        0
    };
    // Behind code, which has one word more in 3.14: of any object, its size and where its type is.
    let object = code + if is_3_14 { 11 } else { 10 };
    let has_head = get(object + 1) == CODE_BEGIN + head_more;
    let is_known = [current, instruction, file, first_line]
        .iter()
        .all(|word| *word < MAX)
        && has_head
        && executable == 0
        && previous == 8
        && (instruction + 8..instruction + 24).contains(&owner)
        && name == file + 8
        && qualified == file + 16
        && (16..MAX).contains(&bytecode);
    if !is_known {
        return Err(OTHER);
    }
    for (place, word) in [
        (at::HEAD, current),
        (at::HEAD_MORE, head_more),
        (at::INTERPRETER_NEXT, get(interpreter + 2)),
        (at::INTERPRETER_THREADS, get(interpreter + 3)),
        (at::THREAD_ID, get(thread + 5)),
        (at::FRAME_LINKS, executable),
        (at::FRAME_POSITION, instruction),
        (at::FRAME_OWNER, owner),
        (at::CODE_BYTES, bytecode),
        (at::CODE_STRINGS, file),
        (at::CODE_FIRST_LINE, first_line),
        // As in 3.12: `co_nlocalsplus`, `co_framesize`, `co_nlocals`, `co_ncellvars`, `co_nfreevars` stand between.
        (at::CODE_VERSION, first_line + 24),
        // `_co_firsttraceable`, `co_extra`, and the bytecode.
        (at::CODE_FIRST_TRACEABLE, bytecode - 16),
    ] {
        words[place] = word;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_common::runtime::DESCRIPTOR_WORDS;

    /// As 3.13.0 has it.
    fn of_3_13() -> [u64; WORDS] {
        let mut table = [0; WORDS];
        table[..3].copy_from_slice(&[COOKIE, 0x030d_00f0, 0]);
        // Of a thread: its size, the next, the one before, the interpreter, and its frame.
        table[19 + 4] = 72;
        // Size, the frame before, its function's code, the instruction, local variables, the owner.
        table[28..34].copy_from_slice(&[88, 8, 0, 56, 72, 70]);
        // Size, file, name, qualified name, lines, first line; the bytecode.
        table[34..40].copy_from_slice(&[208, 112, 120, 128, 136, 68]);
        table[34 + 9] = 200;
        // Of an object: its size, its type.
        table[44..46].copy_from_slice(&[16, 8]);
        table
    }

    fn put_all(table: &[u64; WORDS]) -> Result<Descriptor, &'static str> {
        let mut words = [0; DESCRIPTOR_WORDS];
        put(table, &mut words).map(|()| words)
    }

    #[test]
    fn offsets_of_3_13_are_taken() {
        let words = put_all(&of_3_13()).unwrap();
        let taken = [
            at::HEAD,
            at::FRAME_POSITION,
            at::FRAME_OWNER,
            at::CODE_STRINGS,
            at::CODE_FIRST_LINE,
            at::CODE_VERSION,
            at::CODE_FIRST_TRACEABLE,
        ]
        .map(|place| words[place]);
        assert_eq!(taken, [72, 56, 70, 112, 68, 92, 184]);
    }

    /// As 3.13.5 with `--disable-gil` has it: objects have longer heads.
    fn of_free_threaded_3_13() -> [u64; WORDS] {
        let mut table = of_3_13();
        table[2] = 1;
        table[34..40].copy_from_slice(&[224, 128, 136, 144, 152, 84]);
        table[34 + 9] = 216;
        table[44..46].copy_from_slice(&[32, 24]);
        table
    }

    #[test]
    fn free_threaded_builds_of_3_13_have_longer_heads() {
        let words = put_all(&of_free_threaded_3_13()).unwrap();
        let taken = [at::HEAD_MORE, at::CODE_VERSION, at::CODE_FIRST_TRACEABLE];
        assert_eq!(taken.map(|place| words[place]), [16, 108, 200]);
        assert_eq!(put_all(&of_3_13()).unwrap()[at::HEAD_MORE], 0);
        // Where one says that it is free-threaded and has heads as with the GIL, something is not as it is known.
        let mut table = of_free_threaded_3_13();
        table[45] = 8;
        assert!(put_all(&table).is_err());
    }

    #[test]
    fn free_threaded_builds_of_3_14_are_not_understood() {
        let mut table = of_free_threaded_3_13();
        table[1] = 0x030e_00f0;
        assert_eq!(
            put_all(&table),
            Err("its free-threaded build is not understood")
        );
    }

    #[test]
    fn tables_that_make_no_sense_are_refused() {
        assert_eq!(put_all(&[0; WORDS]), Err(NOT_THERE));
        for place in [23, 29, 30, 31, 33, 35, 36, 37, 39, 43, 45] {
            for word in [u64::MAX, 1 << 63, 5] {
                let mut table = of_3_13();
                table[place] = word;
                // A frame or a first line may lie at 5 for all that is known.
                let is_refused = put_all(&table).is_err();
                assert_eq!(
                    is_refused,
                    !(word == 5 && matches!(place, 23 | 39)),
                    "{place}"
                );
            }
        }
    }
}
