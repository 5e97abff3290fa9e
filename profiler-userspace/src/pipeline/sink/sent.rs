//! Sink of a recording without end: each window is sent as it ends.
//!
//! In: windows. Out: a body for each protocol, event and window, in the queues of the servers; how it stands, for whoever asks; and at the
//! end a summary. Never waits for a server.

use super::say;
use super::stored::StoreSink;
use crate::output::request::{Protocol, Sender as Who};
use crate::pipeline::facts;
use crate::pipeline::normalize::EventProfile;
use crate::pipeline::recording_info::{RecordingInfo, Stop};
use crate::pipeline::select::select;
use crate::pipeline::view::viewed;
use crate::pipeline::window::{Ended, Report, WindowProfile, WindowSink};
use crate::plan::{Plan, Service};
use crate::process::{Unread, UnreadContexts};
use crate::profile::Profile;
use crate::report::findings::{self, Finding};
use crate::report::names;
use crate::send::{self, Board, Body, Counts, Sender, Standing, compressed};
use crate::symbolize::NameCache;
use crate::text::number::{counted, grouped};
use anyhow::{Context as _, Result, bail, ensure};
use foldhash::fast::FixedState;
use profiler_common::abi::{Class, Counters};
use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Windows that are sent.
pub(crate) struct Sent {
    interval: Duration,
    /// How long the window is that is under way.
    length: Duration,
    who: Who,
    senders: Vec<Sender>,
    names: NameCache,
    /// Contexts that were not read when that was last said.
    unread: UnreadContexts,
    board: Arc<Board>,
    /// None where nothing is stored.
    store: Option<StoreSink>,
}

impl Sent {
    /// Starts what is needed to send the windows of a plan.
    ///
    /// # Errors
    /// When a folder, a certificate or an address to listen on cannot be used.
    pub(crate) fn start(
        plan: &Arc<Plan>,
        service: &Service,
        recording_info: &RecordingInfo,
    ) -> Result<Self> {
        let senders = service
            .destinations
            .iter()
            .map(|destination| Sender::start(destination, &service.limits, &service.tls, say));
        let senders = senders.collect::<Result<Vec<_>>>()?;
        let (store, counts) = StoreSink::start(plan, &recording_info.host)?.unzip();
        let board = Arc::new(Board::new(&senders, counts, service.interval));
        if let Some(address) = service.listen {
            Board::serve(&board, address)?;
        }
        board.notify_ready();
        let who = Who {
            host: recording_info.host.clone(),
            service: service.name.clone(),
            names: service.labels.clone(),
            recorder: recorder(&recording_info.host),
            firings: [0; 3],
        };
        Ok(Self {
            length: until_next(service.interval, SystemTime::now()),
            interval: service.interval,
            who,
            senders,
            names: NameCache::default(),
            unread: UnreadContexts::default(),
            board,
            store,
        })
    }

    fn send(&mut self, window: &mut WindowProfile<'_>) -> Result<()> {
        self.names.begin_window();
        let unread = window.processes.unread_contexts();
        if unread.has_another_reason_than(&self.unread)
            && let Some(finding) = names::on_contexts(&unread)
        {
            say(&format!("{}; more of them are only counted", finding.text));
            self.unread = unread;
        }
        let unread = Unread::ALL.map(|reason| (reason.name(), unread.get(reason)));
        window
            .events
            .iter_mut()
            .for_each(EventProfile::count_drained);
        if let Some(store) = &mut self.store {
            store.window(window, &self.names);
        }
        let mut standing = Standing::default();
        for profile in std::mem::take(&mut window.events) {
            let number = profile.number as u64;
            let (event, [recorded, filtered, lost]) =
                (profile.event.name(), firings(profile.counted()));
            if self.senders.is_empty() {
                standing.add(event, [recorded, filtered, lost]);
                continue;
            }
            let (named, left_out) = self.named(profile, window)?;
            let who = Who {
                recorder: FixedState::with_seed(number).hash_one(self.who.recorder),
                firings: [recorded.saturating_sub(left_out), filtered + left_out, lost],
                ..self.who.clone()
            };
            standing.add(event, who.firings);
            if !named.samples().is_empty() {
                self.put(&named, &who)?;
            }
        }
        self.board.window(standing, unread.to_vec());
        Ok(())
    }

    /// The profile of an event in a window, as it is sent; and how many firings are not in it, because they were not selected.
    fn named(
        &self,
        mut profile: EventProfile<'_>,
        window: &WindowProfile<'_>,
    ) -> Result<(Profile, u64)> {
        let (plan, event) = (window.plan, profile.event);
        let normalized = std::mem::take(&mut profile.normalized);
        let origin = facts::origin(event, &self.who.host, normalized.window.end);
        let named = window.named(event, normalized, &self.names);
        let off_cpu = event.probe.off_cpu_view(plan.capture.kernel_stacks);
        let viewed = viewed(named, origin, off_cpu);
        let all = viewed.total_count();
        let (mut shown, _) = select(viewed, &plan.selection)?;
        let left_out = all.saturating_sub(shown.total_count());
        shown.label_frames = plan.capture.label_frames;
        shown.change_labels(|labels| labels.without_ids(plan.capture.per_thread));
        Ok((shown, left_out))
    }

