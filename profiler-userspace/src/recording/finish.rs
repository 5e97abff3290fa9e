//! After sampling: the last drain, names, files, and the closing paragraph.

use super::advice;
use super::asleep::Before;
use super::deliver::{Named, deliver};
use super::distribution::Distribution;
use super::health::{self, Cost, Health};
use super::nothing::Nothing;
use super::progress::Progress;
use super::sampling::{Session, Stop};
use super::stored::Told;
use super::target;
use super::unwinding::Unwinding;
use crate::debuginfod::{Client, Fetched, Limits};
use crate::kernel::Kernel;
use crate::object::{BuildId, Fetch};
use crate::output::sink::Sink;
use crate::output::{Palette, Style};
use crate::plan::{Event, Output, Plan, Target, TitleFacts};
use crate::probe::Probe;
use crate::process::Processes;
use crate::profile::located::{Located, LocatedKey};
use crate::profile::{Profile, Unit, Window, waits, wall};
use crate::symbolize::{self, KernelNames, KernelNaming, Objects, Sources, Stored, Unnamed};
use anyhow::Result;
use profiler_common::abi::{Books, Class, Doing};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The subtitle of a graph of all of the threads' time.
const LEGEND: &str =
    "warm: on a CPU; cold: blocked; green: waiting for a CPU; in between: some of each";

/// What the recording knows and the plan does not.
pub(super) struct Circumstances {
    pub(super) event: Event,
    pub(super) stop: Stop,
    pub(super) elapsed: Duration,
    pub(super) host: String,
    comms: HashMap<u32, String>,
    pub(super) cpu_before: Duration,
    remarks: Vec<String>,
    /// What the part should say that is about waits.
    of_waits: Vec<String>,
}

/// What is left to do: say this, and end accordingly.
pub(super) struct Report {
    /// For stderr.
    pub(super) text: String,
    /// Whether there was anything to write.
    pub(super) wrote: bool,
}

impl Circumstances {
    /// What can be seen before sampling begins.
    pub(super) fn look(plan: &Plan) -> Self {
        let named = target::ids(&plan.target);
        Self {
            event: Event::CPU_CLOCK,
            stop: Stop::Duration,
            elapsed: Duration::ZERO,
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            comms: named
                .iter()
                .filter_map(|&id| Some((id, target::comm(id)?)))
                .collect(),
            cpu_before: target::cpu_time(named),
            remarks: Vec::new(),
            of_waits: Vec::new(),
        }
    }

    /// What turned out.
    pub(super) fn ended(&mut self, event: Event, stop: Stop, elapsed: Duration) {
        self.event = event;
        self.stop = stop;
        self.elapsed = elapsed;
    }

    /// What became of looking for threads that were asleep before the recording began.
    pub(super) fn take_in(&mut self, asleep: Result<Before>) {
        match asleep {
            Ok(before) if before.incomplete > 0 => self.of_waits.push(format!(
                "Note: the memory of {} threads that were asleep from the beginning may not be read, so their callers are missing.",
                before.incomplete
            )),
            Ok(_) => {}
            Err(error) => self.of_waits.push(format!(
                "Note: threads that were asleep from the beginning are counted from their first wake-up only: {error:#}."
            )),
        }
    }

    /// Something that the closing paragraph should say.
    pub(super) fn remark(&mut self, sentence: impl Into<String>) {
        self.remarks.push(sentence.into());
    }

    fn title(&self, plan: &Plan, probe: &Probe) -> String {
        let facts = TitleFacts {
            event: &self.event,
            elapsed: self.elapsed,
            host: &self.host,
            comm: &|id| self.comms.get(&id).cloned(),
        };
        plan.title_of(probe, &facts)
    }
}

/// Whether samples of the event weigh their period: an event that counts something, whose period the
/// kernel may vary. A clock's period is fixed, so its samples are simply counted.
pub(super) fn is_weighed(event: &Event) -> bool {
    !event.is_clock()
}

