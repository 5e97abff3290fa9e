//! Which runtime compiles code in a process.
//!
//! In: the names of the files that the process has mapped. Out: a [`Runtime`] that can write a map of its
//! code. Used for advice only: names prove nothing.

use super::Backing;
use super::backing::Backings;
use super::mappings::Process;
use std::os::unix::ffi::OsStrExt as _;

/// A runtime that compiles code and can write a map of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runtime {
    /// Node.js.
    Node,
    /// The Java virtual machine.
    Java,
    /// CPython, which compiles only trampolines.
    Python,
    /// .NET.
    DotNet,
    /// LuaJIT, also within OpenResty.
    LuaJit,
    /// PHP's opcache.
    Php,
    /// Ruby's YJIT.
    Ruby,
    /// Erlang's and Elixir's BEAM.
    Beam,
}

/// Prefixes of file names that belong to a runtime. Libraries come first: what a program links says more than
/// its own name.
const SIGNS: &[(&str, Runtime)] = &[
    ("libjvm.so", Runtime::Java),
    ("libcoreclr.so", Runtime::DotNet),
    ("libnode.so", Runtime::Node),
    ("libluajit", Runtime::LuaJit),
    ("libruby", Runtime::Ruby),
    ("beam.smp", Runtime::Beam),
    ("node", Runtime::Node),
    ("luajit", Runtime::LuaJit),
    ("openresty", Runtime::LuaJit),
    ("opcache.so", Runtime::Php),
    ("libphp", Runtime::Php),
    ("php", Runtime::Php),
    ("ruby", Runtime::Ruby),
    ("libpython3", Runtime::Python),
    ("python3", Runtime::Python),
];

impl Runtime {
    fn among<'a>(modules: impl Iterator<Item = &'a [u8]> + Clone) -> Option<Self> {
        let is_there = |sign: &&str| {
            modules
                .clone()
                .any(|module| module.starts_with(sign.as_bytes()))
        };
        SIGNS
            .iter()
            .find_map(|(sign, runtime)| is_there(sign).then_some(*runtime))
    }

    /// The runtime that a process seems to be.
    pub(super) fn of(process: &Process, backings: &Backings) -> Option<Self> {
        let read = process.readings.iter();
        let mappings = read
            .flat_map(|reading| &reading.mappings)
            .chain(process.reported.mappings());
        let modules = mappings.filter_map(|mapping| match backings.get(mapping.backing) {
            Backing::File(file) => Some(file.module().as_bytes()),
            Backing::Vdso | Backing::Memory { .. } => None,
        });
        Self::among(modules)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ProcessKey, Processes};
    use super::*;

    #[test]
    fn a_runtime_is_recognized_by_its_mappings() {
        for (modules, runtime) in [
            (vec!["java", "libc.so.6", "libjvm.so"], Some(Runtime::Java)),
            (vec!["node", "libc.so.6"], Some(Runtime::Node)),
            (vec!["postgres", "libLLVM.so.22"], None),
            (vec!["nginx", "libluajit-5.1.so.2"], Some(Runtime::LuaJit)),
            (vec!["python3.12", "libc.so.6"], Some(Runtime::Python)),
            (vec!["app", "libcoreclr.so"], Some(Runtime::DotNet)),
            (vec![], None),
        ] {
            let found = Runtime::among(modules.iter().map(|module| module.as_bytes()));
            assert_eq!(found, runtime, "{modules:?}");
        }
    }

    #[test]
    fn a_test_program_is_not_a_runtime() {
        let ourselves = ProcessKey {
            tgid: std::process::id(),
            incarnation: 1,
        };
        let mut processes = Processes::new();
        processes.see(ourselves);
        assert_eq!(processes.runtime(ourselves), None);
    }
}
