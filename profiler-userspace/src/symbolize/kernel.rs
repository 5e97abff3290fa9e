//! Names of kernel code.
//!
//! In: addresses, and the kernel's names for them if it can be asked. Out: for each address a name or none,
//! and a [`KernelNaming`] that says why there are none. Never reads `/proc/kallsyms` unless there is an
//! address to name: printing its hundred thousand lines costs the kernel 30 ms.

use super::kernel_function::{KernelFunction, readable};
use super::{KernelLines, KernelLining, at};
use crate::profile::FrameKind;
use crate::profile::normalized::{Location, NamedFunction, NormalizedProfile};
use blazesym::MaybeDefault;
use blazesym::symbolize::source::{self, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use foldhash::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

/// Where the kernel lists its symbols.
pub(super) const KALLSYMS: &str = "/proc/kallsyms";

/// Further from a symbol's start than any function extends, in bytes. `kallsyms` has no sizes, so this limit
/// keeps a symbol from covering all memory after it.
const MAX_FUNCTION_BYTES: usize = 1 << 20;

/// Asks the kernel for the names of some addresses, with how far into the function each is. Answers in their order,
/// none for an address without a name; or not at all.
pub type AskKernel<'a> = &'a mut dyn FnMut(&[u64]) -> Option<Vec<Option<String>>>;

/// Where the names of kernel functions come from.
#[derive(Default)]
pub struct KernelNames<'a> {
    ask: Option<AskKernel<'a>>,
    lines: Option<&'a KernelLines<'a>>,
}

/// Names of the kernel's functions, asked once for all who want to know.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols {
    pub(super) functions: HashMap<u64, KernelFunction>,
    /// Where the names came from, or why they are missing.
    pub naming: KernelNaming,
    /// How lines were found, if they were asked for.
    pub lining: Option<KernelLining>,
}

impl KernelSymbols {
    /// The addresses of all of the kernel's locations in a profile, ascending.
    pub(super) fn addresses(normalized: &NormalizedProfile) -> Vec<u64> {
        let address = |location: &Location| match *location {
            Location::Kernel(address) => Some(address),
            Location::At { .. }
            | Location::Named(_)
            | Location::Within { .. }
            | Location::Unknown => None,
        };
        let mut addresses: Vec<u64> = normalized.locations().iter().filter_map(address).collect();
        addresses.sort_unstable();
        addresses
    }

    /// The function at an address, if it has a name.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        Some(&self.functions.get(&address)?.name)
    }

    /// How far into its function an address is, if that has a name.
    pub(super) fn offset(&self, address: u64) -> Option<u64> {
        Some(self.functions.get(&address)?.offset)
    }

    /// The function at an address, or what stands for it.
    pub(super) fn function(&self, address: u64) -> NamedFunction {
        let function = self.functions.get(&address);
        let source = function.and_then(|function| function.source.as_ref());
        NamedFunction {
            defined: 0,
            name: function.map_or_else(|| at("kernel", address), |function| function.name.clone()),
            kind: FrameKind::Kernel,
            file: source.map_or_else(Arc::default, |source| Arc::clone(&source.file)),
            line: source.map_or(0, |source| source.line),
        }
    }
}

/// How the kernel's functions got their names, or why they have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelNaming {
    /// There was nothing to name.
    #[default]
    NotNeeded,
    /// The kernel was asked.
    Asked,
    /// From `/proc/kallsyms`.
    Listed,
    /// The kernel lists its symbols with all addresses zero.
    Hidden {
        /// The value of `kernel.kptr_restrict`, where it can be read.
        kptr_restrict: Option<u8>,
    },
    /// The kernel's list of symbols cannot be read.
    Unlisted {
        /// Why.
        reason: String,
    },
}

impl KernelNaming {
    /// For a user whose kernel frames have no names: why, and the remedy.
    pub fn complaint(&self) -> Option<String> {
        match self {
            Self::NotNeeded | Self::Asked | Self::Listed => None,
            Self::Hidden {
                kptr_restrict: Some(2),
            } => Some(
                "kernel functions have no names because kernel.kptr_restrict is 2; \
                 mend it with `sysctl kernel.kptr_restrict=1`"
                    .to_owned(),
            ),
            Self::Hidden { .. } => Some(
                "kernel functions have no names because the kernel hides their addresses; \
                 run with sudo or grant CAP_SYSLOG"
                    .to_owned(),
            ),
            Self::Unlisted { reason } => Some(format!(
                "kernel functions have no names because {KALLSYMS} cannot be read: {reason}; \
                 mount /proc, and use a kernel with CONFIG_KALLSYMS"
            )),
        }
    }
}

