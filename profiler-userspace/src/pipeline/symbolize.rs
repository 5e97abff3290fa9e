//! The second step: names.
//!
//! In: what an event brought, or what a raw recording kept, and how code is to be named. Out: a profile, or what a raw
//! recording keeps, and what there is to say of names. Asks for debug files where that is wanted, and shows progress.

use crate::debuginfod::{Client, Fetched, Limits, Servers};
use crate::kernel::Kernel;
use crate::object::{BuildId, Fetch, RecordedObject};
use crate::pipeline::progress::Progress;
use crate::plan::{Event, Output};
use crate::process::Processes;
use crate::profile::normalized::NormalizedProfile;
use crate::profile::{Profile, Unit, interpreters};
use crate::report::distro::Distro;
use crate::report::findings::Finding;
use crate::report::{debug_info, kernel_lines, names};
use crate::runtime;
use crate::symbolize::{
    self, AllUnsymbolized, KernelNameCache, KernelNames, KernelSymbols, NameCache, Naming, Objects,
    RecordingContents, Sources, Symbolized,
};
use crate::text::number::counted;
use std::cell::Cell;
use std::rc::Rc;

/// Finds names for the windows of a recording, or of files.
pub(crate) struct Symbolizer<'a> {
    naming: &'a Naming,
    /// None if no server is asked.
    client: Option<Client<'static>>,
    progress: Rc<Progress>,
    /// Fetched files that there was something to say of already.
    said: Cell<Fetched>,
}

/// Code of a recording beside the kernel's.
#[derive(Clone, Copy)]
pub(crate) struct Code<'a> {
    pub(crate) processes: &'a Processes,
    pub(crate) objects: &'a Objects,
}

/// Profile of an event with names, as far as its outputs want it.
pub(crate) struct SymbolizedEvent {
    pub(crate) profile: Option<Profile>,
    pub(crate) stored: Option<RecordingContents>,
    /// Remarks on the profile's names.
    pub(crate) on_profile: Vec<Finding>,
    /// Remarks on those of the raw recording.
    pub(crate) on_stored: Vec<Finding>,
}

impl<'a> Symbolizer<'a> {
    /// One that names code like that, asks these servers, and shows on a terminal how far it is unless it is to be `quiet`.
    pub(crate) fn new(naming: &'a Naming, servers: &Servers, quiet: bool) -> Self {
        let progress = Rc::new(Progress::new(None, quiet));
        let shown = Rc::clone(&progress);
        let show = move |fetched: &Fetched| shown.fetching(fetched);
        Self {
            naming,
            client: Client::new(servers.addresses(), Limits::from_environment(), show),
            progress,
            said: Cell::default(),
        }
    }

    /// Names the kernel's functions of a window, once for all of its events.
    pub(crate) fn kernel(
        &self,
        normalized: &NormalizedProfile,
        kernel: &mut Kernel,
        names: &mut KernelNameCache,
    ) -> KernelSymbols {
        self.with_sources(|sources| {
            let lines =
                (self.naming.kernel_lines).then(|| kernel_lines::lines(self.naming, sources.fetch));
            let mut ask = |addresses: &[u64]| kernel.name_symbols(addresses);
            let mut asked = KernelNames::asked(&mut ask).with_lines(lines.as_ref());
            names.symbols(normalized, &mut asked)
        })
    }

    /// Names what an event brought, for a profile. `names`: those that others ask for, too.
    pub(crate) fn profile(
        &self,
        event: &Event,
        normalized: NormalizedProfile,
        Code { processes, objects }: Code<'_>,
        kernel: &KernelSymbols,
        names: &NameCache,
    ) -> Profile {
        let symbolized = self.with_sources(|sources| {
            let sources = &Sources {
                names: Some(names),
                ..*sources
            };
            symbolize::symbolize(
                normalized,
                objects,
                event.unit(),
                processes,
                kernel,
                sources,
            )
        });
        self.without_loops(symbolized).profile
    }

    /// The part of an event that a raw recording keeps. `names`: those that others ask for, too.
    pub(crate) fn kept(
        &self,
        normalized: &NormalizedProfile,
        Code { processes, objects }: Code<'_>,
        kernel: &KernelSymbols,
        names: &NameCache,
    ) -> RecordingContents {
        self.with_sources(|sources| {
            let names = Some(names);
            let sources = &Sources { names, ..*sources };
            symbolize::store(normalized, objects, processes, kernel, sources)
        })
    }