/// Detaches, drains, names and writes.
pub(super) fn finish(
    mut session: Session,
    plan: &Plan,
    mut circumstances: Circumstances,
    sinks: &[Sink],
) -> Result<Report> {
    let began = Instant::now();
    session.kernel.detach()?;
    session.kernel.drain_rest(&mut session.raw)?;
    session.take_in_news();
    let loaded = session.unwinding.as_ref().map(Unwinding::loaded);
    let Session {
        kernel,
        mut processes,
        mut raw,
        locator,
        ..
    } = session;
    let (mut located, objects) = locator.finish(&mut raw, &mut processes);
    located.window = Window {
        start: Duration::ZERO,
        end: circumstances.elapsed,
    };
    if circumstances.stop == Stop::TargetEnded {
        circumstances.remark(format!(
            "The target ended after {:.1} s.",
            circumstances.elapsed.as_secs_f64()
        ));
    }
    for sentence in loaded.iter().flat_map(health::unwind_remarks) {
        circumstances.remark(sentence);
    }
    let mut finishing = Finishing {
        plan,
        circumstances,
        kernel,
        processes,
        objects,
        began,
        text: String::new(),
        places: Vec::new(),
    };
    let mut books = Vec::new();
    let mut wrote = false;
    for part in finishing.parts(located, sinks) {
        books.push(part.books);
        wrote |= finishing.finish(part)?;
    }
    let verbosity = plan.verbosity;
    let Finishing {
        mut text,
        places,
        kernel,
        ..
    } = finishing;
    if let Some(loaded) = loaded.as_ref().filter(|_| verbosity.verbose > 0) {
        text.insert_str(0, &health::tables(loaded));
    }
    if wrote && !verbosity.quiet {
        let tables = loaded.map_or(0, |loaded| loaded.bytes);
        let cost = Cost::now(kernel.map_bytes() + tables);
        text.push_str(&format!(" {}", health::cost(&books, &cost)));
        if !places.is_empty() {
            text.push_str(&format!(" Wrote {}.", places.join(", ")));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(Report { text, wrote })
}

/// What one probe brought, and where it goes.
struct Part<'a> {
    probe: &'a Probe,
    located: Located,
    books: Books,
    outputs: &'a [Output],
    sinks: &'a [Sink],
    /// What there is to remark that concerns this part alone.
    remarks: Vec<String>,
}

/// All that finishing needs, and what there is to say so far.
struct Finishing<'a> {
    plan: &'a Plan,
    circumstances: Circumstances,
    kernel: Kernel,
    processes: Processes,
    objects: Objects,
    began: Instant,
    text: String,
    /// Files that were written.
    places: Vec<String>,
}

