//! V8 of Node 18 to 26: how it is recognized, which functions are hidden.
//!
//! In: an object's file. Out: a descriptor. V8 has numbers for debuggers, `v8dbg_…`, which say where fields are: exported, or in the
//! symbol table alone. Its builtins are one piece of code that nothing describes.

mod heap;
mod names;
mod positions;
mod script;
mod stretch;
#[cfg(test)]
mod testing;

pub(super) use names::{Functions, UNNAMED, complete, is_same, is_worth, places, read};
pub(super) use script::Scripts;
pub(super) use stretch::Heads;

use super::function_bounds::{extent, starts};
use super::{Descriptor, Detected, HiddenFrames};
use crate::object::{Elf, ElfAddress, Image};
use foldhash::HashMap;
use heap::{Heap, Layout};
use profiler_common::runtime::Described as _;
use profiler_common::runtime::{
    DESCRIPTOR_WORDS, RuntimeKind, first_word,
    v8::{Offsets, Types, at},
};
use std::ops::Range;

/// The builtins that are the interpreter, or enter JavaScript or C++; and the functions that call the first of them.
pub(super) const HIDDEN_FRAMES: HiddenFrames = HiddenFrames {
    names: &[
        "Builtins_Baseline*",
        "Builtins_CEntry_*",
        "Builtins_CallApi*",
        "Builtins_CallFunction_*",
        "Builtins_CallWith*",
        "Builtins_Call_*",
        "Builtins_Construct*",
        "Builtins_FastNewObject*",
        "Builtins_Interpreter*",
        "Builtins_JSBuiltinsConstructStub",
        "Builtins_JSConstruct*",
        "Builtins_JSEntry*",
        "Builtins_*Handler",
        "v8::Function::Call",
        "v8::internal::Execution::Call",
        "v8::internal::Execution::TryCall",
        "v8::internal::(anonymous namespace)::Invoke",
    ],
    has_loop: false,
};

/// Every V8 has it for programs that it is part of, which export it for their extensions.
const OF_EVERY_V8: &str = "_ZN2v82V810GetVersionEv";
/// With what the names of numbers for debuggers begin, and that of one of them.
const FOR_DEBUGGERS: &str = "v8dbg_";
const ONE_FOR_DEBUGGERS: &str = "SmiTag";

/// Recognizes V8 by what it exports.
pub(super) fn detect(image: &Image<'_>) -> Option<Detected> {
    let numbers = Numbers::of(image)?;
    let part = |name: &str| u8::try_from(numbers.of_version(name)?).ok();
    let version = part("major").zip(part("minor"));
    let has_any = numbers.for_debuggers(ONE_FOR_DEBUGGERS).is_some();
    Some(Detected {
        kind: RuntimeKind::V8,
        name: match version {
            Some((major, minor)) => format!("V8 {major}.{minor}"),
            None => "V8".to_owned(),
        },
        words: match version {
            _ if !has_any => Err(
                "it was built without symbols for debuggers (v8dbg_…): run a build that has them, or start it with \
                 --perf-basic-prof",
            ),
            None => Err("its version is not known"),
            Some((major, minor)) => words(
                image,
                &numbers,
                u32::from(major) << 16 | u32::from(minor) << 8,
            ),
        },
    })
}

/// The numbers that a file has beside its code.
struct Numbers<'i, 'f> {
    image: &'i Image<'f>,
    /// Addresses of those that are not exported, where that are all for debuggers.
    hidden: HashMap<String, ElfAddress>,
}

impl<'i, 'f> Numbers<'i, 'f> {
    /// Those of a file that has V8.
    fn of(image: &'i Image<'f>) -> Option<Self> {
        let exports = |name: &str| image.symbol(name).is_some();
        let is_exported = exports(&format!("{FOR_DEBUGGERS}{ONE_FOR_DEBUGGERS}"));
        (is_exported || exports(OF_EVERY_V8)).then_some(())?;
        let hidden = if is_exported {
            HashMap::default()
        } else {
            Elf::read(image.file)?.hidden_variables(image.file, &[FOR_DEBUGGERS, VERSION])
        };
        Some(Self { image, hidden })
    }

    /// One for debuggers.
    fn for_debuggers(&self, name: &str) -> Option<u64> {
        self.get(&format!("{FOR_DEBUGGERS}{name}"))
    }

    /// A part of the version.
    fn of_version(&self, name: &str) -> Option<u64> {
        self.get(&format!("{VERSION}{}{name}_E", name.len() + 1))
    }

