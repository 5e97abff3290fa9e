//! The frames of Go's functions: how large each is at each instruction, as the runtime itself walks its stacks.
//!
//! In: the table (`pcsp` in Go's `runtime/symtab.go`). Out: one [`Frames`] for each function, in the order of their
//! addresses. What contradicts itself is left out. A hostile table costs no more than [`MAX_FUNCTIONS`] and [`SIZE_BYTES`] say.

use super::GoFunctions;
use std::ops::{ControlFlow, Range};

/// The most functions: several times those of the largest known programs.
const MAX_FUNCTIONS: u64 = 1 << 21;

/// How many bytes of the table justify one size. A function of a real program has three to four, and a hundred bytes and
/// more.
const SIZE_BYTES: u64 = 8;

/// A function is at the end of its stack (`FuncFlagTopFrame` in Go's `internal/abi/symtab.go`, since Go 1.17).
const OUTERMOST: u8 = 1;

/// It gives the stack pointer a value that the sizes do not follow (`FuncFlagSPWrite`).
const MOVES_STACK: u8 = 2;

/// It was written in assembly (`FuncFlagAsm`, since Go 1.19).
const ASSEMBLY: u8 = 4;

/// The frames of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frames {
    /// Its code, and the padding behind.
    pub(crate) addresses: Range<u64>,
    /// Its name.
    pub(crate) name: Vec<u8>,
    /// Whether walks of the runtime end there.
    pub(crate) is_outermost: bool,
    /// Whether it changes to other stacks, or aligns its own.
    pub(crate) moves_stack: bool,
    /// Whether it was written in assembly. Go 1.18 does not tell.
    pub(crate) is_assembly: bool,
    /// The bytes between the stack pointer and the return address, each up to an offset in the function.
    pub(crate) sizes: Vec<(u64, i32)>,
}

impl GoFunctions<'_> {
    /// Calls `visit` with each function of which frames are known.
    pub(crate) fn each_frames(&mut self, mut visit: impl FnMut(&Self, Frames)) {
        self.table.hold();
        let left = self.table.bytes() / SIZE_BYTES;
        let mut left = usize::try_from(left).unwrap_or(usize::MAX);
        let mut last = 0;
        for number in 0..self.table.functions().min(MAX_FUNCTIONS) {
            let Some((function, next)) = self.table.numbered(number, self.module.text) else {
                return;
            };
            let addresses = function.entry..next;
            if addresses.is_empty() || addresses.start < last {
                continue;
            }
            last = next;
            let Some(frames) = self.frames(function.record, addresses, left) else {
                continue;
            };
            left -= frames.sizes.len();
            visit(self, frames);
        }
    }

    /// The machine code of a function.
    pub(crate) fn code(&self, addresses: &Range<u64>, most: usize) -> Vec<u8> {
        let bytes = addresses.end.saturating_sub(addresses.start);
        let wanted = usize::try_from(bytes).unwrap_or(usize::MAX).min(most);
        self.image.bytes(addresses.start, wanted)
    }

    /// How many bytes the table has.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.table.bytes()
    }

    fn frames(&self, record: u64, addresses: Range<u64>, most: usize) -> Option<Frames> {
        let flags = self.table.flags(record)?;
        let bytes = addresses.end - addresses.start;
        let mut sizes: Vec<(u64, i32)> = Vec::new();
        self.table
            .each_value(self.table.size_values(record)?, |end, size| {
                if sizes.len() == most || sizes.last().is_some_and(|(last, _)| *last >= end) {
                    return ControlFlow::Break(());
                }
                sizes.push((end.min(bytes), size));
                match end < bytes {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
        (!sizes.is_empty()).then(|| Frames {
            addresses,
            name: self.table.function_name(record).unwrap_or_default(),
            is_outermost: flags & OUTERMOST != 0,
            moves_stack: flags & MOVES_STACK != 0,
            is_assembly: flags & ASSEMBLY != 0,
            sizes,
        })
    }
}
