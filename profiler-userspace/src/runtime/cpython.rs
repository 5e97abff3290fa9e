//! CPython 3.8 to 3.14: how it is recognized, where its offsets come from, which functions are hidden.
//!
//! In: an object's file. Out: a descriptor. From 3.13 on, offsets come from the table that the runtime keeps for its debuggers
//! (`_Py_DebugOffsets`, `Include/internal/pycore_debug_offsets.h`); before, from a table by version, each row of which was
//! compared with the DWARF of a build. The address of the thread's key is read out of a function that uses it.

mod lines;
mod offsets;

pub(super) use lines::lines;

use super::arch::cpython::formed;
use super::{Descriptor, Detected};
use crate::object::{Image, Symbol};
use profiler_common::runtime::{
    DESCRIPTOR_WORDS, FETCH_WORDS, RuntimeKind,
    cpython::{CODE_BEGIN, Shape, at},
    first_word,
};

/// The native functions that are the loop, or stand directly around it.
pub(super) const HIDDEN_FRAMES: &[&str] = &[
    "_PyEval_EvalFrameDefault",
    "_PyEval_EvalFrame",
    "_PyEval_Vector",
    "_PyEval_EvalCode",
    "_PyEval_EvalCodeWithName",
    "PyEval_EvalCodeEx",
    "PyEval_EvalCode",
    "PyEval_EvalFrameEx",
    "function_code_fastcall",
    "_PyFunction_Vectorcall",
    "_PyFunction_FastCallDict",
    "_PyObject_Vectorcall",
    "_PyObject_VectorcallTstate",
    "_PyObject_VectorcallDictTstate",
    "PyObject_Vectorcall",
    "PyObject_VectorcallDict",
    "PyObject_VectorcallMethod",
    "PyObject_CallOneArg",
    "PyObject_CallNoArgs",
    "_PyObject_Call",
    "_PyObject_Call_Prepend",
    "_PyObject_CallFunctionVa",
    "_PyObject_CallMethodIdObjArgs",
    "_PyObject_FastCallDict",
    "_PyObject_FastCallDictTstate",
    "_PyObject_MakeTpCall",
    "PyObject_Call",
    "PyObject_CallFunctionObjArgs",
    "PyObject_CallObject",
    "PyVectorcall_Call",
    "_PyVectorcall_Call",
    "_PyVectorcall_Call.isra.0",
    "call_function",
    "do_call_core",
    "trace_call_function",
    "method_vectorcall",
    "object_vacall",
    "cfunction_vectorcall_NOARGS",
    "cfunction_vectorcall_O",
    "cfunction_vectorcall_FASTCALL",
    "cfunction_vectorcall_FASTCALL_KEYWORDS",
    "cfunction_call",
    "cfunction_call_varargs",
    "method_vectorcall_NOARGS",
    "method_vectorcall_O",
    "method_vectorcall_FASTCALL",
    "method_vectorcall_FASTCALL_KEYWORDS",
    "method_vectorcall_VARARGS",
    "method_vectorcall_VARARGS_KEYWORDS",
    "gen_send_ex",
    "gen_send_ex2",
    "gen_iternext",
];

/// Differences between versions, as far as the runtime does not tell them itself.
struct Version {
    minor: u8,
    /// `autoTSSkey` in `_PyRuntime`, for builds in which it cannot be read out of the code.
    key: u64,
    shape: Shape,
    words: &'static [(usize, u64)],
}

/// The words of 3.8 and 3.9.
const OLD: &[(usize, u64)] = &[
    (at::HEAD, 24),
    (at::THREAD_ID, 176),
    (at::FRAME_LINKS, 24),
    (at::FRAME_POSITION, 104 - 24),
    (at::CODE_STRINGS, 104),
    (at::CODE_FIRST_LINE, 40),
    (at::STRING_ASCII, 48),
    (at::STRING_OTHER, 72),
];

