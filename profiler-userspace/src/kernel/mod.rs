//! The kernel: the only module that names aya.
//!
//! In: what to sample ([`Request`]), which event ([`Source`]). Out: [`RawProfile`]s, [`Counters`],
//! events, names of kernel addresses. It knows nothing of ELF files, symbols or formats.
//!
//! [`RawProfile`]: crate::profile::raw::RawProfile

mod asleep;
mod attach;
mod btf;
mod cgroups;
mod config_map;
mod constants;
mod counters;
mod cpus;
mod descriptors;
mod errors;
mod events;
mod files;
mod grace;
mod layout;
mod load;
mod logs;
mod missed;
mod perf_events;
mod perf_link;
mod programs;
mod pruned;
mod request;
mod shared;
mod size;
mod slabs;
mod store;
mod support;
mod symbols;
mod tables;
mod text;
mod threads;

pub use asleep::Sleeping;
pub use cpus::{online_cpus, online_period};
pub use events::{CgroupEvent, KernelEvent};
pub use perf_link::{Policy, Source};
pub use programs::Verified;
pub use request::Request;
pub use support::Support;
pub use tables::{StoredTable, Tables};
pub use text::kernel_text;

use crate::machine::{self, Trouble};
use crate::probe::{AttachPoint, SWITCH};
use crate::profile::raw::{RawProfile, RawStack};
use crate::targets::UprobeSite;
use crate::unwind::loader::CodeKeys;
use cgroups::CgroupTable;
use counters::CounterMap;
use descriptors::Descriptors;
use events::Events;
use files::FileKeys;
use logs::Logs;
use profiler_common::abi::{CodeKey, Config, Counter, Counters, ProgramId};
use profiler_common::runtime::{DESCRIPTOR_WORDS, RuntimeKinds};
use profiler_common::wait_sampling::LONGEST_PERIOD_NS;
use programs::Programs;
use request::RequiredProgram;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::Store;
use symbols::SymbolNames;
use threads::Threads;

/// The loaded programs and their maps.
pub struct Kernel {
    programs: Programs,
    /// The programs of all probes, in the order in which they are attached.
    wanted: Vec<RequiredProgram>,
    store: Store,
    counters: CounterMap,
    threads: Threads,
    events: Events,
    names: SymbolNames,
    keys: FileKeys,
    tables: Option<Tables>,
    runtimes: Descriptors,
    /// None where cgroups are not told apart.
    cgroups: Option<CgroupTable>,
    /// Whether the kernel half shows the frames of interpreters.
    shows_runtimes: bool,
    /// Whether programs can have replacements.
    can_follow_runtimes: bool,
    /// The constants that the programs of the probes were last loaded with.
    config: Config,
    /// Where the kernel half logs; none where that is not wanted.
    logs: Option<Logs>,
    /// Whether the kernel half reports what lies at sampled addresses.
    reports_mappings: bool,
    /// The programs that keep the targets true, with their tracepoints.
    task_events: Vec<(ProgramId, &'static str)>,
    walks_user_stacks: bool,
}

/// Why the kernel would not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine, or what this process may do, does not allow what was asked for.
    #[error("{what}: {trouble}")]
    Unfit {
        /// The operation that failed, with the kernel's answer if it gave one.
        what: String,
        /// Why, and what mends it.
        trouble: Trouble,
    },
    /// The memory limit leaves no room for the smallest maps.
    #[error(
        "{limit} bytes are not enough for the BPF maps, which take at least {least} MiB on this machine; use --map-memory {least}"
    )]
    MapMemory {
        /// The limit asked for, in bytes.
        limit: u64,
        /// The least limit that is enough, in MiB.
        least: u64,
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
    /// A perf event or tracepoint could not be attached for another reason.
    #[error("cannot attach to {what}")]
    Attach {
        /// The attach point, for the message.
        what: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
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
        /// The step that failed.
        step: &'static str,
        /// The details of the failure.
        detail: String,
    },
}

