//! Lines of the kernel's frames: where they come from, and what to say of it.
//!
//! In: how names are wanted, and later how that went. Out: whom to ask, and a sentence where lines are missing, with
//! the reason and what brings them.

use crate::object::Fetch;
use crate::report::balance::{counted, mebibytes};
use crate::report::distro::Distribution;
use crate::symbolize::{KernelFiles, KernelLines, KernelLining, Naming, SymbolMemory};

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

/// What to say of lines of the kernel that are missing.
pub(crate) fn on_lines(lining: &KernelLining, distribution: &Distribution) -> Option<String> {
    let asked = distribution.servers_asked();
    let brings = || {
        let or_fetch = if asked {
            ""
        } else {
            ", and --debuginfod fetches it where a server has it"
        };
        match distribution.kernel_lines(&release()) {
            Some(command) => format!("{command} brings it{or_fetch}"),
            None => format!(
                "install the vmlinux with debug information of this very build, or name its directory by --debug-dir{or_fetch}"
            ),
        }
    };
    let nor_servers = if asked {
        ", nor did a debuginfod server give it"
    } else {
        ""
    };
    let why = match lining {
        KernelLining::NotNeeded | KernelLining::Told { beyond: 0, left: 0 } => return None,
        KernelLining::Told { beyond, left: 0 } => {
            return Some(format!(
                "{} of the kernel in modules or BPF programs got no lines: --kernel-lines knows of those in vmlinux alone.",
                counted(*beyond as u64, "place")
            ));
        }
        KernelLining::Told { left, .. } => {
            return Some(format!(
                "Note: {} of the kernel got no lines, because its debug information takes more than --max-symbol-memory, {} unless set.",
                counted(*left as u64, "place"),
                mebibytes(SymbolMemory::default().bytes),
            ));
        }
        KernelLining::Missing { wanted } => {
            format!(
                "{} is not there, nor elsewhere{nor_servers}; {}",
                wanted.display(),
                brings()
            )
        }
        KernelLining::Another { found } => format!(
            "{} is of another build than the kernel that runs, or has no debug information{nor_servers}; {}",
            found.display(),
            brings()
        ),
        KernelLining::Unproven => {
            "/sys/kernel/notes does not say which build runs; mount /sys".to_owned()
        }
        KernelLining::Hidden => {
            "the kernel hides where it lies; run with sudo or grant CAP_SYSLOG".to_owned()
        }
        KernelLining::Unfit { found: Some(found) } => format!(
            "what the kernel calls its functions is not what {} does, though it is the same build; reinstall it",
            found.display()
        ),
        KernelLining::Unfit { found: None } => {
            "what the kernel calls its functions is not what the file of a debuginfod server does, though it is the same build; \
             name another by --debug-dir"
                .to_owned()
        }
    };
    Some(format!(
        "Note: kernel functions have no lines because {why}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lining: &KernelLining) -> Option<String> {
        on_lines(lining, &Distribution::unknown())
    }

    #[test]
    fn lines_that_are_there_need_no_word() {
        assert_eq!(said(&KernelLining::NotNeeded), None);
        assert_eq!(said(&KernelLining::Told { beyond: 0, left: 0 }), None);
    }

    #[test]
    fn whatever_is_missing_is_told_with_the_reason_and_a_remedy() {
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
        assert!(text.contains("--debuginfod fetches it"), "{text}");
        let asked = on_lines(&missing, &Distribution::here(true)).unwrap();
        assert!(
            asked.contains("nor did a debuginfod server give it"),
            "{asked}"
        );
        assert!(!asked.contains("--debuginfod"), "{asked}");
    }
}
