//! A raw recording in windows: what a stretch of time brought is written as soon as it is over.
//!
//! In: the plan of a recording, and its session, window by window. Out: a file that grows, and that is whole after each of
//! them; and at the end what there is to say. Nothing of a window is kept in memory but which stacks the file has.

use super::circumstances::Circumstances;
use super::finish::Report;
use super::health::{self, Cost, Health, counted};
use super::naming::{Namer, how};
use super::sampling::Session;
use super::stored::Told;
use super::unwinding::Unwinding;
use crate::archive::Writer;
use crate::kernel::Kernel;
use crate::output::sink::{Growing, Sink};
use crate::plan::{Plan, Target, Track};
use crate::process::Processes;
use crate::profile::located::Located;
use crate::profile::raw::Parts;
use crate::profile::{Unit, Window};
use crate::symbolize::{self, KernelNames, Objects};
use anyhow::{Context as _, Result};
use profiler_common::abi::{Books, Class, Counter, StackEnd};
use std::collections::BTreeMap;
use std::time::Duration;

/// The windows of a recording that is under way.
pub(super) struct Windows<'a> {
    plan: &'a Plan,
    sinks: &'a [Sink],
    length: Duration,
    title: String,
    host: String,
    written: Written,
}

/// What was written so far.
#[derive(Default)]
pub(super) struct Written {
    file: Option<(Growing, Writer)>,
    windows: u64,
    /// When the last of them ended, from the beginning on.
    until: Duration,
    /// The kernel's books by then.
    books: Books,
    /// Of all windows.
    samples: u64,
    waited: u64,
    ends: BTreeMap<StackEnd, u64>,
    guessed: u64,
}

impl<'a> Windows<'a> {
    /// Those of a plan, if it has any. Nothing is written yet.
    pub(super) fn of(
        plan: &'a Plan,
        circumstances: &Circumstances,
        sinks: &'a [Sink],
    ) -> Option<Self> {
        let length = plan.window?;
        let track = plan.tracks.first()?;
        let title =
            (plan.title.clone()).unwrap_or_else(|| circumstances.timeless_title(plan, track));
        Some(Self {
            plan,
            sinks,
            length,
            title,
            host: circumstances.host.clone(),
            written: Written::default(),
        })
    }

    /// Whether a window is over when the recording has lasted so long.
    pub(super) fn is_over(&self, elapsed: Duration) -> bool {
        elapsed >= self.written.until + self.length
    }

    /// Writes the window that ends now.
    pub(super) fn write_next(&mut self, session: &mut Session) -> Result<()> {
        let until = session.elapsed();
        let (located, objects) = session.take_window()?;
        let Session {
            kernel, processes, ..
        } = session;
        self.write(located, &objects, kernel, processes, until)
    }

    /// What was written, for when the recording has ended.
    pub(super) fn written(self) -> Written {
        self.written
    }

    fn write(
        &mut self,
        mut located: Located,
        objects: &Objects,
        kernel: &mut Kernel,
        processes: &Processes,
        until: Duration,
    ) -> Result<()> {
        let (plan, written) = (self.plan, &mut self.written);
        let track = plan.tracks.first().context("a plan has a track")?;
        located.window = Window {
            start: Duration::ZERO,
            end: until.saturating_sub(written.until),
        };
        let mut ask = |addresses: &[u64]| kernel.name_symbols(addresses);
        let located = symbolize::without_interrupted(located, &mut KernelNames::asked(&mut ask));
        let brought = Namer {
            plan,
            kernel,
            processes,
            objects,
        }
        .name(track, &located);
        let all = kernel.books(0);
        let mut books = all.since(&written.books);
        // What came since the drain is the next window's.
        books.counters[Counter::Recorded as usize] = located.total_count();
        let ends = symbolize::stack_ends(&located);
        let guessed = symbolize::guessed(&located);
        let waited = weight(&located);
        let closing = Health {
            subject: &self.title,
            noun: track.probe.noun(),
            waited: is_time(track).then_some(waited),
            books: &books,
            extent: &health::extent(&located, objects.processes(Parts::ALL)),
            ends: &ends,
            guessed,
            idle_is_offered: plan.target == Target::All,
            remarks: &brought.on_stored,
        }
        .balance();
        let told = Told {
            host: &self.host,
            title: &self.title,
            noun: track.probe.noun(),
            event: track.name(),
            unit: track.unit(),
            finish: how(plan, &track.probe),
        };
        let stored = brought.stored.context("there is no raw recording")?;
        let archive = told.archive(stored, closing);
        let lost = books.sum(Class::Lost);
        match &mut written.file {
            Some((file, writer)) => file.add(|out| writer.window(&archive, lost, out))?,
            None => {
                let sink = self.sinks.first().context("there is an output")?;
                written.file = Some(sink.grow(|out| {
                    let mut writer = Writer::begin(&archive.facts, out)?;
                    writer.window(&archive, lost, out)?;
                    Ok(writer)
                })?);
            }
        }
        written.windows += 1;
        written.until = until;
        written.books = all;
        written.samples += located.total_count();
        written.waited = written.waited.saturating_add(waited);
        written.guessed += guessed;
        for (end, count) in ends {
            *written.ends.entry(end).or_default() += count;
        }
        Ok(())
    }
}