    /// A constant: of 32 bits, or zero if it is in memory that begins as zeros.
    fn get(&self, name: &str) -> Option<u64> {
        let exported = self.image.symbol(name).map(|symbol| symbol.address);
        let address = exported.or_else(|| self.hidden.get(name).map(|address| address.0))?;
        let mut bytes = [0; 4];
        let is_stored = self.image.copy(address, &mut bytes).is_some();
        Some(if is_stored {
            u32::from_le_bytes(bytes).into()
        } else {
            0
        })
    }
}

/// With what the names of the parts of the version begin.
const VERSION: &str = "_ZN2v88internal7Version";

fn words(
    image: &Image<'_>,
    numbers: &Numbers<'_, '_>,
    version: u32,
) -> Result<Box<Descriptor>, &'static str> {
    let constant = |name: &str| numbers.for_debuggers(name);
    let any = |names: &[&str]| names.iter().find_map(|name| constant(name));
    const UNKNOWN: &str = "where it keeps functions is not known";
    let half = |number: Option<u64>| number.and_then(|number| u16::try_from(number).ok());
    if constant("SmiShiftSize") != Some(31) {
        return Err("its pointers are compressed");
    }
    let first_function = any(&["FirstJSFunctionType", "type_JSFunction__JS_FUNCTION_TYPE"]);
    // Until V8 11, the last is not exported.
    let last_function =
        constant("LastJSFunctionType").or(first_function.map(|first| first + OTHER_FUNCTIONS));
    let flags = half(constant("class_SharedFunctionInfo__flags__int")).ok_or(UNKNOWN)?;
    let offsets = Offsets {
        shared: half(constant("class_JSFunction__shared__SharedFunctionInfo")).ok_or(UNKNOWN)?,
        name: half(any(&[
            "class_SharedFunctionInfo__name_or_scope_info__Object",
            "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
            "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
        ]))
        .ok_or(UNKNOWN)?,
        script: half(any(&[
            "class_SharedFunctionInfo__script_or_debug_info__HeapObject",
            "class_SharedFunctionInfo__script__Tagged_HeapObject_",
            "class_SharedFunctionInfo__raw_script__Tagged_Object_",
        ]))
        .ok_or(UNKNOWN)?,
        // Behind the flags; and behind that, since V8 12, the number among all (`shared-function-info.tq`).
        literal: flags.checked_add(4).ok_or(UNKNOWN)?,
        unique: if version < 12 << 16 {
            0
        } else {
            flags.checked_add(8).ok_or(UNKNOWN)?
        },
        // Behind the map.
        first_local: half(constant("scopeinfo_idx_first_vars").map(|index| index + 1))
            .ok_or(UNKNOWN)?,
    };
    let types = Types {
        first_function: half(first_function).ok_or(UNKNOWN)?,
        last_function: half(last_function).ok_or(UNKNOWN)?,
        shared: half(constant(
            "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
        ))
        .ok_or(UNKNOWN)?,
        scope: half(constant("type_ScopeInfo__SCOPE_INFO_TYPE")).ok_or(UNKNOWN)?,
    };
    let builtins = builtins(image).ok_or("where its builtins are is not known")?;
    let mut words: Descriptor = [0; DESCRIPTOR_WORDS];
    words[0] = first_word(RuntimeKind::V8, version);
    [words[at::BUILTINS], words[at::BUILTINS + 1]] = [builtins.start, builtins.end];
    words[at::TYPES..at::OFFSETS].copy_from_slice(&types.words());
    words[at::OFFSETS..at::OTHERS].copy_from_slice(&offsets.words());
    words[at::OTHERS..at::OTHERS + Layout::WORDS].copy_from_slice(&layout(version, any).words());
    Ok(Box::new(words))
}

/// The type of a `SharedFunctionInfo`.
fn shared_type(heap: &Heap<'_>) -> u16 {
    (heap.memory.descriptor(at::TYPES) >> 32) as u16
}

