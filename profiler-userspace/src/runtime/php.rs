//! PHP 8.1 to 8.4: how it is recognized, where its offsets come from, which functions are hidden.
//!
//! In: an object's file. Out: a descriptor. The version is that of the interface for extensions, which each build names in
//! text (`ZEND_MODULE_BUILD_ID`, `Zend/zend_modules.h`) together with whether it is thread-safe. Offsets are those of the
//! version's headers (`Zend/zend_globals.h`, `Zend/zend_compile.h`).

mod signatures;

use super::arch::php::MOVE;
use super::function_bounds::cold_part;
use super::{Descriptor, Detected, search};
use crate::object::Image;
use profiler_common::runtime::php::{CURRENT_EXECUTE_DATA, at};
use profiler_common::runtime::{DESCRIPTOR_WORDS, RuntimeKind, first_word};
use std::ops::Range;

/// The native functions that are the loop, or stand directly around it.
pub(super) const HIDDEN_FRAMES: &[&str] = &[
    "execute_ex",
    "zend_execute",
    "zend_execute_script",
    "zend_execute_scripts",
    "php_execute_script",
    "php_execute_script_ex",
    "zend_call_function",
    "zend_call_known_function",
    "zend_call_known_fcc",
    "zend_call_known_instance_method_with_2_params",
    "zend_call_method",
    "zend_call_method_if_exists",
    "_call_user_function_impl",
    "zend_fcall_info_call",
    "zend_generator_resume",
];

/// Differences between versions.
struct Version {
    /// `ZEND_MODULE_API_NO`.
    interface: &'static [u8],
    minor: u8,
    /// In a `zend_op_array`: `last`, `opcodes`, `filename`, `T`.
    words: [u64; 4],
}

const VERSIONS: &[Version] = &[
    Version {
        interface: b"20210902",
        minor: 1,
        words: [68, 72, 144, 64],
    },
    Version {
        interface: b"20220829",
        minor: 2,
        words: [80, 88, 152, 56],
    },
    Version {
        interface: b"20230831",
        minor: 3,
        words: [76, 80, 144, 64],
    },
    Version {
        interface: b"20240924",
        minor: 4,
        words: [96, 104, 168, 72],
    },
];

/// Recognizes PHP by what it exports; one that is linked statically by the text that names its build, and by its code.
pub(super) fn detect(image: &Image<'_>) -> Option<Detected> {
    let is_exported =
        image.symbol("execute_ex").is_some() && image.symbol("zend_vm_kind").is_some();
    if !is_exported && image.has_libraries() {
        return None;
    }
    let (version, build) = build(image);
    if !is_exported && build.is_empty() {
        return None;
    }
    let name = match version {
        Some(version) => format!("PHP 8.{}", version.minor),
        None => "PHP".to_owned(),
    };
    let places = || match is_exported {
        true => exported(image),
        false => signatures::find(image).ok_or("where its loop and its frames are is not known"),
    };
    Some(Detected {
        kind: RuntimeKind::Php,
        name,
        words: words(image, places, version, &build),
    })
}

/// The loop, and where the innermost frame is kept.
struct Places {
    execute: Range<u64>,
    /// The address of `executor_globals`.
    globals: u64,
    /// See [`at::SLOT`].
    slot: Option<u64>,
}

