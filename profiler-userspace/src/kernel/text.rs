//! The kernel's code, read from its memory, where it is as it runs: moved and patched.
//!
//! In: addresses. Out: bytes. It loads one small program and attaches nothing.

use super::errors::{loading, missing, rejected};
use super::load::{OBJECT, loader_without_kernel_types, raise_memlock};
use super::pruned;
use super::shared::{array, map};
use super::{Error, Result};
use aya::Ebpf;
use aya::programs::{ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun as _};
use profiler_common::abi::{ProgramId, SYMBOL_BYTES, TEXT_BYTES};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// The bytes at some addresses of the kernel, as far as they can be read from the first on.
///
/// # Errors
/// When BPF programs may not be loaded or run.
pub fn kernel_text(addresses: Range<u64>) -> Result<Vec<u8>> {
    raise_memlock();
    let only = pruned::without(OBJECT, |name| {
        let is_it = |id: &&ProgramId| id.name().as_bytes() == name;
        ProgramId::ALL
            .iter()
            .find(is_it)
            .is_some_and(|id| *id != ProgramId::ReadText)
    });
    let mut ebpf = loader_without_kernel_types().load(&only).map_err(loading)?;
    let copied = array(&mut ebpf, "SYMBOL")?;
    let words = map("SYMBOL", &copied, 0, SYMBOL_BYTES / 8)?;
    let program = loaded(&mut ebpf)?;
    let length = usize::try_from(addresses.end.saturating_sub(addresses.start)).unwrap_or(0);
    let first = addresses.start & !(TEXT_BYTES as u64 - 1);
    let skipped = (addresses.start - first) as usize;
    let mut bytes = Vec::new();
    while bytes.len() < skipped + length {
        let mut options = RawTracePointRunOptions::new();
        options.args[0] = first + bytes.len() as u64;
        program
            .test_run(options)
            .map_err(|error| rejected(ProgramId::ReadText, error))?;
        let (text, behind) = words.words().split_at(TEXT_BYTES / 8);
        let was_read = behind[0].load(Relaxed).to_ne_bytes()[0] == 1;
        if !was_read {
            break;
        }
        let text = text.iter().map(|word| word.load(Relaxed).to_ne_bytes());
        bytes.extend(text.flatten());
    }
    bytes.truncate(skipped + length);
    Ok(bytes.split_off(skipped.min(bytes.len())))
}

fn loaded(ebpf: &mut Ebpf) -> Result<&mut RawTracePoint> {
    let id = ProgramId::ReadText;
    let program = ebpf
        .program_mut(id.name())
        .ok_or_else(|| missing(id.name()))?;
    let program: &mut RawTracePoint =
        program
            .try_into()
            .map_err(|error: ProgramError| Error::Loader {
                step: "looking for a program",
                detail: error.to_string(),
            })?;
    program.load().map_err(|error| rejected(id, error))?;
    Ok(program)
}