impl<'a> KernelNames<'a> {
    /// Names from the kernel's list.
    pub fn listed() -> Self {
        Self::default()
    }

    /// Names from the kernel itself; from its list if it does not answer.
    pub fn asked(ask: AskKernel<'a>) -> Self {
        Self {
            ask: Some(ask),
            lines: None,
        }
    }

    /// The same, with lines.
    pub fn with_lines(self, lines: Option<&'a KernelLines<'a>>) -> Self {
        Self { lines, ..self }
    }

    /// How lines were found the last time, if they are asked for.
    pub(super) fn lining(&self) -> Option<KernelLining> {
        self.lines.map(KernelLines::lining)
    }

    /// Names for `addresses`, which are ascending and distinct.
    pub(super) fn name(
        &mut self,
        addresses: &[u64],
    ) -> (Vec<Option<KernelFunction>>, KernelNaming) {
        let (mut functions, naming) = self.name_functions(addresses);
        if let Some(lines) = self.lines {
            lines.add(addresses, &mut functions);
        }
        (functions, naming)
    }

    fn name_functions(&mut self, addresses: &[u64]) -> (Vec<Option<KernelFunction>>, KernelNaming) {
        if addresses.is_empty() {
            return (Vec::new(), KernelNaming::NotNeeded);
        }
        if let Some(ask) = &mut self.ask
            && let Some(names) = ask(addresses).filter(|names| names.len() == addresses.len())
        {
            let functions = names
                .into_iter()
                .map(|name| KernelFunction::printed(&name?));
            return (functions.collect(), KernelNaming::Asked);
        }
        let naming = listing(Path::new(KALLSYMS));
        let names = match naming {
            KernelNaming::Listed => look_up(Path::new(KALLSYMS), addresses),
            _ => vec![None; addresses.len()],
        };
        (names, naming)
    }
}

/// Whether the list can be read and has addresses. Unprivileged readers get zeros, so the first lines show it.
pub(super) fn listing(kallsyms: &Path) -> KernelNaming {
    let mut start = [0; 4096];
    let read = File::open(kallsyms).and_then(|mut file| file.read(&mut start));
    let lines = match read {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is empty")),
        Ok(read) => Ok(&start[..read]),
        Err(error) => Err(error),
    };
    match lines {
        Err(error) => KernelNaming::Unlisted {
            reason: error.to_string(),
        },
        Ok(lines) => {
            let has_addresses = lines.split(|&byte| byte == b'\n').any(|line| {
                let digits = line.split(|&byte| byte == b' ').next().unwrap_or_default();
                digits.iter().any(|&digit| digit != b'0')
            });
            if has_addresses {
                KernelNaming::Listed
            } else {
                let setting = fs::read_to_string("/proc/sys/kernel/kptr_restrict").ok();
                KernelNaming::Hidden {
                    kptr_restrict: setting.and_then(|setting| setting.trim().parse().ok()),
                }
            }
        }
    }
}