const VERSIONS: &[Version] = &[
    Version {
        minor: 8,
        key: 1392,
        shape: Shape::FrameInLoop,
        words: OLD,
    },
    Version {
        minor: 9,
        key: 584,
        shape: Shape::FrameInLoop,
        words: OLD,
    },
    Version {
        minor: 10,
        key: 584,
        shape: Shape::FrameAtAddress,
        words: &[
            (at::HEAD, 24),
            (at::THREAD_ID, 176),
            (at::RUNNING_BEFORE_KEY, 16),
            (at::BOUNDARY, 48),
            (at::CFRAME_PREVIOUS, 8),
            (at::FRAME_LINKS, 24),
            (at::FRAME_POSITION, 96 - 24),
            (at::POSITION_SHIFT, 1),
            (at::CODE_STRINGS, 104),
            (at::CODE_FIRST_LINE, 40),
            (at::STRING_ASCII, 48),
            (at::STRING_OTHER, 72),
        ],
    },
    Version {
        minor: 11,
        key: 592,
        shape: Shape::EntryFlag,
        words: &[
            (at::HEAD, 56),
            (at::THREAD_ID, 152),
            (at::RUNNING_BEFORE_KEY, 16),
            (at::CFRAME_FRAME, 8),
            (at::CFRAME_PREVIOUS, 16),
            (at::FRAME_LINKS, 32),
            (at::FRAME_POSITION, 56 - 32),
            (at::FRAME_OWNER, 68 - 32),
            (at::CODE_BYTES, 184),
            (at::CODE_STRINGS, 112),
            (at::CODE_FIRST_LINE, 72),
            (at::STRING_ASCII, 48),
            (at::STRING_OTHER, 72),
        ],
    },
    Version {
        minor: 12,
        key: 1544,
        shape: Shape::EntryAndAddress,
        words: &[
            (at::HEAD, 56),
            (at::THREAD_ID, 136),
            (at::INTERPRETER_NEXT, 0),
            (at::INTERPRETER_THREADS, 72),
            (at::CFRAME_FRAME, 0),
            (at::CFRAME_PREVIOUS, 8),
            (at::FRAME_LINKS, 0),
            (at::FRAME_POSITION, 56),
            (at::FRAME_OWNER, 70),
            (at::CODE_BYTES, 192),
            (at::CODE_STRINGS, 112),
            (at::CODE_FIRST_LINE, 68),
            (at::CODE_VERSION, 92),
            (at::CODE_FIRST_TRACEABLE, 176),
            (at::STRING_ASCII, 40),
            (at::STRING_OTHER, 56),
        ],
    },
    Version {
        minor: 13,
        key: 2160,
        shape: Shape::EntryFrame,
        words: &[(at::STRING_ASCII, 40), (at::STRING_OTHER, 56)],
    },
    Version {
        minor: 14,
        key: 0,
        shape: Shape::EntryFrame,
        words: &[(at::STRING_ASCII, 40), (at::STRING_OTHER, 56)],
    },
];

/// Recognizes CPython by what it exports.
pub(super) fn detect(image: &Image<'_>) -> Option<Detected> {
    let runtime = image.symbol("_PyRuntime")?;
    let code_type = image.symbol("PyCode_Type")?;
    let evaluate = image.symbol("_PyEval_EvalFrameDefault")?;
    let (major, minor) = version(image)?;
    let name = format!("CPython {major}.{minor}");
    let detected = |words| Detected {
        kind: RuntimeKind::CPython,
        name: name.clone(),
        words,
    };
    let row = VERSIONS.iter().find(|row| (3, row.minor) == (major, minor));
    let Some(row) = row else {
        return Some(detected(Err("its version is not known")));
    };
    let mut words: Descriptor = [0; DESCRIPTOR_WORDS];
    words[0] = first_word(
        RuntimeKind::CPython,
        u32::from(major) << 16 | u32::from(minor) << 8,
    );
    words[at::SHAPE] = row.shape as u64;
    words[at::CODE_TYPE] = code_type.address;
    words[at::CODE_TYPE_SLOT] = image.slot_of("PyCode_Type").unwrap_or(0);
    words[at::LIBC] = image.libc() as u64;
    for &(place, word) in row.words {
        words[place] = word;
    }
    if let Shape::FrameInLoop = row.shape {
        if evaluate.size == 0 {
            return Some(detected(Err("it does not say how long its loop is")));
        }
        words[at::LOOP] = evaluate.address;
        words[at::LOOP + 1] = evaluate.address.saturating_add(evaluate.size);
    }
    match minor {
        // 3.8 has `getframe` between.
        8 => words[at::RUNNING_BEFORE_KEY] = 24,
        9 => words[at::RUNNING_BEFORE_KEY] = 16,
        12.. => {
            words[at::RUNTIME] = runtime.address;
            words[at::RUNTIME_BYTES] = runtime.size;
        }
        _ => {}
    }
    if minor >= 13 {
        let table = image.words(runtime.address);
        let put = table.ok_or(offsets::NOT_THERE);
        if let Err(why) = put.and_then(|table| offsets::put(&table, &mut words)) {
            return Some(detected(Err(why)));
        }
        for place in [at::STRING_ASCII, at::STRING_OTHER] {
            words[place] += words[at::HEAD_MORE];
        }
    }
    if !put_lengths(&mut words) {
        return Some(detected(Err("its structures are longer than is known")));
    }
    words[at::KEY] = match key(image, runtime) {
        Some(key) => key,
        None if row.key != 0 => runtime.address.wrapping_add(row.key),
        None => return Some(detected(Err("where it keeps its threads is not known"))),
    };
    Some(detected(Ok(Box::new(words))))
}

