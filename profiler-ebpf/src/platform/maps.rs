//! Every map, with its size and the reason for it.
//!
//! All but the ring buffer and the threads off the CPU are arrays: the verifier turns their lookups into plain arithmetic, they take
//! no locks (so a firing in an NMI can use them), and user space maps them into its memory and drains
//! them without one system call per entry. What several CPUs write is atomic. The sizes here are
//! placeholders where they say so: user space sets them from the number of CPUs and the memory limit.

use crate::platform::{
    config,
    word::{Half, Word},
};
use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    btf_maps,
    macros::{btf_map, map},
    maps::{Array, HashMap, ProgramArray, RingBuf},
};
use profiler_common::{
    abi::{
        self, ASLEEP_WORDS, BLOCK_WORDS, CODE_SLOT_BITS, CodeState, Fallbacks,
        KERNEL_SCRATCH_WORDS, KEY_WORDS, LastRequest, MAPPING_EVENT_WORDS, MAX_KERNEL_FRAMES,
        MAX_RULES, MAX_USER_FRAMES, NAME_BYTES, PATH_BYTES, ProgramId, SCRATCH_BYTES, SLAB_WORDS,
        SYMBOL_BYTES, Switches, ThreadEntry, USER_SCRATCH_WORDS, WakerEntry,
    },
    runtime::{CURSOR_WORDS, DESCRIPTOR_WORDS, DESCRIPTORS, FETCH_WORDS, RuntimeKind, own_frames},
    walk::{
        ahead::AHEAD,
        maple::PIVOTS,
        native::{FRAME_WORDS, Frame},
    },
};

/// One event's counters on one CPU.
pub(crate) type Counters = abi::Counters<Word>;

/// Which sides are live and how far they are filled.
pub(crate) type Control = abi::Control<Word>;

/// Weight and count of one key.
pub(crate) type Tally = abi::Tally<Word, [Word; KEY_WORDS]>;

/// One block of the stack store.
pub(crate) type Block = [Word; BLOCK_WORDS];

/// One slot of the index of code.
pub(crate) type Code = abi::Code<Word>;

/// Where a firing puts its records together: too large for the BPF stack.
#[repr(C, align(64))]
pub(crate) struct Scratch {
    pub(crate) user: [Word; USER_SCRATCH_WORDS],
    pub(crate) kernel: [Word; KERNEL_SCRATCH_WORDS],
    /// The words of a [`profiler_common::abi::SampleKey`].
    pub(crate) key: [Word; KEY_WORDS],
    pub(crate) walk: Walk,
    /// Words read of a node of the tree of mappings.
    pub(crate) node: [Word; PIVOTS + 1],
    /// Not zero while a firing that others may interrupt uses this.
    pub(crate) taken: Word,
    pub(crate) context: Context,
    pub(crate) wait: Wait,
    pub(crate) report: Report,
    pub(crate) chains: Chains,
    /// Rules of return addresses, each in the set that its address has. Behind all else: the rest is within reach of an
    /// instruction's offset, of 16 bits, so that it takes no registers of its own.
    pub(crate) returns: [ReturnRules; RETURN_SETS],
}

const _: () = assert!(size_of::<Scratch>() == SCRATCH_BYTES);

/// The chains of interpreters that a walk follows.
#[repr(C)]
pub(crate) struct Chains {
    /// One bit for each [`RuntimeKind`]: whether its chain was begun.
    pub(crate) begun: Word,
    /// Whether nothing more comes of it.
    pub(crate) over: Word,
    /// How many words of the stack are not of native frames.
    pub(crate) words: Word,
    /// How many steps were taken along chains in this walk.
    pub(crate) steps: Word,
    /// The thread's.
    pub(crate) thread_pointer: Word,
    /// The native frame that is looked at: a [`profiler_common::runtime::NativeFrame`].
    pub(crate) address: Word,
    pub(crate) sp: Word,
    pub(crate) caller_sp: Word,
    pub(crate) is_first: Word,
    /// Its rbp and rbx, as far as they are known: the last words of a [`Frame`].
    pub(crate) registers: [Word; 3],
    /// The number of the runtime whose level is being shown, plus one; zero if none is.
    pub(crate) pending: Word,
    /// Not zero once the native walk has ended and the rest of a chain is shown.
    pub(crate) is_rest: Word,
    /// The word of the native frame that runs it, which goes behind it.
    pub(crate) last: Word,
    /// Where the next word of the stack goes.
    pub(crate) place: Word,
    /// Where the level's first word is.
    pub(crate) level: Word,
    /// The flags of the last step.
    pub(crate) flags: Word,
    /// Words read of the process last; see [`profiler_common::runtime::Process::fetch`].
    pub(crate) fetched: [Word; FETCHED_PLACES],
    /// By [`RuntimeKind`].
    pub(crate) of: [Chain; RUNTIME_KINDS],
    /// The address of the first of the runtime's own frames; zero if none was shown.
    pub(crate) own_base: Word,
    /// How far from it the others lie, as [`profiler_common::runtime::own_frames`] packs that.
    pub(crate) own_frames: [Word; MAX_USER_FRAMES / own_frames::IN_WORD],
}

