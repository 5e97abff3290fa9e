//! After sampling: names for what one event brought.
//!
//! In: normalized stacks, and what the outputs want. Out: a profile with names, or what a raw recording keeps, and what
//! there is to say of either.

use crate::debuginfod::{Client, Fetched, Limits};
use crate::kernel::Kernel;
use crate::object::{BuildId, Fetch};
use crate::pipeline::progress::Progress;
use crate::plan::{Event, Output, Plan, Sampling};
use crate::probe::{Probe, Wakers};
use crate::process::Processes;
use crate::profile::normalized::NormalizedProfile;
use crate::profile::{OffCpuView, Origin, Profile, Unit, off_cpu};
use crate::report::debug_info;
use crate::report::distro::Distro;
use crate::report::findings::Finding;
use crate::report::kernel_lines;
use crate::report::names;
use crate::report::text::counted;
use crate::symbolize::{
    self, KernelLines, KernelNames, KernelSymbols, Objects, Sources, Stored, Unnamed,
};
use std::time::{Duration, SystemTime};

/// What one event brought, with names where they are wanted.
pub(crate) struct Brought {
    pub(crate) profile: Option<Profile>,
    pub(crate) stored: Option<Stored>,
    /// What there is to remark on the names.
    pub(crate) on_names: Vec<Finding>,
    /// What there is to remark on those of the raw recording.
    pub(crate) on_stored: Vec<Finding>,
}

/// How the waits of a probe are shown, if it has any, and its kernel stacks.
pub(crate) fn off_cpu_view(plan: &Plan, probe: &Probe) -> Option<OffCpuView> {
    let waits = probe.waits();
    (waits.is_some() || !probe.is_on_event()).then(|| OffCpuView {
        scheduler: waits.is_none(),
        reasons: waits.is_some_and(|waits| waits.reasons),
        kernel: plan.capture.kernel_stacks,
        ran: matches!(probe, Probe::Wall(_)),
        wakers: waits.map_or(Wakers::None, |waits| waits.wakers),
    })
}

/// Where the samples of an event come from, the first of which could have been taken that long ago.
pub(crate) fn origin(event: &Event, elapsed: Duration) -> Origin {
    let is_clock = || event.perf_event().is_clock();
    Origin {
        started: SystemTime::now().checked_sub(elapsed),
        period_ns: match event.sampling {
            _ if event.unit() != Unit::Samples || !event.probe.is_on_event() || !is_clock() => None,
            Sampling::Frequency(hz) => 1_000_000_000u64.checked_div(hz),
            Sampling::Period(ns) => Some(ns),
        },
        activity: event.probe.activity(),
    }
}

/// Who knows names.
pub(crate) struct Namer<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) kernel: &'a mut Kernel,
    pub(crate) processes: &'a Processes,
    pub(crate) objects: &'a Objects,
}

impl Namer<'_> {
    /// Names what a event brought, as far as its outputs want names. `see` sees what was recorded, without what has
    /// nothing to do with it.
    pub(crate) fn name<T>(
        &mut self,
        event: &Event,
        normalized: NormalizedProfile,
        see: impl FnOnce(&NormalizedProfile) -> T,
    ) -> (Brought, T) {
        let (plan, probe, outputs) = (self.plan, &event.probe, &event.outputs);
        let kernel = &mut *self.kernel;
        let mut ask = |addresses: &[u64]| kernel.name_symbols(addresses);
        let progress = Progress::new(None, plan.verbosity.quiet);
        let tell = |fetched: &Fetched| progress.fetching(fetched);
        let client = Client::new(plan.servers.addresses(), Limits::from_environment(), &tell);
        let fetch = client.as_ref().map(|client| |id: &BuildId| client.find(id));
        let fetch = fetch.as_ref().map(|fetch| fetch as &Fetch<'_>);
        // Whoever fetches says more of it.
        let naming = client.is_none().then(|| progress.naming());
        let told = |done, all| {
            if let Some(naming) = &naming {
                naming.tell(done, all);
            }
        };
        let lines = (plan.naming.kernel_lines).then(|| kernel_lines::lines(&plan.naming, fetch));
        let mut names = KernelNames::asked(&mut ask).with_lines(lines.as_ref());
        let kernel = KernelSymbols::of(&normalized, &mut names);
        let normalized = symbolize::without_interrupted(normalized, &kernel);
        let seen = see(&normalized);
        let total = normalized.total_count();
        let sources = Sources {
            naming: &plan.naming,
            fetch,
            progress: Some(&told),
        };
        let (objects, processes) = (self.objects, self.processes);
        let is_raw_recording = |output: &Output| output.format().is_none();
        let stored = (outputs.iter().any(is_raw_recording))
            .then(|| symbolize::store(&normalized, objects, processes, &kernel, &sources));
        let named = (!outputs.iter().all(is_raw_recording)).then(|| {
            symbolize::symbolize(
                normalized,
                objects,
                event.unit(),
                processes,
                &kernel,
                &sources,
            )
        });
        drop(naming);
        progress.clear();
        let mut remarks = Vec::new();
        if let Some(complaint) = kernel.naming.complaint() {
            remarks.push(Finding::note(complaint));
        }
        if self.processes.refused() > 0 {
            remarks.push(Finding::note(format!(
                "no permission to read the mappings of {}: their functions have no names; run with sudo",
                counted(self.processes.refused() as u64, "process")
            )));
        }
        remarks.extend(names::on_shortage(
            &self.processes.shortage(),
            self.objects.cut_maps(),
        ));
        let distro = Distro::here(client.is_some());
        let lining = lines.as_ref().map(KernelLines::lining);
        remarks.extend(lining.and_then(|lining| kernel_lines::on_lines(&lining, &distro)));
        let of_names = |unnamed: &[Unnamed]| names::on_names(unnamed, total, &distro);
        if let Some(client) = &client {
            remarks.extend(names::on_fetching(&client.fetched()));
        }
        // Of a raw recording, the rest is said when it is named.
        let mut on_stored = remarks.clone();
        on_stored.extend(stored.iter().flat_map(|stored| of_names(&stored.unnamed)));
        let mut on_names = remarks;
        on_names.extend(named.iter().flat_map(|named| of_names(&named.unnamed)));
        let limit = plan.naming.memory.bytes;
        on_names
            .extend((named.iter()).flat_map(|named| debug_info::on_details(&named.untold, limit)));
        let brought = Brought {
            profile: named.map(|named| {
                let mut profile = named.profile;
                profile.origin = origin(event, profile.window.end);
                match off_cpu_view(plan, probe) {
                    Some(how) => off_cpu::view(profile, how),
                    None => profile,
                }
            }),
            stored,
            on_names,
            on_stored,
        };
        (brought, seen)
    }
}
