//! Every type that crosses the boundary between kernel and user space, re-exported flat.

mod books;
mod code;
mod config;
mod counter;
mod notice;
mod pod;
mod sample;
mod sleeper;
mod stack;
mod table;

pub use books::{BOOK_WORDS, Books, Control, Live, SIDES, SYMBOL_BYTES, Side};
pub use code::{
    CODE_PROBES, CODE_SLOT_BITS, Code, CodeKey, CodeState, SLAB_BITS, SLAB_WORDS, slab_of,
    used_clock,
};
pub use config::{Config, MappingLayout, Switches, TargetKind, TaskLayout};
pub use counter::{Class, Counter};
pub use notice::{MAPPED_WORDS, Mapped, NAME_BYTES, Notice, NoticeKind, PATH_BYTES, PATH_STEPS};
pub use sample::{COMM_BYTES, Doing, KEY_WORDS, SampleKey, Stamp, Tally};
pub use sleeper::{
    ARRIVED_WORD, ASLEEP_WORDS, Asleep, KeptRegisters, SINCE_WORD, SLEEPER_KEY_WORD, SLEEPER_WORDS,
    Sleeper, States, TaskState, WOKEN_WORD,
};
pub use stack::{
    BLOCK_WORDS, Block, Header, KERNEL_SCRATCH_WORDS, MAX_KERNEL_FRAMES, MAX_USER_FRAMES,
    PADDING_WORDS, RECORD_BLOCKS, StackEnd, StackPosition, USER_SCRATCH_WORDS,
};
pub use table::{How, MAX_RULES, Origin, PageRows, Row, Rule, Slot, TABLE_PAGE_BITS};
