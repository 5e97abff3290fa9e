//! The flags of `service`, and what stands in a file or the environment instead of them.
//!
//! In: arguments, the text of a file, variables. Out: arguments that clap reads, and a [`Service`]. Never: reads a file or the
//! environment itself.

use super::record::RecordArgs;
use super::{Exit, value};
use crate::output::request::Protocol;
use crate::output::{LABELS, LabelNames, without_dots};
use crate::plan::Service;
use crate::profile::fold::visible;
use crate::send::{Destination, Limits, Secret, Tls};
use crate::store;
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args as _;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long windows are unless said.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);

/// Samples a second on each CPU unless said.
pub(super) const DEFAULT_HZ: u64 = 19;

/// About one wait of each thread is recorded in so long beside samples, unless said.
pub(super) const DEFAULT_WAIT_PERIOD: Duration = Duration::from_millis(10);

/// Room for windows that wait for a server unless said, in mebibytes.
const DEFAULT_SPOOL_MIB: u32 = 256;

/// Room for tables unless said, in mebibytes.
const DEFAULT_STORE_MIB: u32 = 4096;

/// How long tables are kept unless said.
const DEFAULT_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

const HOUR: Duration = Duration::from_secs(3600);

/// Record without end, at 19 Hz unless -F or -c says otherwise, and send each window to servers that take profiles, or keep it
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "flame-bpf service --otlp URL [OPTIONS]",
    after_help = "\
        Options may stand in a file, too, which --config names: `otlp = \"http://localhost:4318\"`, `freq = 19`, `name = \
        [\"nginx\"]`. Arguments go before OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS and OTEL_SERVICE_NAME, these before the file; \
        options that may be repeated add up. SIGTERM sends the last window; SIGHUP reads the file again.",
    args_override_self = true
)]
pub(super) struct ServiceArgs {
    #[command(flatten)]
    pub(super) service: ServiceFlags,
    #[command(flatten)]
    pub(super) record: RecordArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Service")]
pub(super) struct ServiceFlags {
    /// Send OTLP to this OpenTelemetry collector, such as http://localhost:4318. Repeatable, as the next two
    #[arg(long, value_name = "URL")]
    otlp: Vec<String>,
    /// Send to this Pyroscope, such as http://localhost:4040
    #[arg(long, value_name = "URL")]
    pyroscope: Vec<String>,
    /// Send to this Parca, such as http://localhost:7070
    #[arg(long, value_name = "URL")]
    parca: Vec<String>,
    /// Send this header along; `@FILE` in the value is what FILE contains: `Authorization: Bearer @/run/token`. Repeatable
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    otlp_header: Vec<(String, Secret)>,
    /// Send the windows of so long in one request of OTLP, which says names and stacks once [default: each as it ends]
    #[arg(long, value_name = "TIME", value_parser = every, requires = "otlp")]
    otlp_every: Option<Duration>,
    /// The same header for Pyroscope
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    pyroscope_header: Vec<(String, Secret)>,
    /// The same header for Parca
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    parca_header: Vec<(String, Secret)>,
    /// Trust the certificates in this file instead of the usual ones
    #[arg(long, value_name = "PEM")]
    ca: Option<PathBuf>,
    /// Show this certificate to servers that ask for one
    #[arg(long, value_name = "PEM", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// The key of --client-cert
    #[arg(long, value_name = "PEM", requires = "client_cert")]
    client_key: Option<PathBuf>,
    /// Name the service that all processes are [default: what each publishes (OTEL_CTX), or its container, unit or name]
    #[arg(long, value_name = "NAME")]
    service_name: Option<String>,
    /// Leave this label out of what is sent, such as process.linux.cgroup. Repeatable, as the next
    #[arg(long, value_name = "NAME", value_parser = LABELS, hide_possible_values = true)]
    drop_label: Vec<String>,
    /// Give a label another name: `k8s.pod.name=service.name`
    #[arg(long, value_name = "NAME=NEW", value_parser = renamed_label)]
    rename_label: Vec<(String, String)>,
    /// Keep in DIR what servers do not take, also across restarts [default: in memory, at most 32 MiB]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Limit what waits for each server; the oldest windows go first [default: 256]
    #[arg(long, value_name = "MIB", value_parser = value::mebibytes)]
    spool_size: Option<u32>,
    /// Keep a table (Parquet) of each hour in DIR, for SQL and for render and diff
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Limit this host's tables there; the oldest go first [default: 4096]
    #[arg(long, value_name = "MIB", value_parser = value::mebibytes, requires = "store")]
    store_size: Option<u32>,
    /// Remove tables that are older [default: 30d]
    #[arg(long, value_name = "TIME", value_parser = value::age, requires = "store")]
    store_age: Option<Duration>,
    /// Record where threads wait beside the samples, too: a wait of each thread in 10ms, or as --switch-sample says
    #[arg(long, conflicts_with_all = ["off_cpu", "wall"])]
    pub(super) with_off_cpu: bool,
    /// Answer GET /metrics (Prometheus) and GET /healthz here, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS", value_parser = listened)]
    listen: Option<SocketAddr>,
    /// Read options from this file, in TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say whether all options are right, and end
    #[arg(long)]
    pub(super) check_config: bool,
}

impl ServiceFlags {
    /// The service that the flags ask for, with windows that long.
    pub(super) fn service(self, interval: Option<Duration>) -> Result<Service> {
        let all = [
            (Protocol::Otlp, self.otlp, self.otlp_header, self.otlp_every),
            (
                Protocol::Pyroscope,
                self.pyroscope,
                self.pyroscope_header,
                None,
            ),
            (Protocol::Parca, self.parca, self.parca_header, None),
        ];
        let mut destinations: Vec<Destination> = Vec::new();
        for (protocol, urls, headers, every) in all {
            ensure!(
                headers.is_empty() || !urls.is_empty(),
                "--{0}-header is for --{0} URL, and there is none",
                protocol.name()
            );
            for url in urls {
                let url = address(protocol, &url)?;
                let is_new = destinations.iter().all(|known| known.url != url);
                ensure!(is_new, "{url} is given twice; keep one");
                destinations.push(Destination {
                    protocol,
                    url,
                    headers: headers.clone(),
                    every: every.unwrap_or_default(),
                });
            }
        }
        ensure!(
            !destinations.is_empty() || self.store.is_some(),
            "there is nowhere to send to; name a server with --otlp URL, --pyroscope URL or --parca URL, or a folder with --store DIR"
        );
        let interval = interval.unwrap_or(DEFAULT_INTERVAL);
        ensure!(
            self.store.is_none() || interval <= HOUR,
            "--store keeps hours, and windows of --window {} s are longer",
            interval.as_secs()
        );
        let limits = store::Limits {
            age: self.store_age.unwrap_or(DEFAULT_AGE),
            bytes: u64::from(self.store_size.unwrap_or(DEFAULT_STORE_MIB)) << 20,
        };
        Ok(Service {
            interval,
            destinations,
            store: self.store.map(|folder| (folder, limits)),
            limits: Limits {
                folder: self.spool,
                bytes: u64::from(self.spool_size.unwrap_or(DEFAULT_SPOOL_MIB)) << 20,
            },
            tls: Tls {
                ca: self.ca,
                client: self.client_cert.zip(self.client_key),
            },
            name: self.service_name,
            labels: label_names(self.drop_label, self.rename_label)?,
            listen: self.listen,
        })
    }
}

/// Time from one request to the next.
fn every(text: &str) -> Result<Duration, String> {
    let wrong = "not a time between requests; use for instance 30s or 1m";
    value::duration(text).map_err(|_| wrong.to_owned())
}

/// An address to listen on.
fn listened(text: &str) -> Result<SocketAddr, String> {
    let wrong = "not an address and a port to listen on; use for instance 127.0.0.1:9464, or [::]:9464 for everybody";
    text.parse().map_err(|_| wrong.to_owned())
}

/// Labels by the flags that drop and rename them.
fn label_names(dropped: Vec<String>, renamed: Vec<(String, String)>) -> Result<LabelNames> {
    let mut names = LabelNames {
        dropped: dropped.into_iter().collect(),
        renamed: BTreeMap::new(),
    };
    for (name, new) in renamed {
        ensure!(
            !names.dropped.contains(&name),
            "the label {name} is both dropped and renamed; keep one of the two"
        );
        ensure!(
            (names.renamed.values()).all(|known| without_dots(known) != without_dots(&new)),
            "two labels cannot both be named {new}"
        );
        let before = names.renamed.insert(name.clone(), new);
        ensure!(
            before.is_none(),
            "the label {name} is given two names; keep one"
        );
    }
    Ok(names)
}

/// A label that has another name.
fn renamed_label(text: &str) -> Result<(String, String), String> {
    let (name, new) = text.split_once('=').ok_or("write it as NAME=NEW")?;
    if !LABELS.contains(&name) {
        return Err(format!(
            "there is no label of this name; there are {}",
            LABELS.join(", ")
        ));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._".contains(&byte);
    match new.bytes().all(is_plain) && new.starts_with(|first: char| first.is_ascii_alphabetic()) {
        true => Ok((name.to_owned(), new.to_owned())),
        false => Err("a name has letters, digits, dots and underscores".to_owned()),
    }
}

/// The address of requests to a server: with the protocol's path, unless it has a path of its own.
fn address(protocol: Protocol, url: &str) -> Result<String> {
    let rest = (url.strip_prefix("http://")).or_else(|| url.strip_prefix("https://"));
    let wrong = || {
        format!(
            "`{}` is no address of a server; write --{} http://HOST:PORT",
            visible(url),
            protocol.name()
        )
    };
    let rest = rest.filter(|rest| !rest.is_empty()).with_context(wrong)?;
    let has_path = rest
        .split_once('/')
        .is_some_and(|(_, path)| !path.is_empty());
    Ok(match has_path {
        true => url.to_owned(),
        false => format!("{}{}", url.trim_end_matches('/'), protocol.path()),
    })
}

/// A header: its name and its value.
fn header(text: &str) -> Result<(String, Secret), String> {
    let wrong = "write it as `Name: value`, or as `Name: @FILE`";
    let (name, value) = text.split_once(':').ok_or(wrong)?;
    let (name, value) = (name.trim(), value.trim());
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) || value.bytes().any(|byte| byte < b' ') {
        return Err(wrong.to_owned());
    }
    let secret = match value.split_once('@') {
        Some((before, path)) if before.is_empty() || before.ends_with(' ') => {
            Secret::File(before.to_owned(), path.into())
        }
        _ => Secret::Text(value.to_owned()),
    };
    Ok((name.to_owned(), secret))
}

/// The word that begins a service's command line.
const COMMAND: &str = "service";

/// Arguments with what stands in the environment and in the file of `--config` before them, if they are of `service`. `read`: the text
/// of a file; `variable`: the value of one.
///
/// # Errors
/// Text to print, where the file cannot be read or understood.
pub fn with_settings(
    arguments: Vec<OsString>,
    read: impl FnOnce(&Path) -> std::io::Result<String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<OsString>, Exit> {
    if arguments.get(1).is_none_or(|word| word != COMMAND) {
        return Ok(arguments);
    }
    let settings = settings(&arguments[2..], read, variable);
    let settings = settings.map_err(|error| Exit::usage(&format!("{error:#}")))?;
    let (before, behind) = arguments.split_at(2);
    Ok([before, &settings, behind].concat())
}

fn settings(
    given: &[OsString],
    read: impl FnOnce(&Path) -> std::io::Result<String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<OsString>> {
    let mut settings = Vec::new();
    if let Some(path) = config(given) {
        let cannot = || format!("cannot read {}", Path::new(&path).display());
        let text = read(Path::new(&path)).with_context(cannot)?;
        settings.extend(from_file(&text).with_context(|| Path::new(&path).display().to_string())?);
    }
    let has = |flag: &str, settings: &[OsString]| {
        let mut all = given.iter().chain(settings);
        all.any(|word| {
            let word = word.as_encoded_bytes();
            word.strip_prefix(flag.as_bytes())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
        })
    };
    // The second is a base for all kinds of telemetry.
    let endpoint = variable("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT").or_else(|| {
        let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        Some(base.trim_end_matches('/').to_owned() + Protocol::Otlp.path())
    });
    if let Some(url) = endpoint.filter(|_| !has("--otlp", given)) {
        remove(&mut settings, "--otlp=");
        settings.push(format!("--otlp={url}").into());
    }
    if has("--otlp", &settings)
        && let Some(headers) = variable("OTEL_EXPORTER_OTLP_HEADERS")
    {
        for pair in headers.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (name, value) = pair.split_once('=').with_context(|| {
                format!(
                    "OTEL_EXPORTER_OTLP_HEADERS: `{}` is no NAME=VALUE",
                    visible(pair)
                )
            })?;
            settings.push(format!("--otlp-header={}: {}", name.trim(), value.trim()).into());
        }
    }
    if let Some(name) = variable("OTEL_SERVICE_NAME") {
        settings.push(format!("--service-name={name}").into());
    }
    Ok(settings)
}

fn remove(settings: &mut Vec<OsString>, start: &str) {
    settings.retain(|word| !word.as_encoded_bytes().starts_with(start.as_bytes()));
}

/// The file that `--config` names.
fn config(given: &[OsString]) -> Option<OsString> {
    let mut words = given.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            return None;
        }
        if word == "--config" {
            return words.next().cloned();
        }
        if let Some(path) = word.as_encoded_bytes().strip_prefix(b"--config=") {
            return Some(OsStr::from_bytes(path).to_owned());
        }
    }
    None
}

/// Arguments for the keys of a file, which are the names of flags.
fn from_file(text: &str) -> Result<Vec<OsString>> {
    let table: toml::Table = text.parse()?;
    let command = ServiceArgs::augment_args(clap::Command::new(COMMAND));
    let mut arguments = Vec::new();
    for (key, value) in table {
        ensure!(
            key != "config" && key != "check-config",
            "`{key}` is for the command line only"
        );
        let known = |key: &str| { command.get_arguments() }.any(|it| it.get_long() == Some(key));
        let dashed = key.replace('_', "-");
        ensure!(
            known(&key) || !known(&dashed),
            "there is no option `{key}`; write `{dashed}`"
        );
        ensure!(
            known(&key),
            "there is no option `{key}`; `flame-bpf service --help` lists them"
        );
        let values = match value {
            toml::Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let value = match value {
                toml::Value::Boolean(true) => {
                    arguments.push(format!("--{key}").into());
                    continue;
                }
                toml::Value::Boolean(false) => continue,
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                _ => bail!("`{key}` is a text, a number, true or false, or a list of these"),
            };
            arguments.push(format!("--{key}={value}").into());
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests;
