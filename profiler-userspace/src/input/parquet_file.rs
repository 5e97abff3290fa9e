//! Parquet: the tables of samples that we write, and what engines of SQL have made of them.
//!
//! In: the bytes of files, and what is wanted of them. Out: one profile with its windows, from all files. Files are read twice: for their
//! windows, and for their rows; of rows that are not wanted no stack is read. Nothing in a file is believed before it was
//! [checked](checks).

mod checks;
mod columns;
mod group;
mod guarded;
mod stacks;
mod windows;

use super::{Error, Head, MAX_BYTES, ReadOptions, Reading, TOO_LARGE};
use crate::parquet_schema::{Facts, KEY, outcome};
use crate::profile::fold::MAX_MEMORY;
use crate::profile::{Activity, LabelsIndex, Machine, OffCpuView, Profile, Sample, WindowIndex};
use bytes::Bytes;
use columns::{NONE, Table, Texts};
use foldhash::HashMap;
use group::{Flat, Frames};
use profiler_common::abi::ThreadState;
use stacks::{Parts, Raw, RawOwner, RowStack, thread_state};
use std::io::BufRead;
use std::sync::Arc;
use windows::{Survey, Windows};

/// So many rows are read at a time.
const BATCH_ROWS: usize = 4096;

/// Whether the file begins as such files do.
pub(super) fn looks_so(head: &Head<'_>) -> bool {
    head.bytes.starts_with(b"PAR1")
}

pub(super) fn read(from: &mut dyn BufRead, options: &ReadOptions<'_>) -> Result<Reading, Error> {
    let bytes = Bytes::from(super::whole(from, MAX_BYTES, TOO_LARGE)?);
    read_files(1, &mut |_| Ok(bytes.clone()), options).map_err(|(_, error)| error)
}

/// Reads so many files as one profile; `open` gives the bytes of each, twice.
///
/// # Errors
/// The number of the file that cannot be read, and why.
pub fn read_files(
    files: usize,
    open: &mut dyn FnMut(usize) -> Result<Bytes, Error>,
    options: &ReadOptions<'_>,
) -> Result<Reading, (usize, Error)> {
    let mut texts = Texts::default();
    let mut survey = Survey::new(options.sample_type);
    for file in 0..files {
        let see = |bytes| survey.see(&mut Table::new(bytes)?, &mut texts);
        open(file).and_then(see).map_err(|error| (file, error))?;
    }
    let windows = survey.windows(options).map_err(|error| (0, error))?;
    let mut rows = Rows::new(options, &survey, windows, texts);
    for file in 0..files {
        let take = |bytes| rows.take(&mut Table::new(bytes)?);
        open(file).and_then(take).map_err(|error| (file, error))?;
    }
    Ok(rows.finish(&survey, files))
}

/// Names of the files that a table was made of.
///
/// # Errors
/// When it is no table.
pub fn made_of(bytes: Bytes) -> Result<Vec<String>, Error> {
    let table = Table::new(bytes)?;
    let facts = table.value(KEY).and_then(Facts::read);
    Ok(facts.unwrap_or_default().made_of)
}

/// A file that is not as such files are.
fn broken(problem: &str) -> Error {
    Error::Whole(format!(
        "{problem}, so it is broken or of another program; make it again with flame-bpf"
    ))
}

/// All that tells samples apart.
type Key = (LabelsIndex, RowStack, WindowIndex);

/// Rows that become samples.
struct Rows<'a> {
    options: &'a ReadOptions<'a>,
    windows: Windows,
    texts: Texts,
    parts: Parts,
    profile: Profile,
    event: u32,
    samples: Vec<Sample>,
    known: HashMap<Key, usize>,
    hosts: Vec<u32>,
    has_waits: bool,
    // The numbers of these words.
    recorded: u32,
    filtered: u32,
    lost: u32,
}

impl<'a> Rows<'a> {
    fn new(
        options: &'a ReadOptions<'a>,
        survey: &Survey,
        windows: Windows,
        mut texts: Texts,
    ) -> Self {
        let unit = survey.unit();
        Self {
            options,
            parts: Parts::default(),
            profile: Profile::new(unit, windows.window()),
            event: texts.number(&survey.event),
            samples: Vec::new(),
            known: HashMap::default(),
            hosts: Vec::new(),
            has_waits: false,
            recorded: texts.number(outcome::RECORDED),
            filtered: texts.number(outcome::FILTERED),
            lost: texts.number(outcome::LOST),
            windows,
            texts,
        }
    }

    fn take(&mut self, table: &mut Table) -> Result<(), Error> {
        for group in 0..table.groups() {
            let rows = table.rows(group)?;
            let mut flat = Flat::open(table, group)?;
            let mut frames = Frames::open(table, group)?;
            let mut done = 0;
            while done < rows {
                let batch = BATCH_ROWS.min(rows - done);
                flat.read(batch, &mut self.texts)?;
                self.batch(batch, &flat, &mut frames)?;
                done += batch;
                let memory = self.texts.bytes + self.parts.bytes;
                if memory + self.samples.len() as u64 * 160 > MAX_MEMORY {
                    let problem =
                        "it would take more than 2 GiB of memory; choose less with --from and --to";
                    return Err(Error::whole(problem));
                }
            }
        }
        Ok(())
    }

