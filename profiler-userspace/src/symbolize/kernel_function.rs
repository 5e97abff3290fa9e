//! One function of the kernel, as all sources of kernel names give it.
//!
//! In: a symbol of the kernel, or what the kernel prints for an address. Out: its name. Never: which function lies at
//! an address.

use super::demangle::unmangled;
use super::dwarf::SourceLine;

/// A function of the kernel, at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelFunction {
    /// Its name.
    pub name: String,
    /// How far into it the address is. Unlike the address, this means the same after the next start of this kernel.
    pub offset: u64,
    /// Where in its source, if that was asked for and is known.
    pub source: Option<SourceLine>,
}

impl KernelFunction {
    /// The function that the kernel prints for an address, as `name+0x1f/0x40 [module]`.
    pub(super) fn printed(text: &str) -> Option<Self> {
        let symbol = text.split(' ').next().unwrap_or_default();
        let (name, offset) = match symbol.rsplit_once('+') {
            Some((name, place)) => {
                let digits = place
                    .split('/')
                    .next()
                    .and_then(|it| it.strip_prefix("0x"))?;
                (name, u64::from_str_radix(digits, 16).ok()?)
            }
            None => (symbol, 0),
        };
        Some(Self {
            name: readable(name.as_bytes())?,
            offset,
            source: None,
        })
    }
}

/// A kernel symbol without its module, so that all sources agree.
pub(super) fn readable(symbol: &[u8]) -> Option<String> {
    let name = symbol
        .split(|&byte| byte == b' ')
        .next()
        .filter(|name| !name.is_empty())?;
    Some(unmangled(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_prints_is_a_name_and_a_place() {
        let at = |text: &str| {
            KernelFunction::printed(text).map(|function| (function.name, function.offset))
        };
        let is = |name: &str, offset| Some((name.to_owned(), offset));
        assert_eq!(at("schedule+0x1f/0x40"), is("schedule", 0x1f));
        assert_eq!(at("do_two.isra.0+0x0/0x40"), is("do_two.isra.0", 0));
        assert_eq!(at("fuse_read+0x10/0x90 [fuse]"), is("fuse_read", 0x10));
        for nonsense in [
            "",
            " [fuse]",
            "+0x1/0x2",
            "a+0xg/0x2",
            "a+1",
            "a+0x1ffffffffffffffff",
        ] {
            assert_eq!(at(nonsense), None, "{nonsense:?}");
        }
    }
}
