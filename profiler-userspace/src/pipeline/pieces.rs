//! Inputs one after the other, and what there is to say of each.
//!
//! In: files of any kind. Out: for each its samples, and what there is to say of it; of several recordings, one profile whose
//! objects were named once. Never: keeps an input that was read.

use crate::clock::{Between, Hour, shown};
use crate::input::{File, Kind, ReadOptions, Time, made_of};
use crate::pipeline::foreign::{self, Foreign};
use crate::pipeline::input::{self, Input};
use crate::pipeline::progress::Reading;
use crate::pipeline::read_summary::{self, RenderedShare};
use crate::pipeline::symbolize::Symbolizer;
use crate::pipeline::view::viewed;
use crate::plan::RootPer;
use crate::profile::cgroup::CgroupPattern;
use crate::profile::fold::visible;
use crate::profile::{Machine, Origin, Profile, Unit};
use crate::raw_recording::{self, Facts, Merged, WindowFilter};
use crate::report::findings::{Finding, Summary};
use crate::store::{self, Listing, Table};
use crate::text::number::counted;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use foldhash::{HashMap, HashSet};
use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Inputs, and how they are read.
#[derive(Clone, Copy, Default)]
pub(super) struct InputRequest<'a> {
    pub(super) files: &'a [PathBuf],
    /// The time that is wanted of each; none for all.
    pub(super) time: Option<Time<'a>>,
    /// That of each file instead, if not empty.
    pub(super) times: &'a [Option<Time<'a>>],
    /// By how many windows samples are told apart.
    pub(super) windows: usize,
    /// Cgroups that will be selected; none for all.
    pub(super) cgroups: &'a [CgroupPattern],
    /// Which of the things that an input counts is shown; none for the usual one.
    pub(super) sample_type: Option<&'a str>,
    pub(super) root_per: Option<RootPer>,
    /// Whether lines of one function are frames of their own. Of recordings, symbols have none unless it is so.
    pub(super) lines: bool,
    /// Says nothing of how far it has come.
    pub(super) quiet: bool,
}

impl InputRequest<'_> {
    /// The part of it for one file.
    fn of_file(self, number: usize) -> Self {
        match self.times.get(number) {
            Some(time) => Self {
                time: *time,
                ..self
            },
            None => self,
        }
    }
}

/// Facts about an input for readers.
#[derive(Default)]
pub(super) struct Told {
    pub(super) title: String,
    pub(super) summary: Summary,
    /// Where it comes from, a fact to a line.
    pub(super) about: String,
    /// Sentences for stderr in any case; empty if there are none.
    pub(super) missing: String,
    /// The event of a raw recording.
    pub(super) event: Option<String>,
}

/// Samples of an input, and what there is to say of it.
pub(super) struct InputSamples {
    pub(super) told: Told,
    pub(super) content: Content,
    /// Its name where inputs are told apart.
    pub(super) source: Option<String>,
}

/// Samples of an input.
pub(super) enum Content {
    /// Without names.
    Recording(Box<Facts>, Merged),
    Profile(Profile),
}

