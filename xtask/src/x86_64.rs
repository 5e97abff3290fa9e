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

/// Files that name x86-64 elsewhere, each with the reason. Most of them choose the files of the processor for a folder: one line
/// each, which the next processor adds to.
const EXCEPTIONS: &str = "\
profiler-common/src/abi/mod.rs: chooses the numbers of system calls
profiler-common/src/abi/kernel_layout.rs: names the field of the kernel's with the thread pointer, in the one table of such fields
profiler-common/src/runtime/mod.rs: chooses the registers of runtimes
profiler-common/src/walk/mod.rs: chooses the registers of walks
profiler-ebpf/src/task/mod.rs: chooses where a task keeps its registers
profiler-userspace/src/code/mod.rs: chooses the instructions that say where functions begin
profiler-userspace/src/object/mod.rs: chooses ELF's numbers
profiler-userspace/src/profile/mod.rs: chooses the kernel's names
profiler-userspace/src/runtime/mod.rs: chooses the instructions of runtimes
profiler-userspace/src/unwind/mod.rs: chooses the rules and what they are read from
xtask/src/layering.rs: says that only these folders may decode instructions
xtask/src/main.rs: chooses this file";

fn exceptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXCEPTIONS.lines().filter_map(|row| row.split_once(": "))
}

/// Everything that is wrong with the list, one sentence each.
pub(crate) fn violations(sources: &[Source]) -> Vec<String> {
    let named: Vec<&Path> = sources
        .iter()
        .filter(|source| !is_apart(&source.path) && names(code(&source.text)))
        .map(|source| source.path.as_path())
        .collect();
    let is_listed = |path: &&Path| exceptions().any(|(known, _)| Path::new(known) == *path);
    let unlisted = named.iter().filter(|path| !is_listed(path));
    let mut wrong: Vec<String> = unlisted
        .map(|path| {
            format!(
                "{} names x86-64, which is for files of that name",
                path.display()
            )
        })
        .collect();
    let gone = exceptions().filter(|(known, _)| !named.contains(&Path::new(known)));
    wrong.extend(gone.map(|(known, reason)| {
        format!("{known} names x86-64 no more ({reason}): strike it from the list")
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
        assert_eq!(violations(&[]).len(), exceptions().count());
    }
}