/// Places for kinds of runtimes: a power of two.
pub(crate) const RUNTIME_KINDS: usize = RuntimeKind::ALL.len().next_power_of_two();

/// Places for what was read of the process: a power of two, so that the verifier need not follow what becomes of others.
pub(crate) const FETCHED_PLACES: usize = FETCH_WORDS.next_power_of_two();

/// The chain of one runtime.
#[repr(C)]
pub(crate) struct Chain {
    /// The number of the file's descriptor.
    pub(crate) descriptor: Word,
    /// Load bias of the file.
    pub(crate) bias: Word,
    pub(crate) cursor: [Word; CURSOR_WORDS],
}

/// User space's description of a file with a runtime.
pub(crate) type Descriptor = [Word; DESCRIPTOR_WORDS];

/// Context of a firing; see [`crate::sample::context::SampleContext`].
#[repr(C)]
pub(crate) struct Context {
    /// The process's ID, and the thread's in the lower half.
    pub(crate) ids: Word,
    pub(crate) incarnation: Word,
    pub(crate) now: Word,
}

/// A wait that is over, and is about to be counted.
#[repr(C)]
pub(crate) struct Wait {
    pub(crate) since: Word,
    pub(crate) until: Word,
    /// How far the beginnings of the thread's last waits lay apart.
    pub(crate) interval: Word,
}

/// A mapping that is reported to user space.
#[repr(C)]
pub(crate) struct Report {
    /// The process's `mm_struct`.
    pub(crate) space: Word,
    /// How far the file's path has been put together.
    pub(crate) mount: Word,
    pub(crate) entry: Word,
    pub(crate) length: Word,
    /// How many ranges were looked at.
    pub(crate) turn: Word,
    /// The last of them, which need not be looked at again for the same stack.
    pub(crate) ranges: [Range; FOUND],
    /// A [`profiler_common::abi::MappingEventRecord`], and the path behind it; or a
    /// [`profiler_common::abi::FunctionEventRecord`], and its strings.
    pub(crate) record: [Word; REPORT_WORDS],
    /// Where a function's strings lie: what it belongs to, its name, its file.
    pub(crate) pieces: [Piece; 3],
    pub(crate) first_line: Word,
    pub(crate) extra: Word,
}

/// A [`profiler_common::runtime::Piece`].
#[repr(C)]
pub(crate) struct Piece {
    pub(crate) address: Word,
    pub(crate) bytes: Word,
    pub(crate) encoding: Word,
}

/// Addresses that were looked at.
#[repr(C)]
pub(crate) struct Range {
    pub(crate) start: Word,
    pub(crate) end: Word,
}

/// Words of the longest record of a mapping.
pub(crate) const REPORT_WORDS: usize = MAPPING_EVENT_WORDS + (PATH_BYTES + NAME_BYTES) / 8;

/// A user stack being walked.
#[repr(C)]
pub(crate) struct Walk {
    /// The first frame's registers by their DWARF numbers.
    pub(crate) registers: [Word; 16],
    frame: [Word; FRAME_WORDS],
    /// How many words are noted.
    pub(crate) words: Word,
    /// Why it ended; a [`profiler_common::abi::StackEnd`].
    pub(crate) end: Word,
    /// Fallbacks beside unwind instructions: the bits of a [`profiler_common::abi::Fallbacks`].
    pub(crate) fallbacks: Word,
    /// Which of `known` is the process's.
    pub(crate) place: Word,
    /// Recent findings in the memory of several processes.
    pub(crate) known: [Known; KNOWN],
    /// How often the index of code had changed when the walk began.
    pub(crate) code_changes: Word,
    /// Not zero where firings find programs at the first instruction of a function.
    pub(crate) at_entry: Word,
    /// Rules that were found lately, each at the place that its address has.
    pub(crate) rules: [Remembered; REMEMBERED],
    /// The number of what lies where in the process's memory; see [`Known::memory_state`].
    pub(crate) memory_state: Word,
    /// The last number given.
    pub(crate) memory_states: Word,
    /// Words read of the stack last.
    pub(crate) stack: StackCopy,
    /// The search for a return address.
    pub(crate) guess: Guess,
}