impl Error {
    /// The kernel's type information is missing for this.
    fn no_type_information(what: &str) -> Self {
        Self::Unfit {
            what: format!("{what} takes the kernel's type information"),
            trouble: machine::type_information(),
        }
    }

    /// The trouble behind it, if it lies with this machine and not with what was asked for.
    pub fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Unfit { trouble, .. } => Some(trouble.clone()),
            Self::Program { .. } => Some(Trouble::advice(
                "the verifier refuses it",
                "use Linux 5.15 or later with BPF enabled",
            )),
            _ => None,
        }
    }

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
    /// Creates the maps and loads the programs that are no probe's: enough for tables to be filled.
    pub fn load(request: Request, support: &Support) -> Result<Self> {
        load::load(request, support)
    }

    /// Loads the programs of the probes, with what shows the frames of these runtimes, if that is wanted; attaches nothing
    /// yet.
    pub fn load_probes(&mut self, runtimes: RuntimeKinds) -> Result<()> {
        let (runtimes, replacements) = match (self.shows_runtimes, self.can_follow_runtimes) {
            (false, _) => (RuntimeKinds::NONE, false),
            (true, false) => (RuntimeKinds::ALL, false),
            (true, true) => (runtimes, true),
        };
        self.config = constants::showing(&self.config, runtimes, replacements);
        self.programs.load(&self.wanted, &self.config)
    }

    /// The runtimes in the files that were looked at until now.
    pub fn found_runtimes(&self) -> RuntimeKinds {
        self.runtimes.runtimes()
    }

    /// Shows the frames of all runtimes that were found until now, from the next firing on.
    pub fn follow_runtimes(&mut self) -> Result<()> {
        let shown = self.config.runtimes;
        let found = self.found_runtimes();
        if !self.shows_runtimes || shown.has_all(found) {
            return Ok(());
        }
        self.config = constants::showing(&self.config, shown.with(found), false);
        self.programs.succeed(&self.wanted, &self.config)
    }

    /// The programs that are loaded, with what the verifier says of them.
    pub fn verified(&self) -> Vec<Verified> {
        self.programs.verified()
    }

    /// After [`Kernel::load_probes`], attaches the programs for tracepoints, and those for the functions at `sites`; sampling begins here.
    pub fn attach_programs(&mut self, sites: &[UprobeSite]) -> Result<()> {
        attach::attach_task_events(&mut self.programs, &self.task_events)?;
        for wanted in &self.wanted {
            if matches!(&wanted.at, AttachPoint::Tracepoint(name) if name == SWITCH) {
                let now = threads::now_ns();
                self.threads.begin(now);
                self.store.begin(now);
            }
            attach::attach(&mut self.programs, wanted, sites)?;
        }
        Ok(())
    }

    /// Attaches an event's program to its perf event on the given CPUs, after [`Kernel::attach_programs`];
    /// sampling begins here. A CPU that has gone offline is left out.
    pub fn attach_event(&mut self, event: usize, source: &Source, cpus: &[u32]) -> Result<()> {
        attach::attach_event(&mut self.programs, &self.wanted, event, source, cpus)
    }

    /// Cost of an interrupt of a clock on this machine, beside the program that runs in it; measured in 10 ms.
    pub fn interrupt_cost() -> Option<Duration> {
        perf_link::interrupt_cost()
    }

    /// Lets go of the CPUs that went offline, and samples those that came online.
    pub fn follow_cpus(&mut self, came: &[u32], went: &[u32]) -> Result<()> {
        attach::each_perf_event(&mut self.programs, |program, events| {
            went.iter().for_each(|&cpu| events.close(cpu));
            came.iter().try_for_each(|&cpu| events.open(program, cpu))
        })
    }

    /// Has an event fire by another policy from now on. Each sample weighs the period that it was made with.
    pub fn set_policy(&mut self, event: usize, policy: Policy) -> Result<()> {
        attach::each_perf_event(&mut self.programs, |program, events| {
            match events.number() == event {
                true => events.set_policy(program, policy),
                false => Ok(()),
            }
        })
    }

    /// Has about one wait of each thread recorded in this time from now on; zero: every one. Only for waits that
    /// [vary](Request::waits_vary). Each weighs what it had to when it began. `first`: the part of threads that were not seen to wait of
    /// which the first wait is recorded.
    pub fn sample_waits(&mut self, period: Duration, first: f64) {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let period = period.min(LONGEST_PERIOD_NS);
        let first_gap = (period as f64 * first) as u64;
        self.store
            .sample_waits(period, first_gap.clamp(period.min(1), period));
    }

    /// Detaches an event's program again, and forgets all that was counted until now: it was a trial. No other event may be attached.
    pub fn end_trial(&mut self, event: usize) -> Result<()> {
        attach::detach_event(&mut self.programs, &self.wanted, event);
        self.drain(&mut RawProfile::default())?;
        self.counters.forget();
        Ok(())
    }

    /// Detaches everything. When this returns, no program runs and none will.
    pub fn detach(&mut self) -> Result<()> {
        self.threads.end(threads::now_ns());
        attach::detach(&mut self.programs, &self.wanted, &mut self.counters)
    }

    /// Moves everything counted so far into `into`, while sampling goes on.
    pub fn drain(&mut self, into: &mut RawProfile) -> Result<()> {
        let named = || self.threads.named();
        self.store.drain(&self.counters, named, into)
    }

    /// Moves the rest into `into`, after [`Kernel::detach`].
    pub fn drain_rest(&mut self, into: &mut RawProfile) -> Result<()> {
        self.store.drain_rest(&self.counters, into)?;
        self.threads
            .flush_open(&mut self.store, &mut self.counters, into)
    }

    /// Whether either live side is so full that it should be drained.
    pub fn is_half_full(&self) -> bool {
        self.store.is_half_full()
    }

    /// How many events have counters: as many as were asked for, and with wall time one more, of its spans, behind that of
    /// its samples.
    pub fn events(&self) -> usize {
        self.counters.events()
    }

    /// An event's counters of every CPU, added up.
    pub fn counters(&self, event: usize) -> Counters {
        self.counters.of(event)
    }

    /// Whether threads that are off the CPU can be listed.
    pub fn can_list(&self) -> bool {
        self.threads.can_list()
    }

    /// The targets' threads that are off the CPU now, with what is known of them. What is done with the answer, once the probe is
    /// attached, is [`Kernel::put_to_sleep`].
    pub fn asleep(&mut self) -> Result<Vec<Sleeping>> {
        self.threads.asleep(&mut self.programs)
    }

    /// Unloads the program that lists threads, after the last such list.
    pub fn end_listing(&mut self) -> Result<()> {
        Threads::end_listing(&mut self.programs)
    }

    /// Lets the time off the CPU of a thread that was asleep before the recording count from its
    /// beginning. Says whether it did: it is too late when the thread has been switched in meanwhile, and
    /// its stacks may then be any.
    pub fn put_to_sleep(&mut self, sleeping: &Sleeping, user: Option<&RawStack>) -> Result<bool> {
        self.threads
            .put_to_sleep(sleeping, user, &self.store, &mut self.counters)
    }

    /// The processes that woke threads which are not back yet: what was counted for these may come after a drain,
    /// although the processes have ended before it. By their IDs and incarnations.
    pub fn waking(&self) -> HashSet<(u32, u64)> {
        self.threads.waking()
    }

    /// Memory of all maps but those of unwind tables, in bytes.
    pub fn map_bytes(&self) -> u64 {
        self.store.sizes.bytes() + self.threads.bytes
    }

    /// The unwind tables, to be filled by whoever takes them; none a second time, and none where stacks
    /// are walked without.
    pub fn take_tables(&mut self) -> Option<Tables> {
        self.tables.take()
    }

    /// Whether the kernel half shows the frames of interpreters, if that was asked for.
    pub fn shows_runtimes(&self) -> bool {
        self.shows_runtimes
    }

    /// Whether cgroups are told apart.
    pub fn has_cgroups(&self) -> bool {
        self.cgroups.is_some()
    }

    /// The number that the cgroup of this ID has from now on; none if there is no room, or cgroups are not told apart.
    pub fn cgroup_number(&self, id: u64) -> Option<u16> {
        self.cgroups.as_ref()?.number(id)
    }

    /// How many firings were drained that were in cgroups for which there was no room, so that nobody knows which.
    pub fn without_cgroup(&self) -> u64 {
        self.store.crowded()
    }

    /// The ID of the cgroup of this number; none if no cgroup has it.
    pub fn cgroup_id(&self, number: u16) -> Option<u64> {
        self.cgroups.as_ref()?.id(number)
    }

    /// Says of the cgroup of this number that it is known, and whether firings in it are recorded from now on.
    pub fn decide_cgroup(&self, number: u16, is_wanted: bool) {
        if let Some(table) = &self.cgroups {
            table.decide(number, is_wanted);
        }
    }

    /// The cgroup of this very process, as the kernel knows it. Only before anything is attached.
    pub fn own_cgroup(&mut self) -> Result<Option<CgroupEvent>> {
        if self.cgroups.is_none() {
            return Ok(None);
        }
        self.programs.load_tracepoint(ProgramId::OwnCgroup)?;
        self.programs.run(ProgramId::OwnCgroup, 0)?;
        let unloaded = self.programs.unload(ProgramId::OwnCgroup);
        unloaded.map_err(|error| errors::rejected(ProgramId::OwnCgroup, error))?;
        Ok(match self.events.next() {
            Some(KernelEvent::Cgroup(event)) => Some(event),
            _ => None,
        })
    }

    /// Counts firings as left out that were recorded: as those of no target, or as lost if nobody can say whose they
    /// were. `event`: none for firings that last.
    pub fn leave_out(&mut self, event: Option<u8>, count: u64, is_unknown: bool) {
        let event = event.map_or(self.counters.lasting(), usize::from);
        self.counters.leave_out(event, count, is_unknown);
    }

    /// The words of the descriptor of this number.
    pub fn descriptor(&self, number: u32) -> Option<[u64; DESCRIPTOR_WORDS]> {
        self.runtimes.get(number)
    }

    /// Whether the kernel half reports what lies at the addresses that are sampled; it does from Linux 6.1 on.
    pub fn reports_mappings(&self) -> bool {
        self.reports_mappings
    }

    /// Whether user stacks are walked, so that it matters what processes have mapped.
    pub fn walks_user_stacks(&self) -> bool {
        self.walks_user_stacks
    }

    /// The next event that the kernel half reports, if there is one.
    pub fn next_event(&mut self) -> Option<KernelEvent> {
        self.events.next()
    }

    /// A file descriptor that becomes readable when there is an event.
    pub fn events_fd(&self) -> BorrowedFd<'_> {
        self.events.fd()
    }

    /// The lines that the kernel half wrote since they were asked for last, and how many it dropped since the
    /// beginning. Nothing where none are wanted.
    pub fn log_lines(&mut self) -> (Vec<String>, u64) {
        self.logs.as_mut().map(Logs::take).unwrap_or_default()
    }

    /// The kernel's name for each address: the symbol it is in, with its module as `name [module]`. An inner
    /// `None` if it has no name. An outer `None` if this kernel cannot be asked (before Linux 5.13, whose BPF
    /// programs cannot print): read `/proc/kallsyms` then.
    pub fn name_symbols(&mut self, addresses: &[u64]) -> Option<Vec<Option<String>>> {
        self.names.ask(&mut self.programs, addresses)
    }
}

impl CodeKeys for Kernel {
    fn code_key(&mut self, file: &File) -> Option<CodeKey> {
        self.keys.of_file(&mut self.programs, file)
    }

    fn code_key_at(&mut self, address: u64) -> Option<CodeKey> {
        self.keys.at(&mut self.programs, address)
    }
}

/// The sum under `counter` in the counters of one CPU slot, as the kernel half last wrote it.
fn read(cpu_slot: &[AtomicU64], counter: Counter) -> u64 {
    cpu_slot[counter as usize].load(Ordering::SeqCst)
}