/// Puts how much of a frame and of a code object is read; false if that is too much to be read at once.
fn put_lengths(words: &mut Descriptor) -> bool {
    let owner = words[at::FRAME_OWNER];
    let end_of_frame = words[at::FRAME_POSITION].max(owner) / 8 * 8 + 8;
    let strings = words[at::CODE_STRINGS].saturating_add(24);
    let numbers = [
        at::CODE_FIRST_LINE,
        at::CODE_VERSION,
        at::CODE_FIRST_TRACEABLE,
    ];
    let end_of_numbers = numbers.map(|place| words[place].saturating_add(4));
    let end_of_code = end_of_numbers.into_iter().fold(strings, u64::max);
    words[at::FRAME_BYTES] = end_of_frame;
    let begin = words[at::HEAD_MORE].saturating_add(CODE_BEGIN);
    words[at::CODE_READ] = end_of_code.next_multiple_of(8).saturating_sub(begin);
    [at::FRAME_BYTES, at::CODE_READ]
        .iter()
        .all(|place| words[*place] <= 8 * FETCH_WORDS as u64)
}

/// Major and minor version.
fn version(image: &Image<'_>) -> Option<(u8, u8)> {
    if let Some(version) = image.symbol("Py_Version") {
        let mut bytes = [0; 4];
        image.copy(version.address, &mut bytes)?;
        let [_, _, minor, major] = bytes;
        return Some((major, minor));
    }
    // Before 3.11 there is no such number. Each version exports something that the one before has not.
    const FIRSTS: [(&str, u8); 3] = [
        ("PyModule_AddObjectRef", 10),
        ("PyObject_CallNoArgs", 9),
        ("PyCode_NewWithPosOnlyArgs", 8),
    ];
    let first = FIRSTS.iter().find(|(name, _)| image.symbol(name).is_some());
    Some((3, first.map_or(7, |(_, minor)| *minor)))
}

/// The address of `_PyRuntime.autoTSSkey`, which `PyGILState_GetThisThreadState` hands to `PyThread_tss_get`: the highest
/// address within `_PyRuntime` that its first instructions form.
fn key(image: &Image<'_>, runtime: Symbol) -> Option<u64> {
    /// Instructions behind these are another function's, or come after the call.
    const BYTES: usize = 96;
    let function = image.symbol("PyGILState_GetThisThreadState")?;
    let length = usize::try_from(function.size).ok()?.clamp(16, BYTES);
    let mut code = [0; BYTES];
    image.copy(function.address, &mut code[..length])?;
    let inside = |address: &u64| {
        let offset = address.wrapping_sub(runtime.address);
        offset > 0 && offset < runtime.size && offset.is_multiple_of(4)
    };
    formed(&code[..length], function.address, runtime.address).find(inside)
}

/// Modules, lambdas, comprehensions: their names are those of many.
pub(super) fn is_nameless(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.starts_with('<')
}
