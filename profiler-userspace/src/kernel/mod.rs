//! The kernel: the only module that names aya.
//!
//! In: what to sample ([`Request`]), which event ([`Source`]). Out: [`RawProfile`]s, [`Counters`],
//! notices, names of kernel addresses. It knows nothing of ELF files, symbols or formats.
//!
//! [`RawProfile`]: crate::profile::raw::RawProfile

mod asleep;
mod attach;
mod btf;
mod constants;
mod drain;
mod errors;
mod files;
mod grace;
mod layout;
mod load;
mod logs;
mod missed;
mod notices;
mod perf_link;
mod request;
mod shared;
mod size;
mod slabs;
mod support;
mod symbols;
mod tables;
mod threads;

pub use asleep::Sleeping;
pub use attach::online_cpus;
pub use load::Verified;
pub use notices::{MappingSeen, News};
pub use perf_link::{Policy, Source};
pub use request::Request;
pub use support::Support;
pub use tables::{StoredTable, Tables};

use crate::probe::PageFaults;
use aya::Ebpf;
use aya::maps::{MapData, RingBuf};
use profiler_common::abi::{COUNTERS_WORDS, Counter, Counters, ProgramId, Switches};
use request::Wanted;
use shared::Shared;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, Ordering};

/// The loaded programs and their maps.
pub struct Kernel {
    ebpf: Ebpf,
    maps: load::Maps,
    sizes: size::Sizes,
    request: Request,
    /// Which page faults are looked at.
    page_faults: PageFaults,
    /// The control map and the counters, mapped for as long as we live.
    control: Shared,
    counters: Shared,
    notices: RingBuf<MapData>,
    threads: threads::Threads,
    /// The perf events that programs are attached to, until these are closed.
    links: Vec<(ProgramId, OwnedFd)>,
    /// What is counted on this side of the boundary, of each event.
    own: Vec<Counters>,
    /// When the probe was attached and detached, by the kernel half's clock.
    began_ns: u64,
    ended_ns: u64,
    drained: drain::Drained,
    tables: Option<Tables>,
    /// Whether the kernel half tells what lies at sampled addresses.
    tells: bool,
    /// Where the kernel half logs; none where that is not wanted.
    logs: Option<logs::Logs>,
}

/// Why the kernel would not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call was refused for want of privilege.
    #[error(
        "{what} is not permitted: it needs the capabilities CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8); \
         run with sudo, or grant them once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace=ep \"$(command -v flame-bpf)\"{hint}"
    )]
    Privilege {
        /// What was refused.
        what: String,
        /// More to try, with its own punctuation; empty if there is nothing.
        hint: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The memory limit leaves no room for the smallest maps.
    #[error(
        "{limit} bytes are not enough for the BPF maps, which take at least {least} MiB on this machine; use --map-memory {least}"
    )]
    MapMemory {
        /// The limit asked for, in bytes.
        limit: u64,
        /// What would do, in MiB.
        least: u64,
    },
    /// A map could not be made.
    #[error(
        "cannot make the BPF map {name}; if memory is short, use a smaller --map-memory, and on Linux before 5.11 a larger `ulimit -l`"
    )]
    Map {
        /// The map's name.
        name: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A program was rejected.
    #[error(
        "the kernel rejects the BPF program {name}; flame-bpf needs Linux 5.15 or later with BPF enabled: {log}"
    )]
    Program {
        /// The program's name.
        name: &'static str,
        /// The end of the verifier's log.
        log: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A perf event could not be opened because it does not exist here.
    #[error(
        "this machine cannot count the event {event}{cpu}; use another with -e, or -e cpu-clock, which works everywhere"
    )]
    NoEvent {
        /// The event's name.
        event: String,
        /// Where, if only there; begins with a space.
        cpu: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// There is no tracepoint of this name.
    #[error("this kernel has no tracepoint {name}{near}")]
    NoTracepoint {
        /// The name.
        name: String,
        /// Names near it, with their own punctuation; empty if there are none.
        near: String,
    },
    /// Functions cannot be watched.
    #[error(
        "this kernel cannot watch functions of programs: it was built without uprobes (CONFIG_UPROBE_EVENTS), or /sys is not mounted; use a kernel that has them"
    )]
    NoFunctionProbes,
    /// A perf event or tracepoint could not be attached for another reason.
    #[error("cannot attach to {what}")]
    Attach {
        /// What was to be attached to.
        what: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Without type information, a PID namespace cannot be told from another.
    #[error(
        "inside a PID namespace, flame-bpf needs the kernel's type information in /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF); run it outside of the container, or mount /sys"
    )]
    NamespaceWithoutBtf,
    /// Without type information, the tasks behind a switch cannot be told, nor when a thread ends.
    #[error(
        "to follow threads from one event to the next, flame-bpf needs the kernel's type information in /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF): use a kernel that has it, or record on-CPU"
    )]
    SwitchesWithoutBtf,
    /// The files behind descriptors cannot be told.
    #[error(
        "this kernel's type information does not say where it keeps open files, so --io cannot tell of which kind they are; --syscalls shows reads and writes of any"
    )]
    FilesWithoutBtf,
    /// Shared memory could not be mapped.
    #[error("cannot map the BPF map {name} into memory")]
    Mapping {
        /// The map's name.
        name: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A firing did not end in any reasonable time.
    #[error(
        "a CPU has not finished a sample for {seconds} s (CPU slot {cpu_slot}); the machine is too loaded to drain the counts safely"
    )]
    Stuck {
        /// The CPU's number, and the number of CPUs for each event before.
        cpu_slot: usize,
        /// How long we waited.
        seconds: u64,
    },
    /// aya failed in a way that it should not.
    #[error("unexpected failure of the BPF loader while {step}: {detail}")]
    Loader {
        /// What was being done.
        step: &'static str,
        /// What it said.
        detail: String,
    },
}

