//! Where Ruby keeps what it does not export: since 3.3 a thread's variable, and the functions that run a level.
//!
//! In: an object's file. Out: their places, read out of code. The variable is the first that `rb_errinfo` asks for. The loop,
//! `vm_exec_core`, is the one large function that loads its first instruction through registers of its own, and what calls it
//! is `rb_vm_exec`. Where there is more than one candidate, none is believed.

use super::super::arch::ruby::{calls, thread_variable};
use super::super::function_bounds::{extent, starts};
use super::super::only;
use super::{SMALLEST, body};
use crate::object::Image;
use std::ops::Range;

/// The most code that is looked through, in bytes.
const MAX_CODE: u64 = 64 << 20;

/// `ruby_current_ec`: the address of the word with the module's number, and where it lies in the module's block. Read out of
/// the code for the general dynamic model (*ELF Handling For Thread-Local Storage*).
pub(super) fn context(image: &Image<'_>) -> Option<[u64; 2]> {
    let function = image.symbol("rb_errinfo")?;
    let mut code = [0; 32];
    image.copy(function.address, &mut code)?;
    let pair = thread_variable(&code, function.address)?;
    let [_, offset] = image.words(pair)?;
    Some([pair, offset])
}

/// `rb_vm_exec` and `vm_exec_core`.
pub(super) fn functions(image: &Image<'_>) -> Option<(Range<u64>, Range<u64>)> {
    let starts = starts(image)?;
    let large = starts
        .windows(2)
        .filter(|pair| pair[1] - pair[0] >= SMALLEST);
    let inner = only(large.filter_map(|pair| {
        body(image, pair[0])?;
        Some(pair[0])
    }))?;
    let (first, last) = (*starts.first()?, *starts.last()?);
    let bytes = last.checked_sub(first).filter(|bytes| *bytes <= MAX_CODE)?;
    let mut code = vec![0; usize::try_from(bytes).ok()?];
    image.copy(first, &mut code)?;
    let callers = calls(&code, first).filter_map(|(at, called)| {
        let caller = starts
            .partition_point(|start| *start <= at)
            .checked_sub(1)?;
        (called == inner).then(|| starts[caller])
    });
    let execute = only(callers)?;
    Some((extent(image, execute)?, extent(image, inner)?))
}

#[cfg(test)]
mod tests {
    use super::super::inner_loop;
    use super::*;
    use std::fs::File;

    #[test]
    fn what_an_object_exports_is_found_without_that() {
        let Ok(file) = File::open("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1") else {
            return;
        };
        let image = Image::read(&file).unwrap();
        let exported = image.symbol("rb_vm_exec").unwrap();
        let (execute, inner) = functions(&image).unwrap();
        assert_eq!(execute.start, exported.address);
        assert_eq!(Some(inner), inner_loop(&image, exported));
    }
}