/// Detaches, writes the last window, and ends the file.
pub(super) fn finish(
    mut session: Session,
    plan: &Plan,
    mut circumstances: Circumstances,
    sinks: &[Sink],
    written: Written,
) -> Result<Report> {
    session.kernel.detach()?;
    session.kernel.drain_rest(&mut session.raw)?;
    session.take_in_news();
    let loaded = session.unwinding.as_ref().map(Unwinding::loaded);
    let Session {
        mut kernel,
        mut processes,
        mut raw,
        locator,
        ..
    } = session;
    let (located, objects) = locator.finish(&mut raw, &mut processes);
    let mut windows = Windows::of(plan, &circumstances, sinks).context("a plan has windows")?;
    windows.written = written;
    let until = circumstances.elapsed;
    windows.write(located, &objects, &mut kernel, &processes, until)?;
    for sentence in loaded.iter().flat_map(health::unwind_remarks) {
        circumstances.remark(sentence);
    }
    let track = plan.tracks.first().context("a plan has a track")?;
    let Written {
        file,
        windows: count,
        samples,
        waited,
        ends,
        guessed,
        ..
    } = windows.written;
    let mut books = kernel.books(0);
    books.counters[Counter::Recorded as usize] = samples;
    let (mut file, writer) = file.context("a window was written")?;
    let extent = format!(
        "{}, {} bytes",
        counted(count, "window"),
        health::grouped(file.bytes())
    );
    let remarks = [&*circumstances.remarks, &*circumstances.of_waits].concat();
    let closing = Health {
        subject: &circumstances.title(plan, track),
        noun: track.probe.noun(),
        waited: is_time(track).then_some(waited),
        books: &books,
        extent: &extent,
        ends: &ends,
        guessed,
        idle_is_offered: plan.target == Target::All,
        remarks: &remarks,
    }
    .balance();
    file.add(|out| writer.end(closing.clone(), out))?;
    let mut text = String::new();
    if plan.verbosity.verbose > 0 {
        text.extend(loaded.as_ref().map(health::tables));
        text.push_str(&health::counters(&books, ""));
    }
    if !plan.verbosity.quiet || books.sum(Class::Lost) > 0 {
        text.push_str(&closing);
    }
    if !plan.verbosity.quiet {
        let tables = loaded.map_or(0, |loaded| loaded.bytes);
        text.push(' ');
        text.push_str(&health::cost(
            &[books],
            &Cost::now(kernel.map_bytes() + tables),
        ));
        let names: Vec<String> = sinks
            .iter()
            .map(|sink| sink.name().display().to_string())
            .collect();
        text.push_str(&format!(" Wrote {}.", names.join(", ")));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    Ok(Report {
        text,
        wrote: samples > 0,
    })
}

fn is_time(track: &Track) -> bool {
    track.unit() == Unit::Nanoseconds
}

fn weight(located: &Located) -> u64 {
    let weights = located.samples().map(|(_, sums)| sums.weight);
    weights.fold(0, u64::saturating_add)
}