/// A search for a return address; see [`crate::walk::guess`].
#[repr(C)]
pub(crate) struct Guess {
    /// The stack pointer of the last frame in code that no file explains.
    pub(crate) sp: Word,
    /// How many words there were when that was noted; zero if there is none.
    pub(crate) noted: Word,
    /// How many words there were when the walk's first search began; zero if none did.
    pub(crate) first_words: Word,
    /// How the walk ends if nothing is found; a [`profiler_common::abi::StackEnd`].
    pub(crate) end: Word,
    /// [`Walk::fallbacks`] when the first search began.
    pub(crate) fallbacks: Word,
    /// As `first_words`, when the last search began.
    pub(crate) words: Word,
    /// The chains' state when the first search began, and when the last did.
    pub(crate) chains: [SavedChains; 2],
    /// The address of the next word to look at.
    pub(crate) place: Word,
    /// Where the words end that are looked at.
    pub(crate) last: Word,
    /// Not zero if the last row that was not followed is a root's.
    pub(crate) is_root_row: Word,
    /// Not zero while the frame that is looked at is no more than such a word.
    pub(crate) is_trying: Word,
}

/// State that [`Chains`] go back to.
#[repr(C)]
pub(crate) struct SavedChains {
    pub(crate) begun: Word,
    pub(crate) over: Word,
    pub(crate) words: Word,
    pub(crate) steps: Word,
    /// By [`RuntimeKind`]; only of those that were begun.
    pub(crate) cursors: [[Word; CURSOR_WORDS]; RUNTIME_KINDS],
}

/// A copy of words of a user stack; see [`profiler_common::walk::ahead`].
#[repr(C)]
pub(crate) struct StackCopy {
    /// The address of the first, in bytes.
    pub(crate) start: Word,
    /// How many there are.
    pub(crate) count: Word,
    pub(crate) words: [Word; AHEAD],
}

/// For how many addresses rules are kept from one firing to the next. A power of two. Finding a rule
/// touches a dozen lines of memory, which the program has pushed out of the caches since the last firing;
/// this touches one. 4 KiB.
pub(crate) const REMEMBERED: usize = 128;

/// A rule that was found.
#[repr(C, align(32))]
pub(crate) struct Remembered {
    /// The address of the object's own that it holds for.
    pub(crate) address: Word,
    /// Which table, in which state of the index of code; zero if there is no rule here yet.
    pub(crate) table: Word,
    /// The [`profiler_common::abi::Rule`].
    pub(crate) rule: Word,
}

/// In how many sets rules of return addresses are kept: a power of two. 8 KiB.
pub(crate) const RETURN_SETS: usize = 128;

/// A set of rules of return addresses: a line of memory. The first is the latest.
#[repr(C, align(64))]
pub(crate) struct ReturnRules(pub(crate) [ReturnRule; 2]);

/// The rule of a return address of one process, in one state of its memory.
#[repr(C, align(32))]
pub(crate) struct ReturnRule {
    pub(crate) address: Word,
    /// See [`Known::memory_state`]; zero if there is no rule here yet.
    pub(crate) memory_state: Word,
    /// A [plain](profiler_common::abi::Rule::is_plain) one.
    pub(crate) rule: Word,
    /// The [`RuntimeKind`] whose levels a frame there may run, plus one; zero if it runs none.
    pub(crate) runtime: Word,
}

/// For how many processes answers are kept from one firing to the next. A power of two.
pub(crate) const KNOWN: usize = 8;

/// How many answers are kept of one process: stacks go back and forth between few objects. A power of two.
pub(crate) const FOUND: usize = 4;

