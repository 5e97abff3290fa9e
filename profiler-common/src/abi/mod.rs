//! Every type that crosses the boundary between kernel and user space, re-exported flat.

mod allocation;
mod call;
mod code;
mod config;
mod counter;
mod counters;
mod notice;
mod pod;
mod sample;
mod sleeper;
mod stack;
mod table;

pub use allocation::{Allocator, Asking, LAST_ASKING_WORDS, LastAsking, SizeAt};
pub use call::{
    AwaitedLock, CallWeight, Descriptors, FileKinds, LeafKind, LeafWord, NAME_WORDS, PAGE_BYTES,
    WantedCalls, descriptors, waits_for_lock,
};
pub use code::{
    CODE_PROBES, CODE_SLOT_BITS, Code, CodeKey, CodeState, SLAB_BITS, SLAB_WORDS, slab_of,
    used_clock,
};
pub use config::{
    CallChoice, Config, FaultLayout, FileLayout, MappingLayout, Switches, TargetKind, TaskLayout,
};
pub use counter::{Class, Counter};
pub use counters::{COUNTERS_WORDS, Control, Counters, Live, SIDES, SYMBOL_BYTES, Side};
pub use notice::{MAPPED_WORDS, Mapped, NAME_BYTES, Notice, NoticeKind, PATH_BYTES, PATH_STEPS};
pub use sample::{COMM_BYTES, KEY_WORDS, MAX_EVENTS, SampleKey, Stamp, Tally, ThreadState};
pub use sleeper::{
    ARRIVED_WORD, ASLEEP_WORDS, AWAITED_WORD, Asleep, FAULT_ADDRESS_WORD, FAULT_DECIDED,
    FAULT_HAS_WAITED, FAULT_PLACE_WORD, FAULT_SWITCHES_WORD, FAULT_WORD, GAP_WORD, KeptRegisters,
    LEFT_WORD, Pair, SINCE_WORD, SLEEPER_KEY_WORD, SLEEPER_WORDS, Sleeper, States, TaskState,
    WAKE_RACE_NS, WAKER_KEY_WORD, WAKER_WORDS, WOKE_WORD, WOKEN_WORD, Waker,
};
pub use stack::{
    BLOCK_WORDS, Block, Header, KERNEL_SCRATCH_WORDS, MAX_KERNEL_FRAMES, MAX_USER_FRAMES,
    PADDING_WORDS, RECORD_BLOCKS, StackEnd, StackPosition, USER_SCRATCH_WORDS,
};
pub use table::{How, MAX_RULES, Origin, PageRows, Row, Rule, Slot, TABLE_PAGE_BITS};