impl Finishing<'_> {
    /// One part for each probe: samples are of threads that ran, and waits of those that did not.
    fn parts<'a>(&mut self, located: Located, sinks: &'a [Sink]) -> Vec<Part<'a>>
    where
        Self: 'a,
    {
        let plan = self.plan;
        let (own, others) = sinks.split_at(plan.outputs.len());
        let mut remarks = std::mem::take(&mut self.circumstances.remarks);
        let of_waits = std::mem::take(&mut self.circumstances.of_waits);
        let part = |probe, located, books, outputs, sinks, remarks| Part {
            probe,
            located,
            books,
            outputs,
            sinks,
            remarks,
        };
        let books = self.kernel.books();
        if let Probe::Wall(wall) = &plan.probe {
            let how = wall::How {
                per_thread: plan.capture.per_thread,
                idle_threads: wall.idle_threads,
            };
            let (located, sums) = wall::settle(&located, how);
            remarks.extend(health::wall_remarks(&sums, &books));
            remarks.extend(of_waits);
            if plan.verbosity.verbose > 0 {
                self.text.push_str(&health::counters(&books, ""));
            }
            let books = self.kernel.books_beside();
            return vec![part(
                &plan.probe,
                located,
                books,
                &plan.outputs,
                own,
                remarks,
            )];
        }
        let Some(beside) = &plan.beside else {
            remarks.extend(of_waits);
            return vec![part(
                &plan.probe,
                located,
                books,
                &plan.outputs,
                own,
                remarks,
            )];
        };
        let ran = |key: &LocatedKey| key.doing == Doing::Running;
        let (samples, waits) = (located.part(ran), located.part(|key| !ran(key)));
        let others_books = self.kernel.books_beside();
        vec![
            part(&plan.probe, samples, books, &plan.outputs, own, remarks),
            part(
                &beside.probe,
                waits,
                others_books,
                &beside.outputs,
                others,
                of_waits,
            ),
        ]
    }

    /// Names and writes what one probe brought. Says whether there was anything.
    fn finish(&mut self, part: Part<'_>) -> Result<bool> {
        let began = self.began.elapsed();
        let (plan, verbosity) = (self.plan, self.plan.verbosity);
        let Part {
            probe,
            located,
            books,
            outputs,
            sinks,
            remarks,
        } = part;
        let unit = self.unit(probe);
        let Brought {
            profile,
            stored,
            on_names,
            on_stored,
        } = self.name(probe, unit.clone(), &located, outputs);
        let symbolized = self.began.elapsed();
        let default_title = self.circumstances.title(plan, probe);
        let ends = symbolize::stack_ends(&located);
        let (remarks, remarks_stored) = (
            [remarks.as_slice(), &on_names].concat(),
            [remarks.as_slice(), &on_stored].concat(),
        );
        let waited = located
            .samples()
            .fold(0u64, |sum, (_, sums)| sum.saturating_add(sums.weight));
        let is_time = unit == Unit::Nanoseconds;
        let health = |remarks| Health {
            subject: &default_title,
            noun: probe.noun(),
            waited: is_time.then_some(waited),
            books: &books,
            stacks: located.stacks().len(),
            processes: self.objects.processes(),
            ends: &ends,
            guessed: symbolize::guessed(&located),
            idle_is_offered: plan.target == Target::All,
            remarks,
        };
        let titled = match &plan.title {
            Some(title) if *probe == plan.probe => title.clone(),
            Some(title) => format!("{title} ({})", probe.subject().unwrap_or_default()),
            None => default_title.clone(),
        };
        let archive = stored.map(|stored| {
            let told = Told {
                host: &self.circumstances.host,
                title: &titled,
                noun: probe.noun(),
                event: probe
                    .subject()
                    .unwrap_or_else(|| self.circumstances.event.name.to_string()),
                unit,
                finish: how(plan, probe),
            };
            told.archive(stored, health(&remarks_stored).balance())
        });
        let balance = match profile {
            Some(_) => health(&remarks).balance(),
            None => health(&remarks_stored).balance(),
        };
        // Each part has a paragraph of its own.
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        if verbosity.verbose > 0 {
            let whose = if *probe == plan.probe && !matches!(probe, Probe::Wall(_)) {
                String::new()
            } else {
                probe
                    .subject()
                    .map_or_else(String::new, |subject| subject + " ")
            };
            self.text.push_str(&health::counters(&books, &whose));
            let exact = verbosity.verbose > 1;
            let cut_short = symbolize::cut_short(&located, &self.objects, &self.processes, exact);
            self.text.push_str(&health::cut_short(&cut_short));
        }
        if located.samples().len() == 0 {
            let nothing = Nothing {
                plan,
                probe,
                circumstances: &self.circumstances,
                books: &books,
                remarks: &remarks,
            };
            self.text.push_str(&nothing.told());
            return Ok(false);
        }
        let style = Style {
            title: titled,
            colors: self.colors(probe),
            subtitle: match probe {
                Probe::Wall(_) => plan.style.subtitle.clone().or(Some(LEGEND.to_owned())),
                _ => plan.style.subtitle.clone(),
            },
            notes: balance.clone(),
            ..plan.style.clone()
        };
        let named = profile.as_ref().map(|profile| Named {
            profile,
            style: &style,
        });
        let places = deliver(sinks, outputs, named.as_ref(), archive.as_ref())?;
        self.places.extend(places);
        if verbosity.verbose > 0 {
            self.text.push_str(&format!(
                "time: drained in {:.1} ms, named in {:.1} ms, written in {:.1} ms\n",
                milliseconds(began),
                milliseconds(symbolized - began),
                milliseconds(self.began.elapsed() - symbolized),
            ));
        }
        if !verbosity.quiet || books.sum(Class::Lost) > 0 {
            self.text.push_str(&balance);
        }
        Ok(true)
    }

    /// The palette that was asked for, or else the one that suits what is shown.
    fn colors(&self, probe: &Probe) -> Palette {
        self.plan.colors.unwrap_or(match probe {
            Probe::OffCpu(_) | Probe::Locks(_) => Palette::COLD,
            Probe::Wall(_) => Palette::WALL,
            _ => Palette::LAND,
        })
    }

    /// What weights count.
    fn unit(&self, probe: &Probe) -> Unit {
        if let Some(unit) = probe.unit() {
            unit
        } else if is_weighed(&self.circumstances.event) {
            Unit::Events(self.circumstances.event.name.to_string())
        } else {
            Unit::Samples
        }
    }

    /// Names what one probe brought, as far as these outputs want names.
    fn name(
        &mut self,
        probe: &Probe,
        unit: Unit,
        located: &Located,
        outputs: &[Output],
    ) -> Brought {
        let plan = self.plan;
        let kernel = &mut self.kernel;
        let mut ask = |addresses: &[u64]| kernel.name_symbols(addresses);
        let progress = Progress::new(None, plan.verbosity.quiet);
        let tell = |fetched: &Fetched| progress.fetching(fetched);
        let client = Client::new(plan.servers.addresses(), Limits::from_environment(), &tell);
        let fetch = client.as_ref().map(|client| |id: &BuildId| client.find(id));
        // Whoever fetches says more of it.
        let naming = client.is_none().then(|| progress.naming());
        let told = |done, all| {
            if let Some(naming) = &naming {
                naming.tell(done, all);
            }
        };
        let mut sources = Sources {
            kernel: KernelNames::asked(&mut ask),
            naming: &plan.naming,
            fetch: fetch.as_ref().map(|fetch| fetch as &Fetch<'_>),
            progress: Some(&told),
        };
        let (objects, processes) = (&self.objects, &self.processes);
        let is_archive = |output: &Output| output.format().is_none();
        let stored = (outputs.iter().any(is_archive))
            .then(|| symbolize::store(located, objects, processes, &mut sources));
        let named = (!outputs.iter().all(is_archive))
            .then(|| symbolize::symbolize(located, objects, unit, processes, sources));
        drop(naming);
        progress.clear();
        let of_kernel = stored.as_ref().map(|stored| &stored.kernel);
        let complaint = (named.as_ref().map(|named| &named.kernel))
            .or(of_kernel)
            .and_then(KernelNaming::complaint);
        let mut remarks = Vec::new();
        if let Some(complaint) = complaint {
            remarks.push(format!("Note: {complaint}."));
        }
        if self.processes.refused() > 0 {
            remarks.push(format!(
                "Note: the mappings of {} processes may not be read, so their functions have no names; run with sudo.",
                self.processes.refused()
            ));
        }
        remarks.extend(advice::on_shortage(
            &self.processes.shortage(),
            self.objects.cut_maps(),
        ));
        let distribution = Distribution::here(client.is_some());
        let total = located.total_count();
        let of_names = |unnamed: &[Unnamed]| advice::on_names(unnamed, total, &distribution);
        // Of a raw recording, the rest is said when it is named.
        let mut on_stored = remarks.clone();
        on_stored.extend(stored.iter().flat_map(|stored| of_names(&stored.unnamed)));
        let mut on_names = remarks;
        if let Some(client) = &client {
            on_names.extend(advice::on_fetching(&client.fetched()));
        }
        on_names.extend(named.iter().flat_map(|named| of_names(&named.unnamed)));
        Brought {
            profile: named.map(|named| match how(plan, probe) {
                Some(how) => waits::finish(&named.profile, how),
                None => named.profile,
            }),
            stored,
            on_names,
            on_stored,
        }
    }
}

/// What one probe brought, with names where they are wanted.
struct Brought {
    profile: Option<Profile>,
    stored: Option<Stored>,
    /// What there is to remark on the names.
    on_names: Vec<String>,
    /// What there is to remark on those of the raw recording.
    on_stored: Vec<String>,
}

/// What is made of the kernel stacks of a probe; nothing if they stay as they are.
fn how(plan: &Plan, probe: &Probe) -> Option<waits::Finish> {
    let waits = probe.waits();
    (waits.is_some() || !probe.is_on_event()).then(|| waits::Finish {
        scheduler: waits.is_none(),
        reasons: waits.is_some_and(|waits| waits.reasons),
        kernel: plan.capture.kernel_stacks,
        ran: matches!(probe, Probe::Wall(_)),
    })
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