/// Recent findings in the memory of one process.
#[repr(C)]
pub(crate) struct Known {
    /// Which process, and which state of its mappings and of the index of code; see
    /// [`crate::walk::code_cache::refresh`].
    pub(crate) stamp: [Word; 4],
    /// A number that no other stamp has or had on this CPU slot; zero where the kernel does not count changes of
    /// mappings.
    pub(crate) memory_state: Word,
    /// How often the kernel was asked what lies at an address.
    pub(crate) turn: Word,
    /// Which of `found` is looked at.
    pub(crate) current: Word,
    /// The descriptor of a runtime that was met in this process, or zero.
    pub(crate) runtime: Word,
    /// Load bias of that runtime's file.
    pub(crate) bias: Word,
    /// How many searches for return addresses found nothing, one after the other; see [`crate::walk::guess`].
    pub(crate) fruitless: Word,
    /// The last answers.
    pub(crate) found: [Found; FOUND],
}

/// Cached answer for the addresses of one range: the code there.
#[repr(C)]
pub(crate) struct Found {
    pub(crate) start: Word,
    pub(crate) end: Word,
    /// Distance from an address to the object's own: own = address + shift.
    pub(crate) shift: Word,
    /// The [`CodeState`] of published code, or one of the constants.
    pub(crate) kind: Word,
}

impl Found {
    /// No code.
    pub(crate) const NOWHERE: u64 = 0;
    /// Code without rows.
    pub(crate) const NO_TABLE: u64 = CodeState::BARE.0;
    /// Code of a file that has not been published.
    pub(crate) const UNKNOWN: u64 = 1 << 35;
}

impl Scratch {
    /// That of a CPU slot.
    #[inline(always)]
    pub(crate) fn of(cpu_slot: u32) -> Option<&'static Self> {
        SCRATCH.get(cpu_slot)
    }
}

impl Found {
    /// Whether it says what lies at an address.
    #[inline(always)]
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.start.load() <= address && address < self.end.load()
    }
}

impl Walk {
    /// Whether the firing found the program at the first instruction of a function.
    #[inline(always)]
    pub(crate) fn is_at_entry(&self) -> bool {
        config::has(Switches::AT_ENTRY) && self.at_entry.load() != 0
    }

    /// Notes that something else than unwind instructions was used.
    #[inline(always)]
    pub(crate) fn add_fallback(&self, fallback: Fallbacks) {
        let used = self.fallbacks.load();
        self.fallbacks.store(used | u64::from(fallback.bits()));
    }

    /// The frame that is looked at.
    #[inline(always)]
    pub(crate) fn frame(&self) -> Frame {
        let mut words = [0; FRAME_WORDS];
        for (word, place) in words.iter_mut().zip(&self.frame) {
            *word = place.load();
        }
        Frame::from_words(words)
    }

    /// The stack pointer of the frame that is looked at.
    #[inline(always)]
    pub(crate) fn sp(&self) -> u64 {
        // As `Frame::words` has it.
        self.frame[1].load()
    }

    /// Saves rbp and rbx of the frame that is looked at, as far as known; see [`kept_registers`].
    #[inline(always)]
    pub(crate) fn save_registers(&self, into: &[Word; 3]) {
        // As `Frame::words` has it.
        for (place, word) in into.iter().zip(&self.frame[2..]) {
            place.store(word.load());
        }
    }

    /// Sets the stack pointer of the frame that is looked at.
    #[inline(always)]
    pub(crate) fn set_sp(&self, sp: u64) {
        // As `Frame::words` has it.
        self.frame[1].store(sp);
    }

    /// Sets the frame to look at next.
    #[inline(always)]
    pub(crate) fn put(&self, frame: Frame) {
        for (place, word) in self.frame.iter().zip(frame.words()) {
            place.store(word);
        }
    }
}

/// Cache of the kernel stacks with which a CPU's threads began to wait.
#[repr(C, align(64))]
pub(crate) struct KernelStacks {
    /// Words read of the running task's kernel stack.
    pub(crate) stack: [Word; STACK_WORDS],
    /// How many words of it.
    pub(crate) words: Word,
    /// Where it lies.
    pub(crate) address: Word,
    /// Which of `known` it is, or takes the place of.
    pub(crate) chosen: Word,
    /// How many stacks were not found.
    pub(crate) turn: Word,
    /// In which words the return addresses of a stack are found.
    pub(crate) found: [Word; CACHED_FRAMES],
    /// Not zero if one is found twice.
    pub(crate) ambiguous: Word,
    /// The word in which the last return address was found that is not the tracepoint's own.
    pub(crate) last: Word,
    pub(crate) known: [KernelStack; CACHED_STACKS],
}

