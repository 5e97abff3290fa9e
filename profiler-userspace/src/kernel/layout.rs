//! Offsets of the running kernel's structs.
//!
//! In: the kernel's type information. Out: the layouts that `profiler_common` declares. Pure.

use super::btf::{Btf, Structs};
use profiler_common::abi::{FaultLayout, KERNEL_LAYOUTS, KernelLayout, Path};

/// All structs that a path of a layout begins with.
pub(super) fn structs<'a>(btf: &'a Btf<'a>) -> Structs<'a> {
    let fields = KERNEL_LAYOUTS.iter().flat_map(|(_, fields, _)| *fields);
    let assumed = KERNEL_LAYOUTS.iter().flat_map(|(_, _, assumed)| *assumed);
    let paths = fields.flat_map(|field| field.paths.iter().copied());
    let paths = paths.chain(assumed.map(|assumed| assumed.path));
    btf.structs(paths.filter_map(|path| path.first().copied()))
}

/// This layout; none if a field is missing or an assumption is broken.
pub(super) fn layout<L: KernelLayout>(structs: &Structs<'_>) -> Option<L> {
    L::ask(|path| structs.find(path)).ok()
}

/// The fields that tell whether a page fault waits; otherwise what the kernel lacks to watch page faults.
pub(super) fn fault_layout(btf: &Btf<'_>, structs: &Structs<'_>) -> Result<FaultLayout, String> {
    /// Changes whenever the mappings do.
    const MAPPING_LOCKS: Path = &["mm_struct", "mm_lock_seq"];
    let all = |tracepoints: &[&str]| {
        let absent = |name: &&&str| !btf.has_name(&format!("btf_trace_{name}"));
        match tracepoints.iter().find(absent) {
            Some(name) => Err(format!("the tracepoint {name}")),
            None => Ok(()),
        }
    };
    all(&["page_fault_user", "page_fault_kernel"])?;
    let layout = FaultLayout::ask(|path| structs.find(path)).map_err(|path| path.join("."))?;
    // If mappings have locks of their own (Linux 6.4), a fault that waited for a page read by another is
    // retried under another lock and is then a minor one (the machine's `fault.c`).
    if structs.find(MAPPING_LOCKS).is_none() {
        return Ok(FaultLayout {
            task_switches: 0,
            ..layout
        });
    }
    all(&["mmap_lock_acquire_returned", "mmap_lock_released"])?;
    Ok(layout)
}
