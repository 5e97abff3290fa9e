//! A real OpenTelemetry collector, made of its published modules.
//!
//! In: the sources under `collector/`, whose versions are pinned. Out: a collector that takes profiles over HTTP and appends them
//! to a file, and what is in that file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::go::go_toolchains;
use crate::program::cache;

/// Making it takes two minutes of CPU time, and its modules have to be fetched.
const MOST_SECONDS: &str = "900";

/// A collector with a port and a file of its own.
#[derive(Debug)]
pub struct Collector {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Collector {
    /// One that takes profiles from now on.
    ///
    /// # Errors
    ///
    /// When it cannot be made here: there is no Go that is new enough, or its modules cannot be had.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start() -> Result<Self, String> {
        let program = made()?;
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = free.local_addr().expect("it has an address").port();
        drop(free);
        let file = folder.path().join("profiles.json");
        let config = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}\n\
             exporters: {{file: {{path: '{}', append: true, flush_interval: 0s}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}\n",
            file.display()
        );
        fs::write(folder.path().join("config.yaml"), config).expect("it can be written");
        let mut collector = Self {
            program,
            folder,
            port,
            child: None,
        };
        collector.begin();
        Ok(collector)
    }

    /// Begins again after [`end`](Self::end), on the same port and with the same file.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn begin(&mut self) {
        let log = File::create(self.folder.path().join("log")).expect("it can be made");
        let child = Command::new(&self.program)
            .arg("--config")
            .arg(self.folder.path().join("config.yaml"))
            .arg("--feature-gates=service.profilesSupport")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.expect("it can be started"));
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(60), "{log}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Ends it as a service manager does; it writes what it took before.
    ///
    /// # Panics
    ///
    /// When it cannot be signalled.
    pub fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            let pid = Pid::from_child(&child);
            kill_process(pid, Signal::TERM).expect("it runs");
            child.wait().expect("it ends");
        }
    }

    /// Where it takes profiles.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The sums of values in its file, by the ID of their profile, and how many profiles came more than once.
    ///
    /// # Panics
    ///
    /// When the file is not what a collector writes.
    #[must_use]
    pub fn profiles(&self) -> (BTreeMap<String, u64>, usize) {
        let text = fs::read_to_string(self.folder.path().join("profiles.json")).unwrap_or_default();
        let (mut sums, mut again) = (BTreeMap::new(), 0);
        for line in text.lines() {
            let batch: Value = serde_json::from_str(line).expect("a line is JSON");
            for profile in profiles(&batch) {
                let id = profile["profileId"].as_str().expect("a profile has an ID");
                let earlier = sums.insert(id.to_owned(), sum(profile));
                again += usize::from(earlier.is_some());
            }
        }
        (sums, again)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// The collector's program.
fn made() -> Result<PathBuf, String> {
    let program = cache().join("collector-0.161.0");
    if program.is_file() {
        return Ok(program);
    }
    let go = go_toolchains()?.remove(0);
    let part = program.with_extension("part");
    let made = Command::new("timeout")
        .arg(MOST_SECONDS)
        .arg(go)
        .args(["build", "-mod=readonly", "-ldflags=-s -w", "-o"])
        .arg(&part)
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("collector"))
        .env("GOTOOLCHAIN", "local")
        .output()
        .map_err(|error| format!("Go cannot be run: {error}"))?;
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr);
        let first = why.lines().next().unwrap_or("it took too long");
        return Err(format!("the collector cannot be made: {first}"));
    }
    fs::rename(part, &program).map_err(|error| error.to_string())?;
    Ok(program)
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value[name].as_array().into_iter().flatten()
}

fn profiles(batch: &Value) -> impl Iterator<Item = &Value> {
    list(batch, "resourceProfiles")
        .flat_map(|resource| list(resource, "scopeProfiles"))
        .flat_map(|scope| list(scope, "profiles"))
}

fn sum(profile: &Value) -> u64 {
    let values = list(profile, "samples").flat_map(|sample| list(sample, "values"));
    let number = |value: &Value| value.as_str().and_then(|digits| digits.parse::<u64>().ok());
    values
        .map(|value| number(value).expect("a value is a number"))
        .sum()
}