/// Reads each input and gives it to `take` with its number. Some do not say what they count, which is what the others do: they come
/// last.
pub(super) fn each(
    asked: InputRequest<'_>,
    take: &mut dyn FnMut(usize, InputSamples) -> Result<()>,
) -> Result<()> {
    let reading = Reading::begin(bytes(asked.files), asked.quiet);
    let read_bytes = &reading.bytes;
    let mut unit = None;
    let mut stdin = None;
    let mut put_off: Vec<(usize, &Path)> = Vec::new();
    for (number, path) in asked.files.iter().enumerate() {
        match Input::open(path, read_bytes)? {
            Input::Foreign(file) if !file.kind.has_unit => {
                may_have_time(asked.of_file(number).time, path, file.kind)?;
                match input::is_stdin(path) {
                    true => stdin = Some((number, path, file)),
                    // It is opened again: there may be more than a process may have open.
                    false => put_off.push((number, path)),
                }
            }
            input => {
                let piece = read(asked.of_file(number), path, input)?;
                unit.get_or_insert_with(|| piece.content.unit().clone());
                take(number, piece)?;
            }
        }
    }
    let unit = unit.unwrap_or(Unit::Samples);
    let asked = AskedOfForeign::new(asked, unit);
    if let Some((number, path, file)) = stdin {
        take(number, read_foreign(&asked, path, file)?)?;
    }
    // As many at once as there are CPUs, since reading text is work.
    let workers = thread::available_parallelism().map_or(1, usize::from);
    for some in put_off.chunks(workers.min(MAX_WORKERS)) {
        let read = |path: &Path| match Input::open(path, read_bytes)? {
            Input::Foreign(file) => read_foreign(&asked, path, file),
            Input::Recording(_) | Input::Store(_) => {
                bail!("{} is another file now", input::name(path))
            }
        };
        let Some(((_, here), others)) = some.split_last() else {
            continue;
        };
        let pieces: Vec<Result<InputSamples>> = thread::scope(|scope| {
            let reading = others
                .iter()
                .map(|&(_, path)| scope.spawn(move || read(path)));
            let workers: Vec<_> = reading.collect();
            // Memory of other threads costs more.
            let here = read(here);
            let joined = workers.into_iter().zip(others).map(|(worker, (_, path))| {
                let name = input::name(path);
                let died = |_| {
                    Err(anyhow!(
                        "cannot read {name}: its reader panicked; see above"
                    ))
                };
                worker.join().unwrap_or_else(died)
            });
            joined.chain([here]).collect()
        });
        for ((number, _), piece) in some.iter().zip(pieces) {
            take(*number, piece?)?;
        }
    }
    Ok(())
}

/// The size of files together; none where one has no size, as a pipe.
fn bytes(files: &[PathBuf]) -> Option<u64> {
    let size = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        file.is_file().then_some(file.len())
    };
    files.iter().map(size).sum()
}

/// So many files are read at once at most: each takes the memory of its stacks.
const MAX_WORKERS: usize = 4;

/// The part of what is asked that matters to profiles of other tools.
struct AskedOfForeign<'a> {
    options: ReadOptions<'a>,
    root_per: Option<RootPer>,
    lines: bool,
}

impl<'a> AskedOfForeign<'a> {
    /// Samples are of this unit unless a file says something else.
    fn new(asked: InputRequest<'a>, unit: Unit) -> Self {
        Self {
            options: ReadOptions {
                unit,
                sample_type: asked.sample_type,
                time: asked.time,
                windows: asked.windows,
                cgroups: asked.cgroups,
                per_host: asked.root_per == Some(RootPer::Host),
            },
            root_per: asked.root_per,
            lines: asked.lines,
        }
    }
}

/// The samples of an input that says what it counts.
fn read(asked: InputRequest<'_>, path: &Path, input: Input) -> Result<InputSamples> {
    match input {
        Input::Recording(bytes) => read_recording(asked, path, bytes),
        Input::Foreign(file) => {
            let asked = AskedOfForeign::new(asked, Unit::Samples);
            read_foreign(&asked, path, file)
        }
        Input::Store(listing) => read_store(asked, path, listing),
    }
}

/// Refuses moments that count from the beginning of a folder.
pub(super) fn check_time(file: &Path, between: Between) -> Result<()> {
    ensure!(
        !between.is_after() || !file.is_dir(),
        "{} has no beginning to count from; give a time, such as 14:05 or \"2026-11-22 14:05\"",
        input::name(file)
    );
    Ok(())
}

/// So long before the end of a folder's last table lies what a time of day is near to.
const HALF_A_DAY: Duration = Duration::from_secs(12 * 3600);