    /// Takes some rows, and reads the stacks of those that are wanted.
    fn batch(&mut self, rows: usize, flat: &Flat, frames: &mut Frames) -> Result<(), Error> {
        let cells = (0..rows).map(|row| self.row(row, flat));
        let cells = cells.collect::<Result<Vec<Option<RowCells>>, Error>>()?;
        let has_stack = |row: &Option<RowCells>| row.as_ref().is_some_and(|row| row.has_stack);
        let mut stack = Vec::new();
        // As many rows as are read, or passed over, at once.
        for run in cells.chunk_by(|row, next| has_stack(row) == has_stack(next)) {
            match run.first().is_some_and(has_stack) {
                true => frames.read(run.len(), &mut self.texts)?,
                false => frames.skip(run.len())?,
            }
            for (at, row) in run.iter().enumerate() {
                let Some(row) = row else {
                    continue;
                };
                stack.clear();
                if row.has_stack {
                    frames.of_row(at, &mut stack)?;
                }
                self.push(row, &stack);
            }
        }
        Ok(())
    }

    /// A row that is a sample of a wanted window; none if it is another. Firings of its window are counted.
    fn row(&mut self, row: usize, flat: &Flat) -> Result<Option<RowCells>, Error> {
        let text = |column: usize| flat.texts[column].1.all[row];
        let number = |column: usize| flat.numbers[column].1.all[row];
        let [
            event,
            what,
            host,
            cgroup,
            container,
            pod,
            source,
            process,
            thread,
            state,
        ] = std::array::from_fn(text);
        let [time, duration, count, value, pid, tid, cpu] = std::array::from_fn(number);
        let Some(window) = self
            .windows
            .index(time, duration)
            .filter(|_| event == self.event)
        else {
            return Ok(None);
        };
        let positive = |number: Option<i64>| {
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| broken("a row counts less than nothing"))
        };
        let (count, weight) = (positive(count)?, positive(value)?);
        let totals = self.windows.totals(window);
        if let Some(totals) = totals {
            totals.firings = totals.firings.saturating_add(count);
            if what == self.filtered {
                totals.filtered = totals.filtered.saturating_add(count);
            } else if what == self.lost {
                totals.lost = totals.lost.saturating_add(count);
            }
        }
        if what != self.recorded {
            return Ok(None);
        }
        if host != NONE && !self.hosts.contains(&host) {
            self.hosts.push(host);
        }
        let source = match self.options.per_host && host != NONE {
            true => host,
            false => source,
        };
        let owner = RawOwner {
            cgroup,
            container,
            pod,
            source,
            process,
            thread,
            pid,
            tid,
            cpu,
        };
        let labels = self.parts.owner(&mut self.profile, &self.texts, owner);
        let options = self.options.cgroups;
        let cgroup = &self.profile.labels_at(labels).cgroup;
        // Those that are not selected are told apart by their owners alone.
        let has_stack = options.is_empty()
            || (cgroup.as_ref())
                .is_some_and(|cgroup| options.iter().any(|it| it.is_met_by(cgroup)));
        Ok(Some(RowCells {
            labels,
            state: thread_state(self.texts.get(state).unwrap_or_default()),
            window,
            count,
            weight,
            has_stack,
        }))
    }

    fn push(&mut self, row: &RowCells, frames: &[Raw]) {
        let stack = self
            .parts
            .stack(&mut self.profile, &self.texts, frames, row.state);
        self.has_waits |= stack.thread_state == ThreadState::Blocked;
        let sample = Sample {
            labels: row.labels,
            user: stack.user,
            kernel: stack.kernel,
            thread_state: stack.thread_state,
            reason: None,
            waker: None,
            window: row.window,
            weight: row.weight,
            count: row.count,
        };
        let place = *(self.known.entry((row.labels, stack, row.window))).or_insert_with(|| {
            self.samples.push(Sample {
                weight: 0,
                count: 0,
                ..sample
            });
            self.samples.len() - 1
        });
        let known = &mut self.samples[place];
        known.weight = known.weight.saturating_add(sample.weight);
        known.count = known.count.saturating_add(sample.count);
    }

    fn finish(self, survey: &Survey, files: usize) -> Reading {
        let Self {
            mut profile,
            samples,
            windows,
            texts,
            ..
        } = self;
        profile.reserve(samples.len());
        samples.into_iter().for_each(|sample| profile.push(sample));
        let facts = &survey.facts;
        let origin = &mut profile.origin;
        origin.started = windows.started();
        origin.period_ns = facts.period_ns;
        origin.activity = match &*facts.threads {
            "waiting" => Activity::Waiting,
            "both" => Activity::Both,
            _ => Activity::Running,
        };
        // Nobody has said of which event it is.
        let is_named = survey.event != profile.unit.name();
        origin.event = is_named.then(|| survey.event.as_str().into());
        if let [host] = *self.hosts {
            origin.machine = Some(Arc::new(Machine {
                host: texts.get(host).unwrap_or_default().to_owned(),
                kernel: survey.kernel.clone().unwrap_or_default(),
                ..Machine::default()
            }));
        }
        if self.has_waits || profile.origin.activity != Activity::Running {
            // The reason of a wait is a frame already.
            profile.off_cpu = Some(OffCpuView::PLAIN);
        }
        let mut notes = windows.notes(files == 1, &facts.balance);
        notes.extend(survey.others().map(|others| ("not shown", others)));
        profile.windows = windows.into_totals();
        Reading { profile, notes }
    }
}

/// A row that is a sample.
struct RowCells {
    labels: LabelsIndex,
    state: ThreadState,
    window: WindowIndex,
    count: u64,
    weight: u64,
    has_stack: bool,
}