/// How much of a kernel stack is looked at: 1 KiB. A wait for a lock has about half of that below the scheduler.
pub(crate) const STACK_WORDS: usize = 128;

/// How many frames a kernel stack may have that is kept.
pub(crate) const CACHED_FRAMES: usize = 30;

/// How many kernel stacks are kept for each CPU, 32 KiB of them. A power of two.
pub(crate) const CACHED_STACKS: usize = 128;

/// A kernel stack that was walked.
#[repr(C, align(64))]
pub(crate) struct KernelStack {
    /// Its record's header; zero if there is none here.
    pub(crate) header: Word,
    /// Where it is stored: a [`profiler_common::abi::StackPosition`], and 32 bits higher the epoch, plus one.
    pub(crate) stored: Word,
    /// Its addresses from leaf to root, each with the word of the stack that it was found in
    /// in the place of its 16 highest bits.
    pub(crate) frames: [Word; CACHED_FRAMES],
}

/// One value: which sides are live and how far they are filled.
#[map]
pub(crate) static CONTROL: Array<Control> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// One value per CPU (set at load: where threads' waits are recorded): kernel stacks that were walked lately; see [`crate::walk::kstack_cache`].
#[map]
pub(crate) static KERNEL_STACKS: Array<KernelStacks> = Array::with_max_entries(1, 0);

/// One value per *CPU slot* (set at load): its counters.
///
/// A CPU slot is one event's place on one CPU. Where there are several events, the one may interrupt the other, so
/// each has counters and scratch memory of its own: the CPU slots of the first are the numbers of the CPUs, those of the
/// others follow one after the other ([`crate::sample::context::cpu_slot`]). Those of switches begin at `Config::switch_cpu_slots`.
#[map]
pub(crate) static COUNTERS: Array<Counters> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// One value per CPU slot (set at load): where a firing puts its stacks together. Not a per-CPU
/// array, whose lookup is a call before Linux 6.10.
#[map]
pub(crate) static SCRATCH: Array<Scratch> = Array::with_max_entries(1, 0);

/// Both sides' tallies, one side after the other (capacity set at load).
#[map]
pub(crate) static TALLIES: Array<Tally> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// Both sides' index from hash to tally (size set at load: twice the tallies, a power of two).
#[map]
pub(crate) static TALLY_INDEX: Array<Word> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// Both sides' stacks (blocks set at load).
#[map]
pub(crate) static STACKS: Array<Block> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// Both sides' index from hash to stack (size set at load).
#[map]
pub(crate) static STACK_INDEX: Array<Word> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// One bit per task ID that the kernel gives out (size set at load from `kernel.pid_max`): is it a
/// target? Exact, never full, and cheaper than any hash.
#[map]
pub(crate) static TARGETS: Array<Word> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Processes announced lately: slot by hash, holding the last process that fell into it. A process that
/// was pushed out is announced again, which does no harm. 4,096 slots, 32 KiB.
#[map]
pub(crate) static ANNOUNCED: Array<Word> = Array::with_max_entries(ANNOUNCED_SLOTS, 0);

/// Slots of [`ANNOUNCED`].
pub(crate) const ANNOUNCED_SLOTS: u32 = 4096;

/// Mappings reported lately, the files behind them, and the stacks whose mappings were reported: slot by hash,
/// as in [`ANNOUNCED`]. 32,768 slots, 256 KiB: a machine at work has a few thousand such mappings at a time.
#[map]
pub(crate) static REPORTED: Array<Word> = Array::with_max_entries(REPORTED_SLOTS, 0);

/// Slots of [`REPORTED`].
pub(crate) const REPORTED_SLOTS: u32 = 32 << 10;

/// Kernel events (size set at load): with the ring buffer's own header, a record of 32 bytes for each new process,
/// and one of 72 and a path for each mapping that is sampled in it.
#[map]
pub(crate) static KERNEL_EVENTS: RingBuf = RingBuf::with_byte_size(64 * 1024, 0);