/// Those of a PHP that exports these.
fn exported(image: &Image<'_>) -> Result<Places, &'static str> {
    let globals = image
        .symbol("executor_globals")
        .filter(|globals| globals.size > CURRENT_EXECUTE_DATA)
        .ok_or("where it keeps its frames is not known")?;
    let execute = image
        .symbol("execute_ex")
        .filter(|execute| execute.size > 0)
        .ok_or("it does not say how long its loop is")?;
    Ok(Places {
        execute: execute.address..execute.address.saturating_add(execute.size),
        globals: globals.address,
        slot: image.slot_of("executor_globals"),
    })
}

fn words(
    image: &Image<'_>,
    places: impl Fn() -> Result<Places, &'static str>,
    version: Option<&Version>,
    build: &[u8],
) -> Result<Box<Descriptor>, &'static str> {
    if build.starts_with(b",TS") {
        return Err("its thread-safe build is not understood");
    }
    let version = version.ok_or("its version is not known")?;
    if build != b",NTS\0" {
        return Err("its debug build is not understood");
    }
    let Places {
        execute,
        globals,
        slot,
    } = places()?;
    let mut words: Descriptor = [0; DESCRIPTOR_WORDS];
    words[0] = first_word(RuntimeKind::Php, 8 << 16 | u32::from(version.minor) << 8);
    words[at::CURRENT] = globals.wrapping_add(CURRENT_EXECUTE_DATA);
    words[at::SLOT] = slot.unwrap_or(0);
    [
        words[at::OPCODE_COUNT],
        words[at::OPCODES],
        words[at::FILE],
        words[at::TEMPORARIES],
    ] = version.words;
    words[at::BODY] = body(image, execute.start).unwrap_or(0);
    [words[at::LOOP], words[at::LOOP + 1]] = [execute.start, execute.end];
    if let Some(cold) = cold_part(image, execute.start) {
        [words[at::LOOP + 2], words[at::LOOP + 3]] = [cold.start, cold.end];
    }
    Ok(Box::new(words))
}

/// Version, and the end of the text that names it: `,NTS`, `,TS`, and behind these `,debug`.
fn build(image: &Image<'_>) -> (Option<&'static Version>, Vec<u8>) {
    const BEFORE: &[u8] = b"API20";
    const DIGITS: usize = 8;
    let is_it = |found: &[u8]| {
        let (digits, rest) = found[BEFORE.len() - 2..].split_at(DIGITS);
        digits.iter().all(u8::is_ascii_digit)
            && (rest.starts_with(b",NTS") || rest.starts_with(b",TS"))
    };
    let Some(text) = search::find(image, BEFORE, 16, is_it) else {
        return (None, Vec::new());
    };
    let (digits, build) = text[BEFORE.len() - 2..].split_at(DIGITS);
    let version = VERSIONS.iter().find(|row| row.interface == digits);
    (version, build.to_vec())
}

/// Where the body of `execute_ex` begins if it keeps its frame in the register that GCC gives it: behind the instruction that moves
/// its argument there. Builds by other compilers keep it elsewhere.
fn body(image: &Image<'_>, execute: u64) -> Option<u64> {
    let mut code = [0; 96];
    image.copy(execute, &mut code)?;
    let place = code.windows(MOVE.len()).position(|window| window == MOVE)?;
    execute.checked_add((place + MOVE.len()) as u64)
}

/// Closures, and methods of classes without a name.
pub(super) fn is_nameless(name: &str) -> bool {
    name.ends_with("{closure}") || name.contains("@anonymous")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn an_installed_php_is_recognized() {
        let Ok(file) = File::open("/usr/bin/php") else {
            return;
        };
        let image = Image::read(&file).unwrap();
        let detected = detect(&image).unwrap();
        assert_eq!(detected.kind, RuntimeKind::Php);
        assert!(detected.name.starts_with("PHP 8."), "{detected:?}");
        let words = detected.words.unwrap();
        let first = words[at::LOOP];
        assert!(words[at::LOOP + 1] - first > 10_000);
        assert!((first + 3..first + 96).contains(&words[at::BODY]));
        assert!(words[at::LOOP + 3] > words[at::LOOP + 2]);
    }

    #[test]
    fn closures_and_their_like_are_nameless() {
        for (name, expected) in [
            ("{closure}", true),
            ("App\\{closure}", true),
            ("App\\Item::{closure}", true),
            ("class@anonymous::act", true),
            ("{closure:/srv/a.php:12}", false),
            ("Item::compare", false),
        ] {
            assert_eq!(is_nameless(name), expected, "{name}");
        }
    }
}
