//! Where the running kernel keeps what the kernel half reads.
//!
//! In: the kernel's type information. Out: the layouts that `profiler_common` declares. Pure.

use super::btf::{Btf, Structs};
use profiler_common::abi::{FaultLayout, KERNEL_LAYOUTS, KernelLayout, Path};

/// All structs that a layout has a path from.
pub(super) fn structs<'a>(btf: &'a Btf<'a>) -> Structs<'a> {
    let fields = KERNEL_LAYOUTS.iter().flat_map(|(_, fields, _)| *fields);
    let assumed = KERNEL_LAYOUTS.iter().flat_map(|(_, _, assumed)| *assumed);
    let paths = fields.flat_map(|field| field.paths.iter().copied());
    let paths = paths.chain(assumed.map(|assumed| assumed.path));
    btf.structs(paths.filter_map(|path| path.first().copied()))
}

/// This layout; none if a field is not found, or what the kernel half takes for granted is not so.
pub(super) fn layout<L: KernelLayout>(structs: &Structs<'_>) -> Option<L> {
    L::ask(|path| structs.find(path)).ok()
}

/// Where the fields lie that tell of a page fault whether it waits; otherwise what the kernel lacks to have page faults
/// looked at.
pub(super) fn fault_layout(btf: &Btf<'_>, structs: &Structs<'_>) -> Result<FaultLayout, String> {
    /// Has another value after each change of the mappings.
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
    // Where mappings have locks of their own (Linux 6.4), a fault that has waited for a page that another was reading is begun
    // anew under another lock, and is a minor one (`do_user_addr_fault` in `arch/x86/mm/fault.c`).
    if structs.find(MAPPING_LOCKS).is_none() {
        return Ok(FaultLayout {
            task_switches: 0,
            ..layout
        });
    }
    all(&["mmap_lock_acquire_returned", "mmap_lock_released"])?;
    Ok(layout)
}
