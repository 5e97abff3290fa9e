//! The store of a recording without end: tables of hours.
//!
//! In: windows. Out: a raw recording for each event and hour, which grows; when the hour is over, a thread of its own makes a table of
//! them. What cannot be written is said and counted, and stops nothing.

mod rendering;

use super::say;
use crate::clock::Hour;
use crate::output::sink::{Growing, Sink};
use crate::pipeline::facts;
use crate::pipeline::normalize::EventProfile;
use crate::pipeline::timeline;
use crate::pipeline::window::WindowProfile;
use crate::plan::Plan;
use crate::raw_recording::Writer;
use crate::store::{Counts, HostFolder};
use crate::symbolize::NameCache;
use anyhow::{Context as _, Result};
use rendering::{Job, Renderer};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

/// The store of a service.
pub(super) struct StoreSink {
    host: String,
    folder: HostFolder,
    /// When this recorder began, which tells its recordings from those of others.
    began: SystemTime,
    /// The hour that is under way; none before the first window.
    hour: Option<Hour>,
    /// A recording of it for each event; none before its first window.
    files: Vec<Option<(Growing, Writer)>>,
    busy_ns: u64,
    is_failing: bool,
    counts: Arc<Counts>,
    renderer: Renderer,
}

impl StoreSink {
    /// Opens the store of a plan, if it has one, and has tables made of what an earlier recorder left. Returns its counts as well.
    pub(super) fn start(plan: &Arc<Plan>, host: &str) -> Result<Option<(Self, Arc<Counts>)>> {
        let service = plan.service.as_ref();
        let Some((store, limits)) = service.and_then(|service| service.store.as_ref()) else {
            return Ok(None);
        };
        let cannot = || format!("cannot keep tables in {}", store.display());
        let folder = HostFolder::make(store, host).with_context(cannot)?;
        let left = folder.recordings().with_context(cannot)?;
        let counts = Arc::new(Counts::default());
        let now = SystemTime::now();
        let renderer = Renderer::start(plan, &folder, limits, &counts)?;
        let mut hours: Vec<Hour> = left.into_iter().map(|(hour, _)| hour).collect();
        hours.dedup();
        // The rest, of the hour that is not over, becomes part of its table.
        for hour in hours.into_iter().filter(|hour| *hour < Hour::of(now)) {
            renderer.submit(Job::Over(hour));
        }
        let stored = Self {
            host: host.to_owned(),
            folder,
            began: now,
            hour: None,
            files: plan.events.iter().map(|_| None).collect(),
            busy_ns: timeline::busy_ns(),
            is_failing: false,
            counts: Arc::clone(&counts),
            renderer,
        };
        Ok(Some((stored, counts)))
    }

    /// Takes a window, before its events have names.
    pub(super) fn window(&mut self, window: &WindowProfile<'_>, names: &NameCache) {
        let busy_ns = timeline::busy_ns();
        let busy = busy_ns.saturating_sub(std::mem::replace(&mut self.busy_ns, busy_ns));
        // Windows begin a little before or after the hour does.
        let length = (window.events.iter())
            .map(|event| event.normalized.window.end)
            .max();
        let middle = SystemTime::now() - length.unwrap_or_default() / 2;
        let hour = Hour::of(middle);
        if self.hour.is_some_and(|known| known != hour) {
            self.close(Job::Over);
        }
        self.hour = Some(hour);
        for profile in &window.events {
            let kept = self.keep(profile, window, names, (hour, busy));
            if let Err(error) = kept {
                self.counts.failed.fetch_add(1, Relaxed);
                self.files[profile.number] = None;
                if !std::mem::replace(&mut self.is_failing, true) {
                    say(&format!(
                        "a window is not in the store: {error:#}; more of them are only counted"
                    ));
                }
            } else if profile.number == 0 {
                self.is_failing = false;
            }
        }
    }

    fn keep(
        &mut self,
        profile: &EventProfile<'_>,
        window: &WindowProfile<'_>,
        names: &NameCache,
        (hour, busy_ns): (Hour, u64),
    ) -> Result<()> {
        let (plan, event) = (window.plan, profile.event);
        let totals = timeline::totals(profile.normalized.window, profile.counted(), busy_ns);
        let stored = window.stored(&profile.normalized, names);
        let told = (&*self.host, &*event.name());
        let recording = facts::raw_recording(plan, event, told, stored, String::new());
        let file = &mut self.files[profile.number];
        if let Some((file, writer)) = file {
            return Ok(file.add(|out| writer.window(&recording, &totals, out))?);
        }
        // After a failure, a recording of the same hour is there already.
        let began = match file_is_new(&self.folder, hour, self.began, profile.number) {
            true => self.began,
            false => SystemTime::now(),
        };
        let path = self.folder.recording(hour, began, profile.number);
        fs::create_dir_all(self.folder.day(hour))?;
        *file = Some(Sink::prepare(&path)?.grow(|out| {
            let mut writer = Writer::begin(&recording.facts, out)?;
            writer.window(&recording, &totals, out)?;
            Ok(writer)
        })?);
        Ok(())
    }

    /// Closes the recordings of the hour, and has a table made of them.
    fn close(&mut self, job: fn(Hour) -> Job) {
        for (mut file, writer) in self.files.iter_mut().filter_map(Option::take) {
            // Without its end a recording is whole, too.
            let _it_is_whole = file.add(|out| writer.end(String::new(), out));
        }
        if let Some(hour) = self.hour.take() {
            self.renderer.submit(job(hour));
        }
    }

    /// Has a table made of the hour that is under way, unless recording goes on at once, and waits for it for some seconds.
    pub(super) fn end(mut self, goes_on: bool) {
        match goes_on {
            true => self.hour = None,
            false => self.close(Job::UnderWay),
        }
        self.renderer.end();
    }
}

fn file_is_new(folder: &HostFolder, hour: Hour, began: SystemTime, event: usize) -> bool {
    !folder.recording(hour, began, event).exists()
}
