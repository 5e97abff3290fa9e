//! Every map, with its size and the reason for it.
//!
//! All but the ring buffer and the threads off the CPU are arrays: the verifier turns their lookups into plain arithmetic, they take
//! no locks (so a firing in an NMI can use them), and user space maps them into its memory and drains
//! them without one system call per entry. What several CPUs write is atomic. The sizes here are
//! placeholders where they say so: user space sets them from the number of CPUs and the memory limit.

use crate::{
    events::scratch::Report,
    platform::word::{Half, Word},
    sample::scratch::{Context, Wait},
    walk::{
        kstack_scratch::KernelStacks,
        runtime::scratch::Chains,
        scratch::{RETURN_SETS, ReturnRules, Walk},
    },
};
use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    btf_maps,
    macros::{btf_map, map},
    maps::{Array, HashMap, ProgramArray, RingBuf},
};
use profiler_common::{
    abi::{
        self, ASLEEP_WORDS, BLOCK_WORDS, CGROUP_SLOTS, CODE_SLOT_BITS, KERNEL_SCRATCH_WORDS,
        KEY_WORDS, LastRequest, MAX_KERNEL_FRAMES, MAX_RULES, OFTEN_WAITING_SLOTS, ProgramId,
        SCRATCH_BYTES, SLAB_WORDS, SYMBOL_BYTES, ThreadEntry, USER_SCRATCH_WORDS, WakerEntry,
    },
    runtime::{DESCRIPTOR_WORDS, DESCRIPTORS},
    walk::maple::PIVOTS,
};

/// One event's counters on one CPU.
pub(crate) type Counters = abi::Counters<Word>;

/// Which sides are live and how far they are filled.
pub(crate) type Control = abi::Control<Word>;

/// Weight and count of one key.
pub(crate) type Tally = abi::Tally<Word, [Word; KEY_WORDS]>;

/// One block of the stack store.
pub(crate) type Block = [Word; BLOCK_WORDS];

/// One cgroup.
pub(crate) type Cgroup = abi::CgroupSlot<Word>;

/// One slot of the index of code.
pub(crate) type Code = abi::Code<Word>;

/// Where a firing puts its records together: too large for the BPF stack.
#[repr(C, align(64))]
pub(crate) struct Scratch {
    pub(crate) user: [Word; USER_SCRATCH_WORDS],
    /// Hash of the user stack's record, without the check of its mappings.
    pub(crate) user_hash: Word,
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
    pub(crate) chains: Chains,
    pub(crate) report: Report,
    /// Rules of return addresses, each in the set that its address has. Behind all else: the rest is within reach of an
    /// instruction's offset, of 16 bits, so that it takes no registers of its own.
    pub(crate) returns: [ReturnRules; RETURN_SETS],
}

const _: () = assert!(size_of::<Scratch>() == SCRATCH_BYTES);

/// User space's description of a file with a runtime.
pub(crate) type Descriptor = [Word; DESCRIPTOR_WORDS];

impl Scratch {
    /// That of a CPU slot.
    #[inline(always)]
    pub(crate) fn of(cpu_slot: u32) -> Option<&'static Self> {
        SCRATCH.get(cpu_slot)
    }
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

/// Cgroups that tasks were seen in, or that user space knows, each in a slot near its hash; see [`crate::sample::cgroup`].
/// 16,384 slots, 512 KiB, one where cgroups are not told apart.
#[map]
pub(crate) static CGROUPS: Array<Cgroup> = Array::with_max_entries(CGROUP_SLOTS, BPF_F_MMAPABLE);

/// Threads of whose waits a first draw leaves some out: slot by the lower bits of the ID in the initial namespace, holding one such thread;
/// see [`crate::probe::wait_sampling`]. 16,384 slots, 128 KiB, one where every wait is looked at (set at load).
#[map]
pub(crate) static OFTEN_WAITING: Array<Word> = Array::with_max_entries(OFTEN_WAITING_SLOTS, 0);

/// Announced lately, processes above all: slot by hash, holding the last hash that fell into it. What was pushed out is announced
/// again, which does no harm. 4,096 slots, 32 KiB.
#[map]
pub(crate) static ANNOUNCED: Array<Word> = Array::with_max_entries(ANNOUNCED_SLOTS, 0);

/// Slots of [`ANNOUNCED`].
pub(crate) const ANNOUNCED_SLOTS: u32 = 4096;

/// Mappings reported lately, and the files behind them: slot by hash, as in [`ANNOUNCED`]. 16,384 slots, 128 KiB: a
/// machine at work has a few thousand such mappings at a time.
#[map]
pub(crate) static REPORTED: Array<Word> = Array::with_max_entries(REPORTED_SLOTS, 0);

/// Slots of [`REPORTED`].
pub(crate) const REPORTED_SLOTS: u32 = 16 << 10;

/// Checks of the mappings of stacks that were seen lately, each of one process in one state of its mappings: slot by hash. In
/// the upper half the hash's tag, in the lower the check. 16,384 slots, 128 KiB.
#[map]
pub(crate) static CHECKED: Array<Word> = Array::with_max_entries(CHECKED_SLOTS, 0);

/// Slots of [`CHECKED`].
pub(crate) const CHECKED_SLOTS: u32 = 16 << 10;

/// Kernel events (size set at load): with the ring buffer's own header, a record of 32 bytes for each new process,
/// and one of 80 and a path for each mapping that is sampled in it.
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

/// Replacements of perf events' programs, by [`ProgramId`]. The kernel wants all programs of such a map to be of one type.
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

/// The kernel's name for an address, or its code; see [`crate::symbol`].
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
