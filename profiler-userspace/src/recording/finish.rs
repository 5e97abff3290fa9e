//! After sampling: the last drain, names, files, and the closing paragraph.

use super::advice;
use super::asleep::Before;
use super::distribution::Distribution;
use super::health::{self, Cost, Health};
use super::progress::Progress;
use super::sampling::{Session, Stop};
use super::target;
use super::unwinding::Unwinding;
use crate::debuginfod::{Client, Fetched, Limits};
use crate::object::{BuildId, Fetch};
use crate::output::sink::{Delivery, Sink};
use crate::output::{self, Style};
use crate::plan::{Event, Plan, Target, TitleFacts};
use crate::profile::Unit;
use crate::profile::{Window, waits};
use crate::symbolize::{self, KernelNames, Sources, Symbolized};
use anyhow::Result;
use profiler_common::abi::{Class, Counter};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// What the recording knows and the plan does not.
pub(super) struct Circumstances {
    event: Event,
    stop: Stop,
    elapsed: Duration,
    host: String,
    comms: HashMap<u32, String>,
    cpu_before: Duration,
    remarks: Vec<String>,
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
            Ok(before) if before.incomplete > 0 => self.remark(format!(
                "Note: the memory of {} threads that were asleep from the beginning may not be read, so their callers are missing.",
                before.incomplete
            )),
            Ok(_) => {}
            Err(error) => self.remark(format!(
                "Note: threads that were asleep from the beginning are counted from their first wake-up only: {error:#}."
            )),
        }
    }

    /// Something that the closing paragraph should say.
    pub(super) fn remark(&mut self, sentence: impl Into<String>) {
        self.remarks.push(sentence.into());
    }

    fn title(&self, plan: &Plan) -> String {
        plan.default_title(&TitleFacts {
            event: &self.event,
            elapsed: self.elapsed,
            host: &self.host,
            comm: &|id| self.comms.get(&id).cloned(),
        })
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
    session.hear()?;
    session.kernel.drain_rest(&mut session.raw)?;
    let loaded = session.unwinding.as_ref().map(Unwinding::loaded);
    let Session {
        mut kernel,
        mut processes,
        mut raw,
        ..
    } = session;
    raw.window = Window {
        start: Duration::ZERO,
        end: circumstances.elapsed,
    };
    let drained = began.elapsed();
    let unit = if let Some(unit) = plan.probe.unit() {
        unit
    } else if is_weighed(&circumstances.event) {
        Unit::Events(circumstances.event.name.to_string())
    } else {
        Unit::Samples
    };
    let mut ask = |addresses: &[u64]| kernel.name_symbols(addresses);
    let progress = Progress::new(None, plan.verbosity.quiet);
    let tell = |fetched: &Fetched| progress.fetching(fetched);
    let client = Client::new(plan.servers.addresses(), Limits::from_environment(), &tell);
    let fetch = client.as_ref().map(|client| |id: &BuildId| client.find(id));
    let Symbolized {
        profile,
        kernel: naming,
        unnamed,
    } = symbolize::symbolize(
        &raw,
        unit,
        &mut processes,
        Sources {
            kernel: KernelNames::asked(&mut ask),
            naming: &plan.naming,
            fetch: fetch.as_ref().map(|fetch| fetch as &Fetch<'_>),
        },
    );
    progress.clear();
    let profile = if !plan.probe.is_on_event() {
        let waits = plan.probe.waits();
        let how = waits::Finish {
            scheduler: waits.is_none(),
            reasons: waits.is_some_and(|waits| waits.reasons),
            kernel: plan.capture.kernel_stacks,
        };
        waits::finish(&profile, how)
    } else {
        profile
    };
    let symbolized = began.elapsed();
    if circumstances.stop == Stop::TargetEnded {
        circumstances.remark(format!(
            "The target ended after {:.1} s.",
            circumstances.elapsed.as_secs_f64()
        ));
    }
    if let Some(complaint) = naming.complaint() {
        circumstances.remark(format!("Note: {complaint}."));
    }
    if processes.refused() > 0 {
        circumstances.remark(format!(
            "Note: the mappings of {} processes may not be read, so their functions have no names; run with sudo.",
            processes.refused()
        ));
    }
    if let Some(sentence) = client
        .as_ref()
        .and_then(|client| advice::on_fetching(&client.fetched()))
    {
        circumstances.remark(sentence);
    }
    for sentence in advice::on_names(
        &unnamed,
        raw.total_count(),
        &Distribution::here(client.is_some()),
    ) {
        circumstances.remark(sentence);
    }
    let books = kernel.books();
    let title = circumstances.title(plan);
    let sampled: HashSet<(u32, u64)> = raw
        .samples
        .iter()
        .map(|sample| (sample.who.tgid, sample.who.incarnation))
        .collect();
    let ends = symbolize::stack_ends(&raw);
    for sentence in loaded.iter().flat_map(health::unwind_remarks) {
        circumstances.remark(sentence);
    }
    let health = Health {
        subject: &title,
        noun: plan.probe.noun(),
        waited: (profile.unit == Unit::Nanoseconds).then(|| profile.total_weight()),
        books: &books,
        stacks: raw.stacks.len(),
        processes: sampled.len(),
        ends: &ends,
        guessed: symbolize::guessed(&raw),
        idle_is_offered: plan.target == Target::All,
        remarks: &circumstances.remarks,
    };
    let wrote = !profile.samples().is_empty();
    let mut text = String::new();
    if plan.verbosity.verbose > 0 {
        text.push_str(&health::counters(&books));
        if let Some(loaded) = &loaded {
            text.push_str(&health::tables(loaded));
        }
        let exact = plan.verbosity.verbose > 1;
        let cut_short = symbolize::cut_short(&raw, &processes, exact);
        text.push_str(&health::cut_short(&cut_short));
    }
    if wrote {
        let style = Style {
            title: plan.title.clone().unwrap_or_else(|| title.clone()),
            notes: health.balance(),
            ..plan.style.clone()
        };
        let mut places = Vec::new();
        for (sink, output) in sinks.iter().zip(&plan.outputs) {
            let format = output.format();
            let delivery = sink.deliver(|out| output::write(&profile, format, &style, out))?;
            if delivery == Delivery::Complete && !sink.is_stdout() {
                places.push(sink.name().display().to_string());
            }
        }
        if plan.verbosity.verbose > 0 {
            text.push_str(&format!(
                "time: drained in {:.1} ms, named in {:.1} ms, written in {:.1} ms\n",
                milliseconds(drained),
                milliseconds(symbolized - drained),
                milliseconds(began.elapsed() - symbolized),
            ));
        }
        let lossless = books.sum(Class::Lost) == 0;
        if !plan.verbosity.quiet || !lossless {
            text.push_str(&health.balance());
        }
        if !plan.verbosity.quiet {
            let tables = loaded.map_or(0, |loaded| loaded.bytes);
            let cost = Cost::now(kernel.map_bytes() + tables);
            text.push_str(&format!(" {}", health.cost(&cost)));
            if !places.is_empty() {
                text.push_str(&format!(" Wrote {}.", places.join(", ")));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    } else {
        text.push_str(&nothing_sampled(plan, &circumstances, &books));
    }
    Ok(Report { text, wrote })
}

/// Why there is not one sample, and what to do.
fn nothing_sampled(
    plan: &Plan,
    circumstances: &Circumstances,
    books: &profiler_common::abi::Books,
) -> String {
    let seconds = circumstances.elapsed.as_secs_f64();
    let lost = books.sum(Class::Lost);
    let noun = plan.probe.noun();
    let reason = match &plan.target {
        _ if lost > 0 => {
            format!("all {lost} were lost; a larger --map-memory or a lower -F keeps them")
        }
        _ if plan.probe.waits().is_some() => {
            let left_out = books.sum(Class::Filtered);
            let narrow = if left_out > 0 {
                format!("all {left_out} times off the CPU were left out, as asked; ask for less")
            } else {
                "it was never off the CPU; record for longer, or without --off-cpu".to_owned()
            };
            format!("in {seconds:.1} s, {narrow}")
        }
        _ if books.get(Counter::FilteredFileKind) > 0 => format!(
            "all {} were about other kinds of files; --io-kind all keeps them",
            books.get(Counter::FilteredFileKind)
        ),
        _ if !plan.probe.is_on_event() => {
            format!("there were none in {seconds:.1} s; record for longer, or while there are")
        }
        _ if !circumstances.event.is_cpu_time() => format!(
            "there were no {} in {seconds:.1} s; record for longer",
            circumstances.event.name
        ),
        Target::Launched => format!(
            "the command used the CPU too little in its {seconds:.3} s to be sampled; try a higher -F"
        ),
        Target::Processes(ids) | Target::Threads(ids) => {
            let used = target::cpu_time(ids)
                .saturating_sub(circumstances.cpu_before)
                .as_secs_f64();
            let list: Vec<String> = ids.iter().map(u32::to_string).collect();
            let ended = if circumstances.stop == Stop::TargetEnded {
                " and ended"
            } else {
                ""
            };
            format!(
                "{} used {used:.2} s of CPU in {seconds:.1} s{ended}; record for longer, while it is busy, or with a higher -F",
                list.join(", "),
            )
        }
        Target::All if books.get(Counter::FilteredIdle) > 0 => format!(
            "the CPUs were idle for all of the {seconds:.1} s; record while they are busy, or use -I to see the idle task"
        ),
        Target::All => {
            format!("nothing ran in {seconds:.1} s; record for longer, or with a higher -F")
        }
    };
    let filtered: u64 =
        books.get(Counter::FilteredUserMode) + books.get(Counter::FilteredNoUserStack);
    let left_out = if filtered > 0 {
        format!(" ({filtered} samples were left out by -U or -K)")
    } else {
        String::new()
    };
    let remarks: String = circumstances
        .remarks
        .iter()
        .map(|remark| format!(" {remark}"))
        .collect();
    format!("flame-bpf: no {noun}s: {reason}{left_out}. Nothing was written.{remarks}\n")
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