/// Where fields are that only user space reads. What is not known reads as nothing: functions have their names, but not the calls
/// compiled into them, or no lines.
fn layout(version: u32, any: impl Fn(&[&str]) -> Option<u64>) -> Layout {
    let or = |names: &[&str], otherwise: u16| {
        let number = any(names).and_then(|number| u16::try_from(number).ok());
        number.unwrap_or(otherwise)
    };
    let code = or(&["type_Code__CODE_TYPE"], u16::MAX);
    // Not exported, but in `code.h`, `deoptimization-data.h` and `bytecode-array.h`.
    let is_old = version < 12 << 16;
    let wrapped = ["DeoptimizationDataWrappedSharedFunctionInfoIndex"];
    Layout {
        deoptimization: or(
            &["class_Code__deoptimization_data__FixedArray"],
            if is_old { 16 } else { 8 },
        ),
        positions: or(
            &["class_Code__source_position_table__ByteArray"],
            if is_old { 24 } else { 16 },
        ),
        start: or(
            &[
                "class_Code__instruction_start__Address",
                "class_Code__instruction_start__uintptr_t",
            ],
            40,
        ),
        flags: or(&["class_Code__flags__uint32_t"], 48),
        size: or(&["class_Code__instruction_size__int"], 52),
        baseline: or(&["CodeKindBaseline"], u16::MAX),
        function: or(
            &["DeoptimizationDataSharedFunctionInfoIndex", wrapped[0]],
            6,
        ),
        inlined: or(&["DeoptimizationDataInliningPositionsIndex"], 7),
        literals: or(&["DeoptimizationDataLiteralArrayIndex"], 2),
        is_wrapped: any(&wrapped).is_some().into(),
        bytecode_positions: if is_old { 32 } else { 24 },
        bytecode: or(&["class_BytecodeArray__data__uintptr_t"], 0),
        instructions: or(&["type_InstructionStream__INSTRUCTION_STREAM_TYPE"], code),
        code,
        bytecode_type: or(&["type_BytecodeArray__BYTECODE_ARRAY_TYPE"], u16::MAX),
        regular_expression: or(&["frametype_IrregexpFrame"], u16::MAX),
        web_assembly: or(&["frametype_WasmFrame"], u16::MAX),
    }
}

/// The types of functions behind the first (`JSFunction` in `js-function.tq`: bound to constructors of arrays and classes).
const OTHER_FUNCTIONS: u64 = 15;

/// The code of the builtins, by a descriptor.
pub(super) fn builtins_in(words: &Descriptor) -> Range<u64> {
    words[at::BUILTINS]..words[at::BUILTINS + 1]
}

/// The builtins take no less, and not much more.
const MIN: u64 = 1 << 20;
/// See [`MIN`].
const MAX: u64 = 16 << 20;

/// The code of the builtins: the largest that lies between two functions and that nothing describes.
fn builtins(image: &Image<'_>) -> Option<Range<u64>> {
    let starts = starts(image)?;
    let pairs = starts.windows(2);
    let around = pairs.max_by_key(|pair| pair[1] - pair[0])?;
    let before = extent(image, around[0])?;
    let code = before.end..around[1];
    (MIN..MAX)
        .contains(&code.end.checked_sub(code.start)?)
        .then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memchr::memmem;
    use std::fs::File;
    use std::io::{self, Seek as _};
    use std::os::unix::fs::FileExt as _;

    #[test]
    fn an_installed_node_is_recognized() {
        let Ok(file) = File::open("/usr/bin/node") else {
            return;
        };
        let detected = detect(&Image::read(&file).unwrap()).unwrap();
        assert_eq!(detected.kind, RuntimeKind::V8);
        let words = detected.words.unwrap();
        assert!(words[at::BUILTINS] < words[at::BUILTINS + 1]);
    }

    /// The same file, in whose names in this range none begin like those of numbers for debuggers.
    fn without_names(file: &File, names: &Range<u64>) -> File {
        let (mut file, mut copy) = (file.try_clone().unwrap(), tempfile::tempfile().unwrap());
        file.rewind().unwrap();
        io::copy(&mut file, &mut copy).unwrap();
        let mut bytes = vec![0; (names.end - names.start) as usize];
        file.read_exact_at(&mut bytes, names.start).unwrap();
        let places: Vec<usize> = memmem::find_iter(&bytes, FOR_DEBUGGERS).collect();
        assert!(places.len() > 100);
        for place in places {
            copy.write_all_at(b"v8xxx_", names.start + place as u64)
                .unwrap();
        }
        copy
    }

    #[test]
    fn numbers_for_debuggers_need_not_be_exported() {
        let Ok(file) = File::open("/usr/bin/node") else {
            return;
        };
        let elf = Elf::read(&file).unwrap();
        let (Some(exported), Some(all)) = (&elf.dynamic_symbols, &elf.symbols) else {
            return;
        };
        let detected = |file: &File| detect(&Image::read(file).unwrap()).unwrap();
        let hidden = without_names(&file, &exported.names);
        assert_eq!(detected(&hidden), detected(&file));
        // Not even there.
        let stripped = without_names(&hidden, &all.names);
        let Detected { name, words, .. } = detected(&stripped);
        assert_eq!(name, detected(&file).name);
        assert!(words.unwrap_err().contains("--perf-basic-prof"));
    }

    #[test]
    fn another_program_is_not() {
        let file = File::open("/proc/self/exe").unwrap();
        assert_eq!(detect(&Image::read(&file).unwrap()), None);
    }
}