    /// Names what an event brought, as far as its outputs want names. `names`: those that others ask for, too.
    pub(crate) fn event(
        &self,
        event: &Event,
        normalized: NormalizedProfile,
        code: Code<'_>,
        kernel: &KernelSymbols,
        names: Option<&NameCache>,
    ) -> SymbolizedEvent {
        let Code { processes, objects } = code;
        let is_raw_recording = |output: &Output| output.format().is_none();
        let (stored, symbolized) = self.with_sources(|sources| {
            let sources = &Sources { names, ..*sources };
            let stored = (event.outputs.iter().any(is_raw_recording))
                .then(|| symbolize::store(&normalized, objects, processes, kernel, sources));
            let is_wanted = !event.outputs.iter().all(is_raw_recording);
            let symbolized = is_wanted.then(|| {
                let unit = event.unit();
                symbolize::symbolize(normalized, objects, unit, processes, kernel, sources)
            });
            (stored, symbolized)
        });
        let distro = Distro::here(self.client.is_some());
        let symbolized = symbolized.map(|symbolized| self.without_loops(symbolized));
        let mut remarks = on_code(code, kernel, &distro);
        remarks.extend(self.on_fetching());
        let on_names = |unsymbolized: &AllUnsymbolized| names::on_names(unsymbolized, &distro);
        // Of a raw recording, the rest is said when it is named.
        let mut on_stored = remarks.clone();
        on_stored.extend(
            stored
                .iter()
                .flat_map(|stored| on_names(&stored.unsymbolized)),
        );
        let mut on_profile = remarks;
        if let Some(symbolized) = &symbolized {
            let limit = self.naming.memory.bytes;
            on_profile.extend(on_names(&symbolized.unsymbolized()));
            on_profile.extend(debug_info::on_details(&symbolized.skipped, limit));
        }
        SymbolizedEvent {
            profile: symbolized.map(|symbolized| symbolized.profile),
            stored,
            on_profile,
            on_stored,
        }
    }

    /// Names what a raw recording kept, and says what there is to remark on that.
    pub(crate) fn stored(
        &self,
        normalized: NormalizedProfile,
        objects: &[RecordedObject],
        unit: Unit,
    ) -> (Profile, Vec<Finding>) {
        let symbolized = self.with_sources(|sources| {
            symbolize::symbolize_stored(normalized, objects, unit, sources)
        });
        let symbolized = self.without_loops(symbolized);
        let distro = Distro::here(self.client.is_some());
        let mut remarks = self.on_fetching();
        let unsymbolized = symbolized.unsymbolized();
        remarks.extend(names::on_names(&unsymbolized, &distro));
        let limit = self.naming.memory.bytes;
        remarks.extend(debug_info::on_details(&symbolized.skipped, limit));
        (symbolized.profile, remarks)
    }

    /// Leaves the interpreters' own frames out, unless these were asked for.
    fn without_loops(&self, symbolized: Symbolized) -> Symbolized {
        if self.naming.interpreter_frames {
            return symbolized;
        }
        symbolized
            .with_profile(|profile| interpreters::without_loops(profile, runtime::hidden_frames))
    }

    /// Does work that takes names from elsewhere, with a line on the terminal until it is done.
    fn with_sources<T>(&self, work: impl FnOnce(&Sources<'_>) -> T) -> T {
        let client = self.client.as_ref();
        let fetch = client.map(|client| |id: &BuildId| client.find(id));
        // The client says more of what it fetches.
        let naming = client.is_none().then(|| self.progress.naming());
        let show = |done, all| {
            if let Some(naming) = &naming {
                naming.tell(done, all);
            }
        };
        let done = work(&Sources {
            naming: self.naming,
            fetch: fetch.as_ref().map(|fetch| fetch as &Fetch<'_>),
            progress: Some(&show),
            names: None,
        });
        drop(naming);
        self.progress.clear();
        done
    }

    /// Findings on files that were fetched since this was asked last.
    fn on_fetching(&self) -> Vec<Finding> {
        let Some(client) = &self.client else {
            return Vec::new();
        };
        let all = client.fetched();
        let before = self.said.replace(all);
        let fetched = Fetched {
            files: all.files - before.files,
            bytes: all.bytes - before.bytes,
            ..all
        };
        names::on_fetching(&fetched, &client.failures())
    }
}

/// Findings on names of the kernel, and on mappings that could not be read or kept.
fn on_code(code: Code<'_>, kernel: &KernelSymbols, distro: &Distro) -> Vec<Finding> {
    let mut remarks = Vec::new();
    if let Some(complaint) = kernel.naming.complaint() {
        remarks.push(Finding::note(complaint));
    }
    let refused = code.processes.refused();
    if refused > 0 {
        remarks.push(Finding::note(format!(
            "no permission to read the mappings of {}: their functions have no names; run with sudo",
            counted(refused as u64, "process")
        )));
    }
    let (shortage, cut_maps) = (code.processes.shortage(), code.objects.cut_maps());
    let nameless = code.objects.nameless_functions();
    let in_part = code.objects.functions_in_part();
    remarks.extend(names::on_shortage(&shortage, cut_maps, nameless, in_part));
    let lining = kernel.lining.as_ref();
    remarks.extend(lining.and_then(|lining| kernel_lines::on_lines(lining, distro)));
    remarks
}
