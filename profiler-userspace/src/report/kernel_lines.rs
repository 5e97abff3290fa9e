//! Lines of the kernel's frames: where they come from, and what to say of it.
//!
//! In: how names are wanted, and later how that went. Out: the sources of lines, and a sentence where lines are missing, with
//! the reason and what brings them.

use super::findings::Finding;
use crate::object::Fetch;
use crate::report::distro::Distro;
use crate::symbolize::{KernelFiles, KernelLines, KernelLining, Naming, SymbolMemory};
use crate::text::number::{counted, mebibytes};

/// Lines of the kernel that runs here; `fetch` is asked for what is not installed.
pub(crate) fn lines<'a>(naming: &Naming, fetch: Option<&'a Fetch<'a>>) -> KernelLines<'a> {
    let files = KernelFiles::here(&release(), &naming.debug_directories);
    KernelLines::new(files, naming.memory, fetch)
}

/// The release of the kernel that runs here.
fn release() -> String {
    let machine = rustix::system::uname();
    machine.release().to_string_lossy().into_owned()
}

/// The finding on missing lines of the kernel.
pub(crate) fn on_lines(lining: &KernelLining, distro: &Distro) -> Option<Finding> {
    let asked = distro.servers_asked();
    let or_fetch = if asked { "" } else { ", or use --debuginfod" };
    let remedy = || match distro.kernel_lines(&release()) {
        Some(command) => format!("{command}{or_fetch}"),
        None => format!(
            "install this build's vmlinux with debug information, or name its directory with --debug-dir{or_fetch}"
        ),
    };
    let nor_servers = if asked {
        ", and no debuginfod server has it"
    } else {
        ""
    };
    let text = match lining {
        KernelLining::NotNeeded | KernelLining::Told { beyond: 0, left: 0 } => return None,
        KernelLining::Told { beyond, left: 0 } => format!(
            "{} in kernel modules or BPF programs have no lines: --kernel-lines reads vmlinux only",
            counted(*beyond as u64, "place")
        ),
        KernelLining::Told { left, .. } => format!(
            "{} in the kernel have no lines: its debug information needs more than --max-symbol-memory ({} by default)",
            counted(*left as u64, "place"),
            mebibytes(SymbolMemory::default().bytes),
        ),
        KernelLining::Missing { wanted } => format!(
            "no kernel lines: {} does not exist{nor_servers}; {}",
            wanted.display(),
            remedy()
        ),
        KernelLining::Another { found } => format!(
            "no kernel lines: {} is of another build or has no debug information{nor_servers}; {}",
            found.display(),
            remedy()
        ),
        KernelLining::Unproven => {
            "no kernel lines: /sys/kernel/notes does not say which build runs; mount /sys".to_owned()
        }
        KernelLining::Hidden => {
            "no kernel lines: the kernel hides its load address; run with sudo or grant CAP_SYSLOG".to_owned()
        }
        KernelLining::Unfit { found: Some(found) } => format!(
            "no kernel lines: {} does not match the running kernel's symbols (same build ID); reinstall it",
            found.display()
        ),
        KernelLining::Unfit { found: None } => {
            "no kernel lines: the debuginfod server's file does not match the running kernel's symbols (same build ID); \
             use --debug-dir"
                .to_owned()
        }
    };
    Some(Finding::new("lines", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lining: &KernelLining) -> Option<String> {
        Some(on_lines(lining, &Distro::unknown())?.text)
    }

    #[test]
    fn available_kernel_lines_are_not_mentioned() {
        assert_eq!(said(&KernelLining::NotNeeded), None);
        assert_eq!(said(&KernelLining::Told { beyond: 0, left: 0 }), None);
    }

    #[test]
    fn missing_kernel_lines_are_reported_with_reason_and_remedy() {
        let (wanted, found) = (
            "/usr/lib/debug/boot/vmlinux-6".into(),
            "/boot/vmlinux-6".into(),
        );
        for (lining, words) in [
            (
                KernelLining::Missing { wanted },
                ["/usr/lib/debug/boot/vmlinux-6", "--debug-dir"],
            ),
            (
                KernelLining::Another { found },
                ["/boot/vmlinux-6 is of another build", "--debug-dir"],
            ),
            (KernelLining::Unproven, ["/sys/kernel/notes", "mount"]),
            (KernelLining::Hidden, ["hides", "CAP_SYSLOG"]),
            (
                KernelLining::Unfit {
                    found: Some("/x".into()),
                },
                ["/x", "reinstall"],
            ),
            (
                KernelLining::Unfit { found: None },
                ["debuginfod", "--debug-dir"],
            ),
            (
                KernelLining::Told { beyond: 2, left: 0 },
                ["2 places", "modules"],
            ),
            (
                KernelLining::Told { beyond: 2, left: 1 },
                ["1 place", "--max-symbol-memory"],
            ),
        ] {
            let text = said(&lining).unwrap();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }

    #[test]
    fn servers_are_named_as_a_remedy_or_as_asked() {
        let missing = KernelLining::Missing {
            wanted: "/usr/lib/debug/boot/vmlinux-6".into(),
        };
        let text = said(&missing).unwrap();
        assert!(text.contains("or use --debuginfod"), "{text}");
        let asked = on_lines(&missing, &Distro::here(true)).unwrap().text;
        assert!(asked.contains("no debuginfod server has it"), "{asked}");
        assert!(!asked.contains("--debuginfod"), "{asked}");
    }
}
