//! Kinds of frames, as other tools tell of them.
//!
//! In: what a tool says of the code that a frame is in: an address, a module. Out: a [`FrameKind`], and what a frame
//! without a name is called. The one place for all readers, so that one frame has the same kind in each file.

use crate::profile::FrameKind;

/// The code of a module, which is a file's path or a name in brackets, at such an address; 0 where that is not known.
pub(super) fn of_code(module: &str, address: u64) -> FrameKind {
    let module = without_deleted(module);
    let file = file_name(module);
    match module {
        // Code of the program's at an address of the kernel's.
        "[vsyscall]" => FrameKind::User,
        "inlined" => FrameKind::Inlined,
        _ if is_kernel_address(address) || is_kernel_module(module, file) => FrameKind::Kernel,
        _ if module.starts_with("[JIT]") || module == "[jit]" => FrameKind::Jit,
        _ if file.starts_with("jitted-") => FrameKind::Jit,
        _ if file.starts_with("perf-") && file.ends_with(".map") => FrameKind::Jit,
        _ => FrameKind::User,
    }
}

/// Whether an address is in the half of them that is the kernel's.
pub(super) fn is_kernel_address(address: u64) -> bool {
    address >= 0xffff_8000_0000_0000
}

/// The kernel's own image, its modules as files, and as names in brackets.
fn is_kernel_module(module: &str, file: &str) -> bool {
    const OF_PROGRAMS: [&str; 9] = [
        "[vdso]",
        "[vdso32]",
        "[vvar]",
        "[uprobes]",
        "[heap]",
        "[stack]",
        "[anon]",
        "[jit]",
        "[unknown]",
    ];
    const MODULES: [&str; 6] = [".ko", ".ko.xz", ".ko.gz", ".ko.zst", ".ko.bz2", ".ko.debug"];
    let is_name = |name: &str| {
        let is_plain =
            |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
        !name.is_empty() && name.bytes().all(is_plain)
    };
    let in_brackets = module
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    module.starts_with("[kernel")
        || module.starts_with("[guest.kernel")
        || in_brackets.is_some_and(|name| is_name(name) && !OF_PROGRAMS.contains(&module))
        || file.starts_with("vmlinux")
        || file.starts_with("vmlinuz")
        || MODULES.iter().any(|end| file.ends_with(end))
}

/// A function without a name, by the module that it is in.
pub(super) fn unnamed(module: &str) -> String {
    let module = without_deleted(module);
    match module
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        // `[JIT] tid 100`
        Some((name, _)) => format!("[{name}]"),
        None if file_name(module).is_empty() => "[unknown]".to_owned(),
        None => format!("[{}]", file_name(module)),
    }
}

/// A module's path without what stands behind those of files that are gone.
pub(super) fn without_deleted(module: &str) -> &str {
    module.strip_suffix(" (deleted)").unwrap_or(module)
}

/// A build ID out of hexadecimal digits; empty where these are none.
pub(super) fn build_id(hex: &str) -> Box<[u8]> {
    let byte = |at: usize| {
        let digits = hex.get(at..at + 2);
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())
    };
    let bytes: Option<Box<[u8]>> = (0..hex.len()).step_by(2).map(byte).collect();
    bytes.unwrap_or_default()
}

/// The part behind the last slash.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a name, or the address of a function without one, is the kernel's: what stacks of kernels begin with. For
/// tools that say nothing else of a frame.
pub(super) fn is_kernel_root(name: &str) -> bool {
    const ENTRIES: [&str; 9] = [
        "entry_SYSCALL",
        "entry_SYSENTER",
        "entry_INT80",
        "asm_",
        "ret_from_fork",
        "secondary_startup",
        "do_syscall_64",
        "el0t_",
        "el0_",
    ];
    match super::text::address(name) {
        Some(address) => is_kernel_address(address),
        None => ENTRIES.iter().any(|entry| name.starts_with(entry)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_kernel_is_known_by_its_address_or_its_module() {
        for (module, address) in [
            ("", 0xffff_ffff_8100_0010),
            ("/lib/x.so", 0xffff_ffff_8100_0010),
            ("[kernel.kallsyms]", 0),
            ("[guest.kernel.kallsyms.12]", 0x10),
            ("[nf_tables]", 0x10),
            ("/lib/modules/6.1.0/build/vmlinux", 0x4e_85d9),
            ("/usr/lib/debug/boot/vmlinux-6.1.0", 0x4e_1000),
            ("/lib/modules/6.1.0/kernel/net/nf_tables.ko.xz", 0x1100),
            ("/lib/modules/6.1.0/kernel/net/nf_tables.ko.zst", 0x1100),
        ] {
            assert_eq!(of_code(module, address), FrameKind::Kernel, "{module}");
        }
        for module in [
            "/lib/libko.so",
            "[vdso]",
            "[heap]",
            "/opt/vm/linux",
            "/usr/lib/x.kok",
            "",
            "[unknown]",
        ] {
            assert_eq!(
                of_code(module, 0x7f00_0000_1000),
                FrameKind::User,
                "{module}"
            );
        }
        assert_eq!(
            of_code("[vsyscall]", 0xffff_ffff_ff60_0000),
            FrameKind::User
        );
        for module in [
            "[JIT] tid 100",
            "/tmp/perf-7.map",
            "/home/x/.debug/jit/jitted-7-3.so",
            "[jit]",
        ] {
            assert_eq!(
                of_code(module, 0x7f00_0000_1000),
                FrameKind::Jit,
                "{module}"
            );
        }
    }

    #[test]
    fn functions_without_names_are_called_as_their_modules() {
        for (module, name) in [
            ("/usr/bin/serviced (deleted)", "[serviced]"),
            ("/SYSV00000000 (deleted)", "[SYSV00000000]"),
            ("[JIT] tid 100", "[JIT]"),
            ("[kernel.kallsyms]", "[kernel.kallsyms]"),
            ("//anon", "[anon]"),
            ("", "[unknown]"),
        ] {
            assert_eq!(unnamed(module), name);
        }
    }
}