/// The samples of a folder's tables, as one input. Of those that are of other hours than are wanted, none is opened.
fn read_store(asked: InputRequest<'_>, path: &Path, mut store: Listing) -> Result<InputSamples> {
    let name = input::name(path);
    let hours = store.tables.iter().filter_map(|table| table.hour);
    let (first, last) = (hours.clone().min(), hours.max());
    let wanted = asked
        .time
        .zip(last)
        .map(|(time, last)| time(last.end() - HALF_A_DAY));
    let left = not_in_tables(&store, |hour| {
        { wanted.as_ref() }
            .is_none_or(|wanted| hour.start() < wanted.end && hour.end() > wanted.start)
    });
    if let (Some(wanted), Some((first, last))) = (&wanted, first.zip(last)) {
        // Windows are of the hour in which they began, and not longer than one.
        let may_be = |hour: Hour| hour.start() < wanted.end && hour.end() + HOUR > wanted.start;
        store.tables.retain(|table| table.hour.is_none_or(may_be));
        let since = { left.first() }.map_or_else(String::new, |recording| {
            format!("; {} has what came since", input::name(recording))
        });
        ensure!(
            !store.tables.is_empty(),
            "cannot read {name}: none of its tables is of that time; they begin at {} and end at {}{since}",
            shown(first.start()),
            shown(last.end())
        );
    }
    let time = |began| match &wanted {
        Some(wanted) => wanted.clone(),
        None => asked.time.map_or(began..began, |time| time(began)),
    };
    let mut of_foreign = AskedOfForeign::new(asked, Unit::Samples);
    if asked.time.is_some() {
        of_foreign.options.time = Some(&time);
    }
    let mut foreign = foreign::read_tables(&name, &store.tables, &of_foreign.options)?;
    if let Some(recording) = left.first() {
        foreign.summary.findings.push(Finding::note(format!(
            "what came after the last table is not shown; {} of it, such as `{}`, can be rendered",
            counted(left.len() as u64, "recording"),
            input::name(recording)
        )));
    }
    piece(&of_foreign, name, true, foreign)
}

/// The recordings of wanted hours of a store that none of its tables was made of. Each table beside one is read once.
fn not_in_tables(store: &Listing, is_wanted: impl Fn(Hour) -> bool) -> Vec<PathBuf> {
    // The folder and the hour of tables, with what they were made of.
    let mut in_tables: HashMap<(Option<&Path>, Hour), HashSet<String>> = HashMap::default();
    let mut left = Vec::new();
    for (hour, recording) in &store.recordings {
        if !is_wanted(*hour) {
            continue;
        }
        let place = (recording.parent(), *hour);
        let in_them = in_tables.entry(place).or_insert_with(|| {
            let of_table = |table: &Table| {
                let bytes = fs::read(&table.path).ok()?;
                made_of(bytes.into()).ok()
            };
            let tables = store.tables.iter();
            let beside =
                tables.filter(|table| (table.path.parent(), table.hour) == (place.0, Some(*hour)));
            beside.filter_map(of_table).flatten().collect()
        });
        if !in_them.contains(&store::name(recording)) {
            left.push(recording.clone());
        }
    }
    left
}

const HOUR: Duration = Duration::from_secs(3600);

fn read_recording(
    asked: InputRequest<'_>,
    path: &Path,
    bytes: Box<dyn BufRead>,
) -> Result<InputSamples> {
    let name = input::name(path);
    ensure!(
        asked.sample_type.is_none(),
        "cannot read {name}: a raw recording counts one thing alone; leave --sample-type out"
    );
    let wanted: WindowFilter<'_> = match &asked.time {
        Some(time) => Some(time),
        None => None,
    };
    let mut read = raw_recording::read(bytes, wanted, asked.windows)
        .with_context(|| format!("cannot read {name}"))?;
    let told = Told::of_recording(&read);
    let merged = Merged::of(&mut read.raw_recording);
    let mut facts = read.raw_recording.facts;
    if asked.time.is_some() {
        facts.started = read.windows.time.start;
    }
    let host = facts.host.clone();
    Ok(InputSamples {
        told,
        content: Content::Recording(Box::new(facts), merged),
        source: source(asked.root_per, name, Some(host))?,
    })
}

