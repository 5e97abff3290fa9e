//! How a service stands, for whoever asks: Prometheus, a health check, systemd.
//!
//! In: what each window brought, and the counts of all queues. Out: `GET /metrics` and `GET /healthz`, one request at a time, and
//! notices to systemd. Never: takes anything but these two requests.

use super::Sender;
use super::queue::{Counts as Sent, Queue, Sum};
use crate::store::Counts;
use crate::usage;
use anyhow::{Context as _, Result};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sd_notify::NotifyState;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most bytes of a request.
const REQUEST_BYTES: usize = 8 << 10;

/// A service counts as healthy for so many windows behind the last.
const HEALTHY_WINDOWS: u32 = 3;

/// Firings of a window: recorded, filtered, lost, by event.
#[derive(Clone, Debug, Default)]
pub struct Standing(BTreeMap<String, [u64; 3]>);

impl Standing {
    /// Adds those of an event.
    pub fn add(&mut self, event: String, firings: [u64; 3]) {
        let sums = self.0.entry(event).or_default();
        for (sum, more) in sums.iter_mut().zip(firings) {
            *sum = sum.saturating_add(more);
        }
    }
}

/// Sums of all windows.
pub struct Board {
    destinations: Vec<(&'static str, String, Arc<Queue>)>,
    store: Option<Arc<Counts>>,
    interval: Duration,
    sums: Mutex<Sums>,
}

struct Sums {
    firings: Standing,
    /// Contexts of processes that were not read so far, by the reason.
    unread_contexts: Vec<(&'static str, usize)>,
    windows: u64,
    last: Instant,
}

impl Board {
    /// One without windows. `store`: the counts of what is kept here, if anything is.
    pub fn new(senders: &[Sender], store: Option<Arc<Counts>>, interval: Duration) -> Self {
        let of = |sender: &Sender| {
            let queue = Arc::clone(&sender.queue);
            (sender.protocol.name(), sender.url.clone(), queue)
        };
        Self {
            destinations: senders.iter().map(of).collect(),
            store,
            interval,
            sums: Mutex::new(Sums {
                firings: Standing::default(),
                unread_contexts: Vec::new(),
                windows: 0,
                last: Instant::now(),
            }),
        }
    }

