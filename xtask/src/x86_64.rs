//! Names that depend on the processor, for x86-64, and the files that know it.
//!
//! In: the workspace's Rust files. Out: those that name x86-64 and are neither in a folder or file of its name nor listed here. The
//! next processor's files stand beside these; whoever adds one begins with the list.

use std::path::Path;

use crate::source::Source;

/// The processor, as Rust and the kernel call it.
pub(crate) const NAME: &str = "x86_64";

/// The program that emulates such a machine, and the package of Debian that has it.
pub(crate) const EMULATOR: (&str, &str) = ("qemu-system-x86_64", "qemu-system-x86");

/// How Debian's small kernels for virtual machines end.
pub(crate) const KERNELS: &str = "-cloud-amd64";

/// Command line of an emulated kernel: where its console is.
pub(crate) const KERNEL_COMMAND_LINE: &str = "console=ttyS0 quiet panic=1";

/// Target that the static binary is compiled for.
pub(crate) const STATIC_TARGET: &str = "x86_64-unknown-linux-musl";

/// Parts of words, in small letters, that name it.
const NAMES: [&str; 2] = ["x86", "amd64"];

/// Words, in small letters, that are registers of it alone.
const REGISTERS: [&str; 2] = ["rsp", "rbp"];

/// A file that names x86-64 elsewhere, and the reason.
struct Exception {
    file: &'static str,
    reason: &'static str,
}

/// Most of them choose the files of the processor for a folder: one line each, which the next processor adds to.
const EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "profiler-common/src/abi/mod.rs",
        reason: "chooses the numbers of system calls",
    },
    Exception {
        file: "profiler-common/src/abi/kernel_layout.rs",
        reason: "names the field of the kernel's with the thread pointer, in the one table of such fields",
    },
    Exception {
        file: "profiler-common/src/runtime/mod.rs",
        reason: "chooses the registers of runtimes",
    },
    Exception {
        file: "profiler-common/src/walk/mod.rs",
        reason: "chooses the registers of walks",
    },
    Exception {
        file: "profiler-ebpf/src/task/mod.rs",
        reason: "chooses where a task keeps its registers",
    },
    Exception {
        file: "profiler-userspace/src/code/mod.rs",
        reason: "chooses the instructions that say where functions begin",
    },
    Exception {
        file: "profiler-userspace/src/object/mod.rs",
        reason: "chooses ELF's numbers",
    },
    Exception {
        file: "profiler-userspace/src/profile/mod.rs",
        reason: "chooses the kernel's names",
    },
    Exception {
        file: "profiler-userspace/src/runtime/mod.rs",
        reason: "chooses the instructions of runtimes",
    },
    Exception {
        file: "profiler-userspace/src/unwind/mod.rs",
        reason: "chooses the rules and what they are read from",
    },
    Exception {
        file: "xtask/src/layering.rs",
        reason: "says that only these folders may decode instructions",
    },
    Exception {
        file: "xtask/src/main.rs",
        reason: "chooses this file",
    },
];

/// Everything that is wrong with the list, one sentence each.
pub(crate) fn violations(sources: &[Source]) -> Vec<String> {
    let named: Vec<&Path> = sources
        .iter()
        .filter(|source| !is_apart(&source.path) && names(code(&source.text)))
        .map(|source| source.path.as_path())
        .collect();
    let is_listed = |path: &&Path| {
        EXCEPTIONS
            .iter()
            .any(|known| Path::new(known.file) == *path)
    };
    let unlisted = named.iter().filter(|path| !is_listed(path));
    let mut wrong: Vec<String> = unlisted
        .map(|path| {
            format!(
                "{} names x86-64, which is for files of that name",
                path.display()
            )
        })
        .collect();
    let gone = EXCEPTIONS
        .iter()
        .filter(|known| !named.contains(&Path::new(known.file)));
    wrong.extend(gone.map(|known| {
        format!(
            "{} names x86-64 no more ({}): strike it from the list",
            known.file, known.reason
        )
    }));
    wrong
}

/// Whether a file is one of the processor's own, or of tests: these run real programs.
fn is_apart(path: &Path) -> bool {
    let module = path.with_extension("");
    let apart = [NAME, "tests", "proof"];
    module
        .iter()
        .any(|part| apart.iter().any(|name| part == *name))
}

/// A file's text without the tests at its end.
fn code(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {")
        .map_or(text, |tests| &text[..tests])
}

fn names(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = || text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    NAMES.iter().any(|name| text.contains(name)) || words().any(|word| REGISTERS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(Path::new(path), text.to_owned()).expect("Rust");
        let all = violations(&[source]);
        all.into_iter()
            .filter(|said| !said.contains("strike"))
            .collect()
    }

    #[test]
    fn a_name_elsewhere_is_refused_in_code_and_comments() {
        for text in [
            "use object::elf::EM_X86_64;",
            "// As amd64 has it.",
            "const RSP: u8 = 7;",
        ] {
            assert_eq!(said("xtask/src/x.rs", text).len(), 1, "{text}");
            assert!(said("xtask/src/x86_64.rs", text).is_empty());
            assert!(said("profiler-common/src/walk/x86_64/call.rs", text).is_empty());
            assert!(said("profiler-common/src/walk/tests.rs", text).is_empty());
            let test = format!("#[cfg(test)]\nmod tests {{\n{text}\n}}");
            assert!(said("xtask/src/x.rs", &test).is_empty());
        }
        assert!(said("xtask/src/x.rs", "let corrspond = 1;").is_empty());
    }

    #[test]
    fn an_exception_without_need_is_to_be_struck() {
        assert_eq!(violations(&[]).len(), EXCEPTIONS.len());
    }
}