    fn put(&self, profile: &Profile, who: &Who) -> Result<()> {
        let mut bodies: BTreeMap<Protocol, Vec<u8>> = BTreeMap::new();
        for sender in &self.senders {
            let protocol = sender.protocol();
            let bytes = match bodies.get(&protocol) {
                Some(bytes) => bytes.clone(),
                None => {
                    let bytes = compressed(protocol, protocol.body(profile, who)?);
                    bodies.insert(protocol, bytes.clone());
                    bytes
                }
            };
            sender.put(Body {
                bytes,
                samples: profile.total_count(),
            });
        }
        Ok(())
    }
}

/// Whether a service could begin: its certificates and secrets can be read, its folders take files or can be made, and the
/// address to listen on is this machine's.
///
/// # Errors
/// When that is not so.
pub(crate) fn check(service: &Service) -> Result<()> {
    send::check(&service.destinations, &service.tls)?;
    let store = service.store.as_ref().map(|(folder, _)| folder);
    for folder in service.limits.folder.iter().chain(store) {
        let there = folder.ancestors().find(|path| path.exists());
        let there = there.unwrap_or(folder);
        let cannot = || format!("cannot keep windows in {}", folder.display());
        ensure!(
            there.is_dir(),
            "{}: {} is no folder",
            cannot(),
            there.display()
        );
        tempfile::tempfile_in(there)
            .with_context(|| format!("{}: {} takes no file", cannot(), there.display()))?;
    }
    match service
        .listen
        .map(|address| (address, TcpListener::bind(address)))
    {
        // One in use is perhaps used by ourselves, who give it up.
        Some((address, Err(error))) if error.kind() != ErrorKind::AddrInUse => {
            bail!("cannot listen on {address}: {error}")
        }
        _ => Ok(()),
    }
}

impl WindowSink for Sent {
    fn length(&self) -> Option<Duration> {
        Some(self.length)
    }

    fn window(&mut self, window: &mut WindowProfile<'_>) -> Result<()> {
        self.send(window)?;
        self.length = until_next(self.interval, SystemTime::now());
        Ok(())
    }

    fn names(&self) -> Option<&NameCache> {
        Some(&self.names)
    }

    fn end(mut self: Box<Self>, mut ended: Ended<'_>) -> Result<Report> {
        self.board.notify_stopping();
        self.send(&mut ended.last)?;
        let mut report = Report {
            wrote: true,
            ..Report::default()
        };
        let mut sent = Vec::new();
        // All at once: what one of them waits for does not delay the others.
        self.senders.iter().for_each(Sender::close);
        if let Some(store) = self.store {
            store.end(ended.recording_info.stop == Stop::Reload);
        }
        for sender in self.senders {
            let to = sender.url().to_owned();
            sent.push(Finding::new("sent", told(&sender.end(), &to)));
        }
        for mut all in ended.events() {
            all.extent = format!("in {}", counted(ended.last.number, "window"));
            all.count_drained();
            ended.summary(&all, &mut report);
        }
        match report.summaries.last_mut() {
            Some(summary) => summary.findings.extend(sent),
            None => report.text.push_str(&findings::shown(&sent)),
        }
        Ok(report)
    }
}

/// Outcomes of all windows for a server, as the end of a line.
fn told(counts: &Counts, url: &str) -> String {
    let Counts {
        put,
        taken,
        refused,
        dropped,
        waiting,
        rejected_profiles,
        failures: _,
    } = counts;
    let mut parts = vec![format!(
        "{} of {} to {url}",
        grouped(taken.windows),
        counted(put.windows, "window")
    )];
    let others = [
        (waiting, "kept for the next run"),
        (refused, "refused"),
        (dropped, "given up"),
    ];
    let others = others.iter().filter(|(sum, _)| sum.windows > 0);
    parts.extend(others.map(|(sum, what)| {
        let windows = grouped(sum.windows);
        format!("{windows} {what} ({})", counted(sum.samples, "sample"))
    }));
    if *rejected_profiles > 0 {
        let profiles = counted(*rejected_profiles, "profile");
        parts.push(format!("{profiles} not wanted by the server"));
    }
    parts.join(", ")
}

/// Recorded, filtered and lost firings.
fn firings(counters: &Counters) -> [u64; 3] {
    [Class::Recorded, Class::Filtered, Class::Lost].map(|class| counters.sum(class))
}

/// How long it is from now to the next multiple of the interval; to the one after it if that is very near.
fn until_next(interval: Duration, now: SystemTime) -> Duration {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let passed = since.as_nanos() % interval.as_nanos().max(1);
    let left = interval.saturating_sub(Duration::from_nanos(u64::try_from(passed).unwrap_or(0)));
    match left < interval / 10 {
        true => left + interval,
        false => left,
    }
}

/// Tells recorders apart: this host since it was started, and when and by which process recording began.
fn recorder(host: &str) -> u64 {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    FixedState::with_seed(0).hash_one((host, boot, now, std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_at_multiples_of_their_length() {
        let interval = Duration::from_secs(10);
        let left = |ms| until_next(interval, UNIX_EPOCH + Duration::from_millis(ms)).as_millis();
        assert_eq!(left(1_700_000_000_000), 10_000);
        assert_eq!(left(1_700_000_000_050), 9_950);
        assert_eq!(left(1_700_000_004_000), 6_000);
        // The clock was put back a little.
        assert_eq!(left(1_700_000_009_990), 10_010);
    }
}
