//! A service that a real Prometheus scrapes: it has what the service says of itself.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flame_bpf_tests::{Invocation, ProfileServer, Program, kernel_test, require, tool};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// An address where nobody listens.
fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address")
}

/// The body of the answer to a GET request; none if nobody answers.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

/// A Prometheus that scrapes one address each second.
struct Prometheus {
    address: SocketAddr,
    child: Child,
    folder: TempDir,
}

impl Prometheus {
    fn start(program: &Path, scraped: SocketAddr) -> Self {
        let (address, folder) = (free(), tempdir().expect("a temporary folder can be made"));
        let file = folder.path().join("prometheus.yml");
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
             scrape_configs: [{{job_name: flame-bpf, static_configs: [{{targets: ['{scraped}']}}]}}]\n"
        );
        fs::write(&file, config).expect("it can be written");
        let log = fs::File::create(folder.path().join("log")).expect("it can be made");
        let child = Command::new(program)
            .arg("--config.file")
            .arg(&file)
            .arg("--storage.tsdb.path")
            .arg(folder.path().join("data"))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Self {
            address,
            child: child.expect("it can be started"),
            folder,
        }
    }

    fn ask(&self, path: &str) -> Value {
        let answer = get(self.address, path);
        answer.map_or(Value::Null, |text| {
            serde_json::from_str(&text).unwrap_or(Value::Null)
        })
    }

    /// The sum of a metric over all of its labels; none before it was scraped.
    fn sum(&self, metric: &str) -> Option<u64> {
        let answer = self.ask(&format!("/api/v1/query?query=sum({metric})"));
        let value = answer["data"]["result"][0]["value"][1].as_str()?;
        value.parse().ok()
    }

    fn wait_until(&self, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(60), "{log}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[kernel_test]
fn prometheus_has_what_the_service_counts() {
    let program = require!(tool("prometheus"));
    let server = ProfileServer::start(&[]);
    let workload = Program::c("shares").start(&[]);
    let context = Program::c("context").start(&["shop", "1", "large"]);
    let listen = free();
    let mut running = Invocation::new("service -v -F 199 --window 1s")
        .flag("--otlp", server.url())
        .flag("-p", workload.pid())
        .flag("-p", context.pid())
        .flag("--listen", listen)
        .start();
    running.wait_until_attached();
    let prometheus = Prometheus::start(&program, listen);
    prometheus.wait_until(|| prometheus.sum("flame_bpf_sent_windows_total") >= Some(3));
    let target = &prometheus.ask("/api/v1/targets")["data"]["activeTargets"][0];
    assert_eq!(target["health"], "up", "{target}");
    assert_eq!(target["lastError"], "", "{target}");
    let kinds = &prometheus.ask("/api/v1/metadata")["data"];
    assert_eq!(kinds["flame_bpf_firings"][0]["type"], "counter", "{kinds}");
    assert_eq!(
        kinds["flame_bpf_waiting_windows"][0]["type"], "gauge",
        "{kinds}"
    );
    assert_eq!(
        kinds["flame_bpf_unread_contexts"][0]["type"], "gauge",
        "{kinds}"
    );
    let unread = |reason: &str| {
        let of_it = format!("flame_bpf_unread_contexts{{reason=%22{reason}%22}}");
        prometheus.sum(&of_it)
    };
    prometheus.wait_until(|| unread("too-large") == Some(1));
    assert_eq!(unread("broken"), Some(0));
    assert_eq!(kinds["process_cpu_seconds"][0]["type"], "counter");
    let memory = prometheus.sum("process_resident_memory_bytes");
    assert!(memory > Some(1 << 20), "{memory:?}");
    let firings = prometheus
        .sum("flame_bpf_firings_total")
        .expect("some were scraped");
    let recorded = "flame_bpf_firings_total{outcome=\"recorded\"}".replace('"', "%22");
    let samples = prometheus.sum(&recorded).expect("some were scraped");
    assert_eq!(get(listen, "/healthz").as_deref(), Some("ok\n"));
    running.signal(Signal::TERM);
    let run = running.finish().expect_code(0);
    run.lossless_balance().assert_even();
    // Only windows that have ended are counted there.
    let all = run.balance();
    assert!(
        0 < firings && firings <= all.fired,
        "{firings} of {}",
        all.fired
    );
    assert!(
        0 < samples && samples <= all.recorded,
        "{samples} of {}",
        all.recorded
    );
}
