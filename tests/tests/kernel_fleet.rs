//! A thousand hosts and one collector, by hand: windows that were recorded here are sent as if each host had recorded its own.
//!
//!     cargo test --release -p flame-bpf-tests --test kernel_fleet -- --ignored --nocapture
//!
//! Out: nothing is lost and nothing is there twice by its ID, though answers are lost and the collector is stopped; and figures.

use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::thread::sleep;
use std::time::{Duration, Instant};

use flame_bpf::output::request::Protocol;
use flame_bpf::send::{Body, Destination, Limits, Sender, Tls, compressed};
use flame_bpf_tests::{
    Collector, Exchange, Invocation, Passing, ProfileServer, Proxy, cpu_ns, kernel_test, require,
    stacks, wait_until,
};
use rustix::process::Signal;
use tempfile::tempdir;

const HOSTS: usize = 1000;

/// Windows of each host, one a minute: two CPUs have the hosts' work to do, too.
const WINDOWS: usize = 2;

/// A window that was recorded.
struct Recorded {
    body: Vec<u8>,
    /// The places of its profiles' IDs.
    ids: Vec<Range<usize>>,
    samples: u64,
}

impl Recorded {
    fn new(body: Vec<u8>) -> Self {
        let profiles = stacks::profiles_of_otlp(&body);
        Self {
            samples: profiles
                .iter()
                .flat_map(|(_, stacks)| stacks.values())
                .sum(),
            ids: profiles.iter().map(|(id, _)| place(&body, id)).collect(),
            body,
        }
    }

    /// The same as another host sends it at another time.
    fn of(&self, host: usize, window: usize) -> Body {
        let mut bytes = self.body.clone();
        let number = (host * WINDOWS + window + 1) as u64;
        for place in &self.ids {
            let id = bytes[place.clone()].iter_mut();
            id.zip(number.to_le_bytes())
                .for_each(|(byte, other)| *byte ^= other);
        }
        Body {
            bytes: compressed(Protocol::Otlp, bytes),
            samples: self.samples,
        }
    }
}

fn place(body: &[u8], id: &[u8]) -> Range<usize> {
    let begin = body.windows(id.len()).position(|part| part == id);
    let begin = begin.expect("it is there");
    begin..begin + id.len()
}

/// Windows of ten seconds of this machine, and what flame-bpf says they cost.
fn recorded() -> (Vec<Recorded>, String) {
    let server = ProfileServer::start(&[]);
    let mut running = Invocation::new("service -v -a")
        .flag("--otlp", server.url())
        .start();
    running.wait_until_attached();
    wait_until(|| server.requests() > 3);
    running.signal(Signal::TERM);
    let run = running.finish().expect_no_panic().expect_code(0);
    let cost = run.stderr.lines().find(|line| line.contains("cost:"));
    // The first and the last are shorter.
    let bodies = server.bodies().into_iter().skip(1).take(3);
    (
        bodies.map(Recorded::new).collect(),
        cost.unwrap_or_default().to_owned(),
    )
}

/// Peak of a process's memory, as the kernel says it.
fn peak(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.unwrap_or_default().trim().to_owned()
}

#[kernel_test]
#[ignore = "takes some minutes: a thousand senders"]
fn a_thousand_hosts_lose_nothing_though_answers_are_lost_and_the_collector_stops() {
    let (windows, cost) = recorded();
    let bodies: Vec<Vec<Body>> = (0..WINDOWS)
        .map(|window| {
            let of = &windows[window % windows.len()];
            (0..HOSTS).map(|host| of.of(host, window)).collect()
        })
        .collect();
    let bytes: u64 = bodies
        .iter()
        .flatten()
        .map(|body| body.bytes.len() as u64)
        .sum();
    let samples: u64 = bodies.iter().flatten().map(|body| body.samples).sum();
    let backend = ProfileServer::start(&[]);
    let (url, folder) = (
        backend.url(),
        tempdir().expect("a temporary folder can be made"),
    );
    let mut collector = require!(Collector::start(Passing::Stored(&url), folder.path()));
    let proxy = Proxy::start(collector.address(), Some(25));
    let destination = Destination {
        protocol: Protocol::Otlp,
        url: proxy.url() + Protocol::Otlp.path(),
        headers: Vec::new(),
        every: Duration::ZERO,
    };
    let limits = Limits {
        folder: None,
        bytes: u64::MAX,
    };
    let senders: Vec<Sender> = (0..HOSTS)
        .map(|_| Sender::start(&destination, &limits, &Tls::default(), |_| {}))
        .collect::<Result<_, _>>()
        .expect("they can be started");
    let (begun, mut cpu, mut peaks) = (Instant::now(), 0, Vec::new());
    let mut ends = |collector: &Collector| {
        let pid = collector.pid().expect("it runs");
        cpu += cpu_ns(pid);
        peaks.push(peak(pid));
    };
    let own = std::process::id();
    let own_before = cpu_ns(own);
    for (window, bodies) in bodies.into_iter().enumerate() {
        for (host, (sender, body)) in senders.iter().zip(bodies).enumerate() {
            // Hosts begin at other times, as recorders do that are not told to.
            let due = begun + Duration::from_millis(((window * HOSTS + host) * 60) as u64);
            sleep(due.saturating_duration_since(Instant::now()));
            sender.put(body);
            match (window, host) {
                (0, 800) => {
                    ends(&collector);
                    collector.end();
                }
                (1, 0) => collector.begin(),
                _ => {}
            }
        }
    }
    let waiting = || {
        senders
            .iter()
            .map(|sender| sender.counts().waiting.windows)
            .sum::<u64>()
    };
    while waiting() > 0 && begun.elapsed() < Duration::from_secs(600) {
        sleep(Duration::from_millis(100));
    }
    let taken = begun.elapsed();
    ends(&collector);
    senders.iter().for_each(Sender::close);
    let counts: Vec<_> = senders.into_iter().map(Sender::end).collect();
    let exchanges = proxy.exchanges();
    let sent = Exchange::taken(&exchanges);
    wait_until(|| backend.requests() >= exchanges.iter().filter(|of| of.is_taken).count());
    let arrived = backend.sums();
    assert_eq!(sent.values().sum::<u64>(), samples);
    assert_eq!(arrived, sent);
    assert!(counts.iter().all(|of| of.put == of.taken));
    let lost = exchanges.iter().filter(|of| of.is_lost).count();
    let failed: u64 = counts.iter().map(|of| of.failures).sum();
    let all = (HOSTS * WINDOWS) as f64;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{HOSTS} hosts, {all} windows in {:.0} s, {:.1} KB each; {} requests, {failed} failed, {lost} answers lost\n\
         collector: {:.1} ms of CPU a window, peaks {peaks:?}\n\
         senders, proxy and server: {:.1} s of CPU; a host's recorder: {cost}",
        taken.as_secs_f64(),
        bytes as f64 / all / 1000.0,
        exchanges.len(),
        cpu as f64 / all / 1e6,
        (cpu_ns(own) - own_before) as f64 / 1e9,
    )
    .expect("stdout is there");
}