impl Error {
    /// The same, where more was taken off the limit before.
    fn with_more_map_memory(self, taken_bytes: u64) -> Self {
        match self {
            Self::MapMemory { limit, least } => Self::MapMemory {
                limit: limit + taken_bytes,
                least: least + taken_bytes.div_ceil(1 << 20),
            },
            other => other,
        }
    }
}

/// The result of what the kernel is asked.
pub type Result<T> = std::result::Result<T, Error>;

impl Kernel {
    /// The programs, and what they are attached to, in this order.
    fn programs(&self) -> Vec<Wanted> {
        let mut programs = self.request.programs();
        programs.extend(self.request.page_fault_programs(self.page_faults));
        programs
    }

    /// How many events have counters: as many as were asked for, and with wall time one more, of its spans, behind that of
    /// its samples.
    pub fn events(&self) -> usize {
        self.own.len()
    }

    /// A event's counters of every CPU, added up.
    pub fn counters(&self, event: usize) -> Counters {
        let mut sum = self.own[event];
        let cpu_slots = self.counters.words().chunks_exact(COUNTERS_WORDS);
        let cpus = self.sizes.cpus as usize;
        for cpu in cpu_slots.skip(event * cpus).take(cpus) {
            for (sum, word) in sum.counters.iter_mut().zip(cpu) {
                *sum += word.load(Relaxed);
            }
        }
        sum
    }

    /// What all maps take, in bytes.
    pub fn map_bytes(&self) -> u64 {
        self.sizes.bytes() + self.threads.bytes
    }

    /// The unwind tables, to be filled by whoever takes them; none a second time, and none where stacks
    /// are walked without.
    pub fn take_tables(&mut self) -> Option<Tables> {
        self.tables.take()
    }

    /// Whether the kernel half tells what lies at the addresses that are sampled; it does from Linux 6.1 on.
    pub fn tells_mappings(&self) -> bool {
        self.tells
    }

    /// Whether user stacks are walked, so that it matters what processes have mapped.
    pub fn walks_user_stacks(&self) -> bool {
        self.request.switches.has(Switches::USER_STACKS)
    }

    /// A file descriptor that becomes readable when there is a notice.
    pub fn notices_fd(&self) -> BorrowedFd<'_> {
        self.notices.as_fd()
    }
}

/// The sum under `counter` in the counters of one CPU slot, as the kernel half last wrote it.
fn read(cpu_slot: &[AtomicU64], counter: Counter) -> u64 {
    cpu_slot[counter as usize].load(Ordering::SeqCst)
}
