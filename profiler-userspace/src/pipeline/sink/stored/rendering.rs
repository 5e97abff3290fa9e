//! Tables out of the recordings of an hour, on a thread of its own that gives way to others.
//!
//! In: hours. Out: for each a table that is complete or not there; then the recordings that it was made of go, and what is beyond the
//! limits. A table says of what it was made, so that nothing is in two of them, whenever this process is killed.

use crate::allocator;
use crate::clock::Hour;
use crate::input::made_of;
use crate::output::{EventTable, Style, write_events};
use crate::pipeline::pieces::{self, InputRequest};
use crate::pipeline::select::select;
use crate::pipeline::sink::say;
use crate::pipeline::symbolize::Symbolizer;
use crate::plan::Plan;
use crate::profile::{MAX_WINDOWS, Profile};
use crate::raw_recording;
use crate::store::{Counts, HostFolder, Limits, UNFINISHED, name};
use anyhow::{Context as _, Result};
use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// So long the end waits for a table.
const PATIENCE: Duration = Duration::from_secs(10);

/// The nice value of the thread. At 19 a busy machine would have no hour's table before the next.
const NICE: i32 = 10;

/// How long the windows of tables are: rows of shorter ones would be many more, and say little more.
const RESOLUTION: Duration = Duration::from_secs(60);

/// Something to do.
pub(super) enum Job {
    /// To make the table of an hour that is over.
    Over(Hour),
    /// To make the table of an hour that is not, whose recordings are still needed.
    UnderWay(Hour),
}

/// The thread that makes tables.
pub(super) struct Renderer {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Renderer {
    pub(super) fn start(
        plan: &Arc<Plan>,
        folder: &HostFolder,
        limits: &Limits,
        counts: &Arc<Counts>,
    ) -> Result<Self> {
        let (jobs, to_do) = mpsc::channel();
        let rendering = Rendering {
            plan: Arc::clone(plan),
            folder: folder.clone(),
            limits: limits.clone(),
            counts: Arc::clone(counts),
        };
        let thread = Builder::new()
            .name("flame-bpf-store".to_owned())
            .spawn(move || rendering.run(&to_do))
            .context("cannot start a thread that makes tables")?;
        Ok(Self { jobs, thread })
    }

    pub(super) fn submit(&self, job: Job) {
        // A thread that died has said why.
        let _it_died = self.jobs.send(job);
    }

