//! Mappings by address: the kernel's own of the process that is running.
//!
//! Read without a lock. The helper that finds a mapping (`bpf_find_vma`) takes one, which inside an
//! interrupt it can do only once in each firing. The firing is in an RCU read section, as all programs
//! are, so nodes and mappings that others take out stay readable; whatever was read may be out of date,
//! as any answer is a moment later.

use crate::{
    platform::{
        config::config,
        loops::{Turn, repeat},
        maps::{ASKED_CODE, SCRATCH, Scratch},
        memory,
        word::Word,
    },
    task,
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::CodeKey,
    walk::maple::{self, LEVELS, Node, PIVOTS},
};

/// Mappings of executable memory (`include/linux/mm.h`, `VM_EXEC`).
const EXECUTABLE: u64 = 4;

/// The binary logarithm of what `vm_pgoff` counts in: bytes of a page.
const PAGE_BITS: u64 = 12;

/// A mapping by the address of its `vm_area_struct`.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    pub(crate) vma: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The process's `mm_struct`; zero for a kernel thread.
#[inline(always)]
pub(crate) fn space() -> u64 {
    memory::kernel(task::current_address() + u64::from(config!(mapping.task_mm)))
}

/// A number that is another one after each change of the process's mappings. None where the kernel does not
/// count.
///
/// `mm_lock_seq` grows whenever the lock is given back under which every such change is made
/// (`vma_end_write_all` in `include/linux/mmap_lock.h`). So what was read in the middle of a change goes
/// with the number that is left behind at its end.
#[inline(always)]
pub(crate) fn changes(space: u64) -> Option<u32> {
    let offset = config!(mapping.mm_changes);
    (offset != 0).then(|| memory::kernel(space + u64::from(offset)))
}

/// The mapping that an address of a process lies in.
#[inline(always)]
pub(crate) fn find(space: u64, scratch: &'static Scratch, address: u64) -> Option<Mapping> {
    let vma = entry(space, &scratch.node, address)?;
    let at = vma + u64::from(config!(mapping.vma_start));
    let [start, end] = memory::kernel_words(at)?;
    // The tree is not locked: what was found is believed only if it says the same.
    (start <= address && address < end).then_some(Mapping { vma, start, end })
}

/// Entry for an address in the tree of mappings.
#[inline(always)]
fn entry(space: u64, words: &'static [Word; PIVOTS + 1], address: u64) -> Option<u64> {
    let mut descent = Descent {
        words,
        address,
        entry: memory::kernel(space + u64::from(config!(mapping.mm_root))),
        found: 0,
    };
    repeat(LEVELS, &mut descent);
    (descent.found != 0).then_some(descent.found)
}

/// On the way from the root of the tree to what it holds for an address, a level each turn.
struct Descent {
    words: &'static [Word; PIVOTS + 1],
    address: u64,
    /// The way to the next node.
    entry: u64,
    /// Entry that was found; zero as long as none is.
    found: u64,
}

impl Turn for Descent {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        let Some(node) = Node::from_entry(self.entry) else {
            return ControlFlow::Break(());
        };
        let (place, words) = (node.address(), self.words);
        let pivots = place + u64::from(config!(mapping.node_pivots));
        if memory::copy_pivots(words, pivots).is_none() {
            return ControlFlow::Break(());
        }
        let slots = if node.has_gaps() {
            config!(mapping.gap_node_slots)
        } else {
            config!(mapping.node_slots)
        };
        let slot = maple::slot(|place| words[place].load(), node.has_gaps(), self.address);
        self.entry = memory::kernel(place + u64::from(slots) + slot * 8);
        if node.is_leaf() {
            self.found = self.entry;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl Mapping {
    #[inline(always)]
    pub(crate) fn is_executable(self) -> bool {
        let flags: u64 = memory::kernel(self.vma + u64::from(config!(mapping.vma_flags)));
        flags & EXECUTABLE != 0
    }

    /// Key of the code that is mapped, and the offset of the mapping's first byte in its file.
    #[inline(always)]
    pub(crate) fn code(self) -> (CodeKey, u64) {
        let at = self.vma + u64::from(config!(mapping.vma_offset));
        let [offset, file] = memory::kernel_words(at).unwrap_or_default();
        if file == 0 {
            let key = CodeKey {
                inode: memory::kernel(self.vma + u64::from(config!(mapping.vma_private))),
                ..CodeKey::default()
            };
            return (key, 0);
        }
        let inode: u64 = memory::kernel(file + u64::from(config!(mapping.file_inode)));
        let of_inode = |offset: u32| inode + u64::from(offset);
        let super_block: u64 = memory::kernel(of_inode(config!(mapping.inode_super)));
        let device: u32 = memory::kernel(super_block + u64::from(config!(mapping.super_device)));
        let seconds: u64 = memory::kernel(of_inode(config!(mapping.inode_seconds)));
        let nanoseconds: u32 = memory::kernel(of_inode(config!(mapping.inode_nanoseconds)));
        let key = CodeKey {
            device: u64::from(device) + 1,
            inode: memory::kernel(of_inode(config!(mapping.inode_number))),
            modified: seconds << 30 | u64::from(nanoseconds),
        };
        (key, offset << PAGE_BITS)
    }
}

/// The address of the file that is mapped; zero if there is none.
#[inline(always)]
pub(crate) fn file(vma: u64) -> u64 {
    // It stands behind the offset.
    memory::kernel(vma + u64::from(config!(mapping.vma_offset)) + 8)
}

/// Mount and directory entry of the file that is mapped; none if there is no file.
#[inline(always)]
pub(crate) fn path(vma: u64) -> Option<[u64; 2]> {
    let file = file(vma);
    memory::kernel_words(file + u64::from(config!(mapping.file_path)))
}

/// Notes what the kernel knows the running task's memory at an address by; all zeros if nothing is
/// mapped there.
#[inline(always)]
pub(crate) fn note_code(address: u64) {
    let (Some(asked), Some(scratch)) = (ASKED_CODE.get(0), SCRATCH.get(task::cpu())) else {
        return;
    };
    let key =
        find(space(), scratch, address).map_or(CodeKey::default(), |mapping| mapping.code().0);
    asked[0].store(key.device);
    asked[1].store(key.inode);
    asked[2].store(key.modified);
}
