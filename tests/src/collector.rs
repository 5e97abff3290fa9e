//! A real OpenTelemetry collector, made of its published modules.
//!
//! In: the sources under `collector/`, whose versions are pinned, and what is done with profiles. Out: a collector that takes profiles
//! over HTTP, appends them to a file or passes them on, and what is in that file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::go::go_toolchains;
use crate::program::{cache, read};

/// Making it takes two minutes of CPU time, and its modules have to be fetched.
const MAX_SECONDS: &str = "900";

/// The beginning of each line in a collector's file.
const LINE: &str = r#"{"resourceProfiles":"#;

/// Something that a collector does with profiles.
#[derive(Clone, Copy, Debug)]
pub enum Passing<'a> {
    /// Appends them to a file through a buffer, as it does by default.
    Buffered,
    /// Has them in a file before it answers.
    Written,
    /// Keeps them in memory until the server at this address has them.
    Queued(&'a str),
    /// Keeps them in a folder until the server at this address has them.
    Stored(&'a str),
}

impl Passing<'_> {
    /// The configuration of a collector that listens at an address and has this folder for what it writes.
    fn config(self, address: SocketAddr, folder: &Path) -> String {
        let folder = folder.display().to_string();
        let config = match self {
            Self::Buffered => to_file("append: true, flush_interval: 0s"),
            Self::Written => to_file("rotation: {}"),
            Self::Queued(url) => to_server(url).replace("storage: file_storage", ""),
            Self::Stored(url) => to_server(url),
        };
        config
            .replace(DOCS_ADDRESS, &address.to_string())
            .replace(DOCS_FOLDER, &folder)
            // Collectors beside each other cannot have one port for their own metrics.
            .replace(
                "service:\n",
                "service:\n  telemetry: {metrics: {level: none}}\n",
            )
    }
}

/// Address, server and folder of the configuration in the documents.
const DOCS_ADDRESS: &str = "0.0.0.0:4318";
const DOCS_SERVER: &str = "http://pyroscope:4040";
const DOCS_FOLDER: &str = "/var/lib/otelcol";

/// The configuration in the documents, with another server.
fn to_server(url: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/service.md");
    let page = String::from_utf8(read(&page)).expect("it is text");
    let config = page
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let config = config.expect("there is one in the documents");
    for part in [DOCS_ADDRESS, DOCS_SERVER, DOCS_FOLDER] {
        assert!(config.contains(part), "{part} is not in {config}");
    }
    config.replace(DOCS_SERVER, url)
}

/// A configuration with a file exporter.
fn to_file(how: &str) -> String {
    format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: '{DOCS_ADDRESS}'}}}}}}}}\n\
         exporters: {{file: {{path: '{DOCS_FOLDER}/profiles.json', {how}}}}}\n\
         service:\n  pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}\n"
    )
}

/// A collector with a port of its own.
#[derive(Debug)]
pub struct Collector {
    program: PathBuf,
    /// Its configuration and its log.
    own: TempDir,
    folder: PathBuf,
    address: SocketAddr,
    child: Option<Child>,
}

/// Contents of a collector's file.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The sums of values by the ID of their profile.
    pub sums: BTreeMap<String, u64>,
    /// Profiles that came more than once, each time after the first.
    pub again: usize,
    /// Lines of which a part is missing.
    pub torn: usize,
}

impl Collector {
    /// One that takes profiles from now on, with this folder for what it writes.
    ///
    /// # Errors
    ///
    /// When it cannot be made here: there is no Go that is new enough, or its modules cannot be had.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start(passing: Passing<'_>, folder: &Path) -> Result<Self, String> {
        let program = made()?;
        let own = tempfile::tempdir().expect("a temporary folder can be made");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = free.local_addr().expect("it has an address");
        drop(free);
        let config = passing.config(address, folder);
        fs::write(own.path().join("config.yaml"), config).expect("it can be written");
        let mut collector = Self {
            program,
            own,
            folder: folder.to_owned(),
            address,
            child: None,
        };
        collector.begin();
        Ok(collector)
    }

    /// Begins again after [`end`](Self::end) or [`kill`](Self::kill), on the same port and with the same files.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn begin(&mut self) {
        let log = File::create(self.own.path().join("log")).expect("it can be made");
        let child = Command::new(&self.program)
            .arg("--config")
            .arg(self.own.path().join("config.yaml"))
            .arg("--feature-gates=service.profilesSupport")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.expect("it can be started"));
        let begun = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let log = fs::read_to_string(self.own.path().join("log")).unwrap_or_default();
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
        self.stop(Signal::TERM);
    }

    /// Ends it at once, as a crash does.
    ///
    /// # Panics
    ///
    /// When it cannot be signalled.
    pub fn kill(&mut self) {
        self.stop(Signal::KILL);
    }

    fn stop(&mut self, signal: Signal) {
        if let Some(mut child) = self.child.take() {
            let pid = Pid::from_child(&child);
            kill_process(pid, signal).expect("it runs");
            child.wait().expect("it ends");
        }
    }

    /// Its process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The address at which it takes profiles.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Contents of its file.
    ///
    /// # Panics
    ///
    /// When the file is not what a collector writes.
    #[must_use]
    pub fn held(&self) -> Held {
        let text = fs::read_to_string(self.folder.join("profiles.json")).unwrap_or_default();
        let mut held = Held::default();
        for line in text.lines() {
            // Behind a line that was not finished, the next one begins at once.
            let begins: Vec<usize> = line.match_indices(LINE).map(|(at, _)| at).collect();
            assert_eq!(begins.first(), Some(&0), "a line says profiles");
            let ends = begins.iter().skip(1).copied().chain([line.len()]);
            for (begin, end) in begins.iter().zip(ends) {
                let Ok(batch) = serde_json::from_str(&line[*begin..end]) else {
                    held.torn += 1;
                    continue;
                };
                for profile in profiles(&batch) {
                    let id = profile["profileId"].as_str().expect("a profile has an ID");
                    let earlier = held.sums.insert(id.to_owned(), sum(profile));
                    held.again += usize::from(earlier.is_some());
                }
            }
        }
        held
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
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("collector");
    let mut hasher = DefaultHasher::new();
    for name in ["main.go", "go.mod"] {
        read(&sources.join(name)).hash(&mut hasher);
    }
    let program = cache().join(format!("collector-{:016x}", hasher.finish()));
    if program.is_file() {
        return Ok(program);
    }
    let go = go_toolchains()?.remove(0);
    let part = program.with_extension("part");
    let made = Command::new("timeout")
        .arg(MAX_SECONDS)
        .arg(go)
        .args(["build", "-mod=readonly", "-ldflags=-s -w", "-o"])
        .arg(&part)
        .arg(".")
        .current_dir(sources)
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
