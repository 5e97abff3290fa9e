//! Every type that crosses the boundary between kernel and user space, re-exported flat.

mod allocation;
mod call;
mod cgroup;
mod code;
mod config;
mod counter;
mod counters;
mod fallbacks;
mod frame_word;
mod kernel_event;
mod kernel_layout;
mod kinds;
mod layout;
mod mapping_check;
mod pod;
mod programs;
mod runtime_kinds;
mod sample;
mod stack;
mod table;
mod thread;
pub(crate) mod x86_64;

pub use allocation::{Allocator, Asking, LastRequest, SizeAt};
pub use arch::{PAGE_BYTES, descriptors, waits_for_lock};
pub use call::{AwaitedLock, CallWeight, Descriptors, FileKinds, WantedCalls};
pub use cgroup::{CGROUP_SLOTS, CROWDED_CGROUP, CgroupSlot, CgroupState};
pub use code::{
    CODE_PROBES, CODE_SLOT_BITS, Code, CodeKey, CodeState, SLAB_BITS, SLAB_WORDS, slab_of,
    used_clock,
};
pub use config::{CallChoice, Config, Switches, TargetKind};
pub use counter::{Class, Counter};
pub use counters::{
    COUNTERS_WORDS, Control, Counters, Live, SIDES, SYMBOL_BYTES, Side, TEXT_BYTES,
};
pub use fallbacks::Fallbacks;
pub use frame_word::{FUNCTION_BITS, FrameTag, FrameWord, NAME_WORDS};
pub use kernel_event::{
    CgroupEventRecord, CopiedString, FUNCTION_EVENT_WORDS, FUNCTION_FILE_BYTES,
    FUNCTION_NAME_BYTES, FunctionEventRecord, KernelEventKind, KernelEventRecord,
    MAPPING_EVENT_WORDS, MappingEventRecord, NAME_BYTES, OWNER_BYTES, PATH_BYTES, PATH_STEPS,
};
pub use kernel_layout::{
    Assumed, CgroupLayout, FaultLayout, FileLayout, KernelField, KernelLayout, MappingLayout, Path,
    TaskLayout,
};
pub use kinds::RuntimeKind;
pub use layout::{StructLayout, Zero};
pub use mapping_check::{MappingCheck, MappingKey};
pub use programs::{MAX_EVENTS, ProgramId};
pub use runtime_kinds::RuntimeKinds;
pub use sample::{COMM_BYTES, KEY_WORDS, SampleKey, Stamp, Tally, ThreadState, comm_in};
pub use stack::{
    BLOCK_WORDS, Block, Header, KERNEL_SCRATCH_WORDS, MAX_KERNEL_FRAMES, MAX_USER_FRAMES,
    MAX_USER_WORDS, PADDING_WORDS, RECORD_BLOCKS, SCRATCH_BYTES, StackEnd, StackPosition,
    USER_SCRATCH_WORDS,
};
pub use table::{
    MAX_RULES, Origin, PageRows, READ_TOGETHER_BITS, Rule, RuleKind, Slot, TABLE_PAGE_BITS,
    TableRow,
};
pub use thread::{
    ASLEEP_WORDS, Asleep, FaultPhase, KeptRegisters, OFTEN_WAITING_SLOTS, PageFault, States,
    TaskState, ThreadEntry, WAKE_RACE_NS, WaitPair, WakerEntry,
};

pub(crate) use x86_64 as arch;

/// Every struct that crosses the boundary. One that is declared and not listed here is a warning of the compiler's.
pub const BOUNDARY: &[StructLayout] = &[
    Config::LAYOUT,
    CallChoice::LAYOUT,
    TaskLayout::LAYOUT,
    MappingLayout::LAYOUT,
    FileLayout::LAYOUT,
    FaultLayout::LAYOUT,
    CgroupLayout::LAYOUT,
    CgroupSlot::LAYOUT,
    Control::LAYOUT,
    Side::LAYOUT,
    Counters::LAYOUT,
    Tally::LAYOUT,
    SampleKey::LAYOUT,
    ThreadEntry::LAYOUT,
    PageFault::LAYOUT,
    WakerEntry::LAYOUT,
    WaitPair::LAYOUT,
    LastRequest::LAYOUT,
    Asleep::LAYOUT,
    KernelEventRecord::LAYOUT,
    MappingEventRecord::LAYOUT,
    FunctionEventRecord::LAYOUT,
    CgroupEventRecord::LAYOUT,
    Code::LAYOUT,
    CodeKey::LAYOUT,
    TableRow::LAYOUT,
    PageRows::LAYOUT,
];

/// Layouts to look up in the kernel's type information: name, fields and assumptions of each.
pub const KERNEL_LAYOUTS: &[(&str, &[KernelField], &[Assumed])] = &[
    ("TaskLayout", TaskLayout::FIELDS, TaskLayout::ASSUMED),
    (
        "MappingLayout",
        MappingLayout::FIELDS,
        MappingLayout::ASSUMED,
    ),
    ("FileLayout", FileLayout::FIELDS, FileLayout::ASSUMED),
    ("FaultLayout", FaultLayout::FIELDS, FaultLayout::ASSUMED),
    ("CgroupLayout", CgroupLayout::FIELDS, CgroupLayout::ASSUMED),
];

const _: () = {
    assert!(size_of::<SampleKey>() == KEY_WORDS * 8);
    assert!(size_of::<Tally>() == 64, "a tally is one cache line");
    assert!(size_of::<Code>() == 64, "a slot is one cache line");
};
