//! Where a program's stacks begin.
//!
//! In: the code at the entry point. Out: that function, and the one that it hands to `__libc_start_main`, which is `main`;
//! of a C library, the function that coroutines return to.
//! The code is the C library's `crt1.o`. Other beginnings are known by their address alone.

use super::Function;
use super::arch::start::{START_BYTES, handed_over};
use super::context::start_context;
use crate::object::{ElfAddress, Image};

/// The first functions of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    entry: Option<u64>,
    main: Option<u64>,
    context: Option<u64>,
}

impl Start {
    /// Those of a program; none in a library.
    pub(super) fn find(image: &Image<'_>) -> Self {
        let is_code = |&at: &u64| image.code_at(at).is_some();
        let entry = image.entry().filter(is_code);
        let main = entry.and_then(|entry| {
            let code = image.bytes(entry, START_BYTES);
            handed_over(&code, entry).filter(is_code)
        });
        Self {
            entry,
            main,
            context: None,
        }
    }

    /// With where coroutines begin.
    pub(super) fn with_context(self, image: &Image<'_>) -> Self {
        Self {
            context: start_context(image),
            ..self
        }
    }

    /// The function whose first byte is a return address, although no call precedes it. As all
    /// return addresses, it is looked up one byte before.
    pub(super) fn returned_to(&self, address: u64) -> Option<Function> {
        let begin = self.context.filter(|&at| at == address.wrapping_add(1))?;
        Some(self.function(begin))
    }

    /// Name or beginning of the function that begins at an address.
    pub(super) fn function(&self, begin: u64) -> Function {
        match Some(begin) {
            at if at == self.main => Function::Named("main".to_owned()),
            at if at == self.entry => Function::Named("_start".to_owned()),
            at if at == self.context => Function::Named("__start_context".to_owned()),
            _ => Function::Begins(ElfAddress(begin)),
        }
    }

    /// Where they begin.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.entry.into_iter().chain(self.main)
    }
}