    /// Counts a window. `unread_contexts`: of how many processes contexts were not read until then, by the reason.
    pub fn window(&self, standing: Standing, unread_contexts: Vec<(&'static str, usize)>) {
        let mut sums = self.sums.lock().unwrap_or_else(|sums| sums.into_inner());
        sums.unread_contexts = unread_contexts;
        for (event, firings) in standing.0 {
            sums.firings.add(event, firings);
        }
        sums.windows += 1;
        sums.last = Instant::now();
        notify(NotifyState::Watchdog);
    }

    /// Tells systemd, if that started us, that sampling has begun. Where it would not wait for windows as long as these are, it is told
    /// to.
    pub fn notify_ready(&self) {
        let patience = self.interval.saturating_mul(HEALTHY_WINDOWS);
        if sd_notify::watchdog_enabled().is_some_and(|usual| usual < patience) {
            let micros = u32::try_from(patience.as_micros()).unwrap_or(u32::MAX);
            notify(NotifyState::WatchdogUsec(micros));
        }
        notify(NotifyState::Ready);
    }

    /// Tells systemd that the end has begun.
    pub fn notify_stopping(&self) {
        notify(NotifyState::Stopping);
    }

    /// Answers requests at an address from now on.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn serve(board: &Arc<Self>, address: SocketAddr) -> Result<()> {
        let cannot = || format!("cannot listen on {address}");
        let listener = TcpListener::bind(address).with_context(cannot)?;
        let board = Arc::clone(board);
        let answer = move || {
            for stream in listener.incoming().flatten() {
                // The client has gone.
                let _gone = board.answer(stream);
            }
        };
        let thread = Builder::new().name("flame-bpf-listen".to_owned());
        thread.spawn(answer).with_context(cannot)?;
        Ok(())
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (status, kind, body) = match request(&mut stream)?.as_deref() {
            Some("/metrics") => {
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                ("200 OK", kind, self.metrics())
            }
            Some("/healthz") => {
                let (status, body) = self.health();
                (status, "text/plain", body)
            }
            _ => {
                let body = "here are GET /metrics and GET /healthz\n".to_owned();
                ("404 Not Found", "text/plain", body)
            }
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    fn health(&self) -> (&'static str, String) {
        let sums = self.sums.lock().unwrap_or_else(|sums| sums.into_inner());
        let age = sums.last.elapsed();
        match age <= HEALTHY_WINDOWS * self.interval {
            true => ("200 OK", "ok\n".to_owned()),
            false => {
                let body = format!("no window has ended for {} s\n", age.as_secs());
                ("503 Service Unavailable", body)
            }
        }
    }

    /// All counts, in the text format of OpenMetrics.
    fn metrics(&self) -> String {
        let mut all = Registry::default();
        own_usage(&mut all);
        let registry = all.sub_registry_with_prefix("flame_bpf");
        let mut counter = |name: &'static str, help: &'static str, values: Vec<(Labels, u64)>| {
            let metrics = values
                .into_iter()
                .map(|(labels, value)| (labels, ConstCounter::new(value)));
            let collector = Counted(name, help, metrics.collect());
            registry.register_collector(Box::new(collector));
        };
        let unread = Family::<Labels, Gauge>::default();
        {
            let sums = self.sums.lock().unwrap_or_else(|sums| sums.into_inner());
            for &(reason, count) in &sums.unread_contexts {
                let labels = vec![("reason", reason.to_owned())];
                let gauge = i64::try_from(count).unwrap_or(i64::MAX);
                unread.get_or_create(&labels).set(gauge);
            }
            let firings = sums.firings.0.iter().flat_map(|(event, firings)| {
                let outcomes = ["recorded", "filtered", "lost"].into_iter().zip(firings);
                outcomes.map(move |(outcome, &count)| {
                    let labels = vec![("event", event.clone()), ("outcome", outcome.to_owned())];
                    (labels, count)
                })
            });
            counter(
                "firings",
                "Firings of the probe, by what became of them",
                firings.collect(),
            );
            counter(
                "windows",
                "Windows that have ended",
                vec![(Vec::new(), sums.windows)],
            );
        }
        let (mut windows, mut samples, mut failures, mut rejected) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let waiting = Family::<Labels, Gauge>::default();
        for (protocol, url, queue) in &self.destinations {
            let own = || vec![("protocol", (*protocol).to_owned()), ("url", url.clone())];
            let counts = queue.counts();
            for (outcome, sum) in by_outcome(&counts) {
                let labels = || [own(), vec![("outcome", outcome.to_owned())]].concat();
                windows.push((labels(), sum.windows));
                samples.push((labels(), sum.samples));
            }
            failures.push((own(), counts.failures));
            rejected.push((own(), counts.rejected_profiles));
            let gauge = i64::try_from(counts.waiting.windows).unwrap_or(i64::MAX);
            waiting.get_or_create(&own()).set(gauge);
        }
        counter(
            "sent_windows",
            "Windows of events for a server, by what became of them",
            windows,
        );
        counter("sent_samples", "Samples in these windows", samples);
        counter(
            "send_failures",
            "Requests that failed and were tried again",
            failures,
        );
        counter(
            "rejected_profiles",
            "Profiles that a server did not want",
            rejected,
        );
        if let Some(store) = &self.store {
            let of = |(outcome, count): (&str, &AtomicU64)| {
                (vec![("outcome", outcome.to_owned())], count.load(Relaxed))
            };
            let tables = [
                ("written", &store.written),
                ("failed", &store.failed),
                ("expired", &store.expired),
            ];
            counter(
                "store_tables",
                "Tables of hours, by what became of them; failed ones are tried again",
                tables.map(of).to_vec(),
            );
            let bytes = Gauge::<i64>::default();
            bytes.set(i64::try_from(store.bytes.load(Relaxed)).unwrap_or(i64::MAX));
            registry.register("store_bytes", "Bytes in the store", bytes);
        }
        registry.register("waiting_windows", "Windows that wait for a server", waiting);
        registry.register(
            "unread_contexts",
            "Processes whose context (OTEL_CTX) was not read so far, by the reason",
            unread,
        );
        let mut text = String::new();
        encode(&mut text, &all).expect("a string grows as needed");
        text
    }
}

/// Usage of this process, by the names that processes give it to Prometheus.
fn own_usage(registry: &mut Registry) {
    let seconds = ConstCounter::new(usage::cpu_time().as_secs_f64());
    registry.register(
        "process_cpu_seconds",
        "CPU time of flame-bpf, in user and kernel mode",
        seconds,
    );
    let bytes = Gauge::<i64>::default();
    bytes.set(i64::try_from(usage::resident_bytes()).unwrap_or(i64::MAX));
    registry.register(
        "process_resident_memory_bytes",
        "Memory of flame-bpf, without BPF maps",
        bytes,
    );
}

fn by_outcome(counts: &Sent) -> [(&'static str, Sum); 3] {
    [
        ("taken", counts.taken),
        ("refused", counts.refused),
        ("dropped", counts.dropped),
    ]
}

/// One counter with its values.
#[derive(Debug)]
struct Counted(&'static str, &'static str, Vec<(Labels, ConstCounter<u64>)>);

/// Labels of a metric: names and values.
type Labels = Vec<(&'static str, String)>;

impl prometheus_client::collector::Collector for Counted {
    fn encode(
        &self,
        mut encoder: prometheus_client::encoding::DescriptorEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        use prometheus_client::encoding::EncodeMetric as _;
        use prometheus_client::metrics::MetricType;
        let Self(name, help, values) = self;
        let mut metrics = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            value.encode(metrics.encode_family(labels)?)?;
        }
        Ok(())
    }
}

/// The path of a GET request; none of any other.
fn request(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut block = [0; 1024];
    while bytes.len() < REQUEST_BYTES && Instant::now() < deadline {
        let read = stream.read(&mut block)?;
        bytes.extend_from_slice(&block[..read]);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.filter(|_| request.method == Some("GET"));
                return Ok(path.map(str::to_owned));
            }
            Ok(httparse::Status::Partial) if read > 0 => {}
            _ => break,
        }
    }
    Ok(None)
}

/// Tells systemd, if that started us.
fn notify(state: NotifyState<'_>) {
    // There is nobody else to tell.
    let _nobody = sd_notify::notify(&[state]);
}