fn look_up(kallsyms: &Path, addresses: &[u64]) -> Vec<Option<KernelFunction>> {
    let kernel = source::Kernel {
        kallsyms: MaybeDefault::Some(kallsyms.to_owned()),
        // Its debug information would give inlined functions too, at a gigabyte of memory.
        vmlinux: MaybeDefault::None,
        debug_syms: false,
        ..source::Kernel::default()
    };
    let symbolizer = Symbolizer::builder()
        .enable_code_info(false)
        .enable_inlined_fns(false)
        .enable_demangling(false)
        .build();
    match symbolizer.symbolize(&Source::Kernel(kernel), Input::AbsAddr(addresses)) {
        Ok(symbols) => symbols
            .into_iter()
            .map(|symbol| match symbol {
                Symbolized::Sym(symbol) if symbol.offset < MAX_FUNCTION_BYTES => {
                    Some(KernelFunction {
                        name: readable(symbol.name.as_bytes())?,
                        offset: symbol.offset as u64,
                        source: None,
                    })
                }
                _ => None,
            })
            .collect(),
        Err(_) => vec![None; addresses.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn list(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn function(name: &str, offset: u64) -> KernelFunction {
        KernelFunction {
            name: name.to_owned(),
            offset,
            source: None,
        }
    }

    const LISTED: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81001000 T do_one
ffffffff81001100 t do_two.isra.0
ffffffffc0201000 t fuse_read\t[fuse]
ffffffffc0301000 t bpf_prog_7cc47bbf07148bfe_on_cpu\t[bpf]
";

    #[test]
    fn finds_functions_of_kernel_modules_and_bpf_programs() {
        let file = list(LISTED);
        let addresses = [
            0xffff_ffff_8100_10ff,
            0xffff_ffff_8100_1100,
            0xffff_ffff_c020_1fff,
            0xffff_ffff_c030_1010,
        ];
        let expected = [
            ("do_one", 0xff),
            ("do_two.isra.0", 0),
            ("fuse_read", 0xfff),
            ("bpf_prog_7cc47bbf07148bfe_on_cpu", 0x10),
        ];
        assert_eq!(
            look_up(file.path(), &addresses),
            expected.map(|(name, offset)| Some(function(name, offset))),
        );
    }

    #[test]
    fn the_last_kernel_symbol_has_an_end() {
        let file = list(LISTED);
        assert_eq!(
            look_up(file.path(), &[0xffff_ffff_a000_0000, u64::MAX]),
            [None, None]
        );
    }

    #[test]
    fn hidden_kernel_addresses_are_detected_and_explained() {
        let zeros = list("0000000000000000 T _text\n0000000000000000 T do_one\n");
        let naming = listing(zeros.path());
        assert!(matches!(naming, KernelNaming::Hidden { .. }), "{naming:?}");
        assert_eq!(listing(list(LISTED).path()), KernelNaming::Listed);
        for (restricted, remedy) in [(2, "sysctl kernel.kptr_restrict=1"), (1, "sudo")] {
            let kptr_restrict = Some(restricted);
            let complaint = KernelNaming::Hidden { kptr_restrict }.complaint();
            assert!(complaint.unwrap().contains(remedy));
        }
        assert_eq!(KernelNaming::Listed.complaint(), None);
    }

    #[test]
    fn a_missing_symbol_list_is_reported_with_the_reason() {
        let missing = listing(Path::new("/nowhere/kallsyms"));
        assert!(
            missing.complaint().unwrap().contains("No such file"),
            "{missing:?}"
        );
        let empty = listing(list("").path());
        assert!(empty.complaint().unwrap().contains("empty"));
    }

    #[test]
    fn names_from_the_kernel_itself_come_first() {
        let mut asked = Vec::new();
        let mut ask = |addresses: &[u64]| {
            asked.extend_from_slice(addresses);
            Some(vec![
                Some("schedule+0x1f/0x40".to_owned()),
                Some("fuse_read+0x2/0x9 [fuse]".to_owned()),
                None,
            ])
        };
        let (names, naming) = KernelNames::asked(&mut ask).name_functions(&[1, 2, 3]);
        assert_eq!(
            names,
            [
                Some(function("schedule", 0x1f)),
                Some(function("fuse_read", 2)),
                None
            ]
        );
        assert_eq!(naming, KernelNaming::Asked);
        assert_eq!(asked, [1, 2, 3]);
    }

    #[test]
    fn no_addresses_need_no_query() {
        let mut ask = |_: &[u64]| -> Option<Vec<Option<String>>> { panic!("asked for no address") };
        assert_eq!(
            KernelNames::asked(&mut ask).name(&[]),
            (vec![], KernelNaming::NotNeeded)
        );
    }

    #[test]
    fn a_malformed_answer_is_rejected() {
        let mut ask = |_: &[u64]| Some(vec![Some("one".to_owned())]);
        let (names, naming) = KernelNames::asked(&mut ask).name(&[1, 2]);
        assert_eq!(names.len(), 2);
        assert_ne!(naming, KernelNaming::Asked);
    }
}
