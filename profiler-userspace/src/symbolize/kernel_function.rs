//! One function of the kernel, as all sources of kernel names give it.
//!
//! In: a symbol of the kernel. Out: its name. Never: which function lies at an address.

use super::demangle::unmangled;
use super::dwarf::SourceLine;

/// A function of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFunction {
    /// Its name.
    pub name: String,
    /// Where in its source, if that was asked for and is known.
    pub source: Option<SourceLine>,
}

/// A kernel symbol without its module, so that all sources agree.
pub(super) fn readable(symbol: &[u8]) -> Option<String> {
    let name = symbol
        .split(|&byte| byte == b' ')
        .next()
        .filter(|name| !name.is_empty())?;
    Some(unmangled(name))
}