fn read_foreign(asked: &AskedOfForeign<'_>, path: &Path, file: File<'_>) -> Result<InputSamples> {
    let name = input::name(path);
    let has_hosts = file.kind.has_times;
    may_have_time(asked.options.time, path, file.kind)?;
    let foreign = foreign::read(&name, file, &asked.options)?;
    piece(asked, name, has_hosts, foreign)
}

/// Refuses a part of the time of an input that does not say when its samples were taken.
fn may_have_time(time: Option<Time<'_>>, path: &Path, kind: &Kind) -> Result<()> {
    ensure!(
        time.is_none() || kind.has_times,
        "cannot read {}: it is {}, and only raw recordings and Parquet have windows; leave the times out",
        input::name(path),
        kind.name
    );
    Ok(())
}

/// The piece of an input of that name, whose samples have the names of hosts or have not.
fn piece(
    asked: &AskedOfForeign<'_>,
    name: String,
    has_hosts: bool,
    foreign: Foreign,
) -> Result<InputSamples> {
    let Foreign {
        mut profile,
        summary,
        about,
    } = foreign;
    profile.line_frames = asked.lines;
    Ok(InputSamples {
        told: Told {
            title: summary.title.clone(),
            event: profile.origin.event.as_deref().map(str::to_owned),
            summary,
            about,
            ..Told::default()
        },
        content: Content::Profile(profile),
        source: match asked.root_per {
            // Its samples have theirs.
            Some(RootPer::Host) if has_hosts => None,
            root_per => source(root_per, name, None)?,
        },
    })
}

/// The name of an input where inputs are told apart.
fn source(root_per: Option<RootPer>, name: String, host: Option<String>) -> Result<Option<String>> {
    match (root_per, host) {
        (None | Some(RootPer::Part(_)), _) => Ok(None),
        (Some(RootPer::File), _) => Ok(Some(name)),
        (Some(RootPer::Host), Some(host)) => Ok(Some(host)),
        (Some(RootPer::Host), None) => bail!(
            "cannot read {name}: it does not name its host, as raw recordings do; use --root-per file"
        ),
    }
}

impl Told {
    fn of_recording(read: &raw_recording::Read) -> Self {
        let recording = &read.raw_recording;
        let shown = RenderedShare::of(&recording.normalized);
        let missing = read_summary::missing(read, &shown);
        let missing = missing.map_or_else(String::new, |Finding { label, text }| {
            let title = visible(&recording.facts.title);
            format!("flame-bpf: {title}: {label}: {text}\n")
        });
        Self {
            title: read_summary::title(read),
            summary: read_summary::summary(read, &shown),
            about: read_summary::about(read, &shown),
            missing,
            event: Some(recording.facts.event.clone()),
        }
    }
}

impl Content {
    fn unit(&self) -> &Unit {
        match self {
            Self::Recording(facts, _) => &facts.unit,
            Self::Profile(profile) => &profile.unit,
        }
    }

    /// The samples with names, and what there is to remark on these.
    pub(super) fn named(
        self,
        source: Option<&str>,
        symbolizer: &Symbolizer<'_>,
    ) -> (Profile, Vec<Finding>) {
        let (mut profile, findings) = match self {
            Self::Profile(profile) => (profile, Vec::new()),
            Self::Recording(facts, merged) => {
                let (normalized, objects) = merged.into_parts();
                let (profile, on_names) =
                    symbolizer.stored(normalized, &objects, facts.unit.clone());
                let origin = Origin {
                    started: Some(facts.started),
                    period_ns: facts.period_ns,
                    activity: facts.activity,
                    event: Some(facts.event.into()),
                    machine: Some(Arc::new(Machine {
                        host: facts.host,
                        kernel: facts.kernel,
                        kernel_build_id: facts.kernel_build_id,
                    })),
                };
                (viewed(profile, origin, facts.off_cpu), on_names)
            }
        };
        if let Some(source) = source {
            profile.set_source(source);
        }
        (profile, findings)
    }
}