/// The index of code: see [`crate::walk::code_index`]. 8,192 slots, 512 KiB; user space takes out what was used
/// least before it is full.
#[map]
pub(crate) static CODE: Array<Code> = Array::with_max_entries(1 << CODE_SLOT_BITS, BPF_F_MMAPABLE);

/// The rules that rows name: 512 KiB.
#[map]
pub(crate) static RULES: Array<Word> = Array::with_max_entries(MAX_RULES as u32, BPF_F_MMAPABLE);

/// One slab of table memory.
pub(crate) type Slab = btf_maps::Array<[Half; SLAB_WORDS], 1, { BPF_F_MMAPABLE as usize }>;

/// Table memory: rows and what leads to them, in slabs that user space makes as it needs them (their
/// most is set at load from the limit on memory).
#[btf_map]
pub(crate) static SLABS: btf_maps::ArrayOfMaps<Slab, 1> = btf_maps::ArrayOfMaps::new();

/// User space's descriptions of files with runtimes: 32 KiB. The first has the kinds of all files.
#[map]
pub(crate) static RUNTIMES: Array<Descriptor> =
    Array::with_max_entries(DESCRIPTORS as u32, BPF_F_MMAPABLE);

/// Successors of perf events' programs, by [`ProgramId`]. The kernel wants all programs of such a map to be of one type.
#[map]
pub(crate) static NEXT_PERF_EVENT: ProgramArray =
    ProgramArray::with_max_entries(ProgramId::ALL.len() as u32, 0);

/// As [`NEXT_PERF_EVENT`], of uprobes' programs.
#[map]
pub(crate) static NEXT_UPROBE: ProgramArray =
    ProgramArray::with_max_entries(ProgramId::ALL.len() as u32, 0);

/// As [`NEXT_PERF_EVENT`], of raw tracepoints' programs.
#[map]
pub(crate) static NEXT_TRACEPOINT: ProgramArray =
    ProgramArray::with_max_entries(ProgramId::ALL.len() as u32, 0);

/// Functions of interpreters that were reported lately: slot by hash, as in [`ANNOUNCED`]. 16,384 slots, 128 KiB.
#[map]
pub(crate) static FUNCTIONS: Array<Word> = Array::with_max_entries(FUNCTION_SLOTS, 0);

/// Slots of [`FUNCTIONS`].
pub(crate) const FUNCTION_SLOTS: u32 = 16 << 10;

/// Result of [`crate::walk::mappings::note_code`]: a [`profiler_common::abi::CodeKey`].
#[map]
pub(crate) static ASKED_CODE: Array<[Word; 3]> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The kernel's name for an address; see [`crate::symbol`].
#[map]
pub(crate) static SYMBOL: Array<[u8; SYMBOL_BYTES]> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Threads that are off the CPU or have been, by their IDs in the initial namespace (size set at load).
/// A hash, because IDs are sparse and threads end. No program that may interrupt another uses it, and
/// but for a thread's first and last switch its entry is only looked up, which takes no lock.
#[map]
pub(crate) static THREADS: HashMap<u32, ThreadEntry> = HashMap::with_max_entries(1, 0);

/// The last requests for memory of threads, by their IDs in the initial namespace (size set at load: as [`THREADS`], where
/// these are wanted).
#[map]
pub(crate) static REQUESTS: HashMap<u32, LastRequest> = HashMap::with_max_entries(1, 0);

/// Wakers of the threads that are off the CPU, by the IDs of these in the initial namespace (size
/// set at load: as [`THREADS`], where wakers are wanted).
#[map]
pub(crate) static WAKERS: HashMap<u32, WakerEntry> = HashMap::with_max_entries(1, 0);

/// One value: where a thread that is looked at from outside is described, before it goes to user space.
/// Not the CPU's scratch, which a switch meanwhile would use.
#[map]
pub(crate) static ASLEEP: Array<[Word; ASLEEP_WORDS + MAX_KERNEL_FRAMES]> =
    Array::with_max_entries(1, 0);

/// Log lines (size set at load: a page unless they are wanted); see [`crate::platform::log`]. The name is the one
/// that aya's reader asks for.
#[map]
pub(crate) static AYA_LOGS: RingBuf = RingBuf::with_byte_size(4096, 0);

/// How many log lines found [`AYA_LOGS`] full.
#[map]
pub(crate) static LOGS_DROPPED: Array<Word> = Array::with_max_entries(1, BPF_F_MMAPABLE);
