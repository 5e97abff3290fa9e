//! Kernel stacks, walked by the kernel itself; and frames at their leaf that are no code.
#![expect(unsafe_code, reason = "the kernel's walker takes a raw pointer")]

use crate::platform::{maps::Scratch, word::Word};
use aya_ebpf::{EbpfContext, helpers::generated::bpf_get_stack};
use core::hint::black_box;
use profiler_common::abi::{
    FrameTag, FrameWord, Header, KERNEL_SCRATCH_WORDS, MAX_KERNEL_FRAMES, StackEnd,
};

/// Makes the kernel walk its own stack into `record`, header included, behind `LED` other words; the header is zero if
/// there is no stack.
#[inline(always)]
pub(crate) fn walk<const LED: usize>(
    ctx: &impl EbpfContext,
    record: &'static [Word; KERNEL_SCRATCH_WORDS],
) {
    const BYTES: usize = MAX_KERNEL_FRAMES * 8;
    const { assert!(1 + LED + MAX_KERNEL_FRAMES <= KERNEL_SCRATCH_WORDS) };
    let place = record[1 + LED].as_ptr().cast();
    // SAFETY: the record has room for the header, those words, and as many as said.
    let bytes = unsafe { bpf_get_stack(ctx.as_ptr(), place, BYTES as u32, 0) };
    record[0].store(if bytes <= 0 || bytes > BYTES as i64 {
        0
    } else if bytes == BYTES as i64 {
        Header::new((LED + MAX_KERNEL_FRAMES) as u16, StackEnd::Truncated).0
    } else {
        Header::new(LED as u16 + bytes as u16 / 8, StackEnd::Root).0
    });
}

/// As [`walk`], behind a word that says what the stack is of.
#[inline(always)]
pub(crate) fn walk_behind(ctx: &impl EbpfContext, scratch: &'static Scratch, leaf: FrameWord) {
    scratch.kernel[1].store(leaf.0);
    walk::<1>(ctx, &scratch.kernel);
    if scratch.kernel[0].load() == 0 {
        scratch.kernel[0].store(1);
    }
}

/// Makes `leaf` the kernel record in the scratch memory, preceded by a file's name of so many words, which are already
/// there.
#[inline(always)]
pub(crate) fn put_leaf(scratch: &Scratch, leaf: FrameWord, name_words: u64) {
    if name_words == 0 {
        scratch.kernel[1].store(leaf.0);
        scratch.kernel[0].store(1);
        return;
    }
    scratch.kernel[1].store(FrameWord::new(FrameTag::FileName, name_words as u32).0);
    // Hidden from the compiler, which knows the number and would drop the check that the verifier needs.
    let behind = 2 + black_box(name_words as usize);
    if let Some(place) = scratch.kernel.get(behind) {
        place.store(leaf.0);
    }
    scratch.kernel[0].store(1 + name_words + 1);
}