    /// Waits until all is done, but not for long: what is left is done by the next run.
    pub(super) fn end(self) {
        drop(self.jobs);
        let until = Instant::now() + PATIENCE;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

struct Rendering {
    plan: Arc<Plan>,
    folder: HostFolder,
    limits: Limits,
    counts: Arc<Counts>,
}

/// Where a table is to be written, and of what.
struct Task {
    table: PathBuf,
    recordings: Vec<PathBuf>,
}

impl Rendering {
    fn run(&self, jobs: &Receiver<Job>) {
        // Without the right to it, the thread is as others are.
        let _as_others = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
        self.expire();
        for job in jobs {
            let (hour, is_over) = match job {
                Job::Over(hour) => (hour, true),
                Job::UnderWay(hour) => (hour, false),
            };
            if let Err(error) = self.hour(hour, is_over) {
                self.counts.failed.fetch_add(1, Relaxed);
                let (date, number) = (hour.date(), hour.number());
                say(&format!(
                    "there is no table of {date} {number}:00 UTC yet: {error:#}; its recordings are kept"
                ));
            }
            self.expire();
            // An hour and its names take many times what the recording beside does.
            allocator::give_back();
        }
    }

    fn expire(&self) {
        match self.folder.expire(&self.limits, SystemTime::now()) {
            Ok((expired, bytes)) => {
                self.counts.expired.fetch_add(expired, Relaxed);
                self.counts.bytes.store(bytes, Relaxed);
            }
            Err(error) => say(&format!("cannot remove old tables: {error}")),
        }
    }

    /// Makes the table of an hour.
    fn hour(&self, hour: Hour, is_over: bool) -> Result<()> {
        let all = self.folder.recordings()?.into_iter();
        let recordings = all.filter(|(of, _)| *of == hour).map(|(_, path)| path);
        let recordings: Vec<PathBuf> = recordings.collect();
        if let Some(task) = self.task(hour, recordings.clone()) {
            self.write(&task)?;
        }
        if is_over {
            recordings
                .iter()
                .filter(|path| path.exists())
                .try_for_each(fs::remove_file)?;
        }
        Ok(())
    }

    /// The rest of the work on an hour's recordings: those in a table that others have gone into are done.
    fn task(&self, hour: Hour, mut recordings: Vec<PathBuf>) -> Option<Task> {
        for number in 1.. {
            if recordings.is_empty() {
                return None;
            }
            let table = self.folder.table(hour, number);
            let Ok(bytes) = fs::read(&table) else {
                return Some(Task { table, recordings });
            };
            let in_it = made_of(bytes.into()).unwrap_or_default();
            let is_in_it = |path: &PathBuf| in_it.contains(&name(path));
            let is_known = !in_it.is_empty()
                && in_it
                    .iter()
                    .all(|of| recordings.iter().any(|path| name(path) == *of));
            if is_known {
                let is_done = recordings.iter().all(is_in_it);
                return (!is_done).then_some(Task { table, recordings });
            }
            recordings.retain(|path| !is_in_it(path));
        }
        None
    }

    fn write(&self, task: &Task) -> Result<()> {
        let symbolizer = Symbolizer::new(&self.plan.naming, &self.plan.servers, true);
        let mut events: Vec<(Profile, Style)> = Vec::new();
        let mut made_of = Vec::new();
        for path in &task.recordings {
            match self.read(path, &symbolizer, &mut events) {
                Ok(()) => made_of.push(name(path)),
                Err(error) => set_aside(path, &error)?,
            }
        }
        if events.is_empty() {
            return Ok(());
        }
        let tables: Vec<_> = events
            .iter()
            .map(|(profile, style)| EventTable { profile, style })
            .collect();
        let day = task.table.parent().context("it has a folder")?;
        let file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(day)?;
        let mut out = BufWriter::new(file.as_file());
        let service = self.plan.service.as_ref();
        let service = service.and_then(|service| service.name.as_deref());
        write_events(&tables, service, &made_of, &mut out)?;
        out.flush()?;
        drop(out);
        file.as_file()
            .set_permissions(Permissions::from_mode(0o644))?;
        file.as_file().sync_all()?;
        file.persist(&task.table)?;
        File::open(day)?.sync_all()?;
        self.counts.written.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Adds what a recording holds.
    fn read(
        &self,
        path: &PathBuf,
        symbolizer: &Symbolizer<'_>,
        events: &mut Vec<(Profile, Style)>,
    ) -> Result<()> {
        let plan = &self.plan;
        let asked = InputRequest {
            files: std::slice::from_ref(path),
            windows: MAX_WINDOWS,
            lines: plan.naming.lines,
            quiet: true,
            ..InputRequest::default()
        };
        pieces::each(asked, &mut |_, piece| {
            let (profile, _) = piece.content.named(None, symbolizer);
            let none = || {
                let mut none = profile.clone();
                none.clear();
                none
            };
            // Firings that are not selected are counted, also where that is all of them.
            let mut shown = match plan.selection.is_all() {
                true => profile,
                false => {
                    select(profile.clone(), &plan.selection).map_or_else(|_| none(), |of| of.0)
                }
            };
            shown.change_labels(|labels| labels.without_ids(plan.capture.per_thread));
            shown.widen_windows(RESOLUTION);
            let style = Style {
                title: piece.told.title,
                notes: piece.told.summary.lines(),
                ..Style::default()
            };
            events.push((shown, style));
            Ok(())
        })
    }
}

/// Sees to it that a recording that cannot be read is not read again. In one without a whole sample there is nothing to keep.
fn set_aside(path: &Path, error: &anyhow::Error) -> Result<()> {
    match error.downcast_ref::<raw_recording::Error>() {
        Some(raw_recording::Error::Nothing { .. }) => fs::remove_file(path)?,
        _ => {
            say(&format!("{error:#}; it is kept under another name"));
            HostFolder::set_aside(path)?;
        }
    }
    Ok(())
}
