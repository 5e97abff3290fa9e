//! Requests to one server.
//!
//! In: a body. Out: what became of it. A server that does not answer is given up after some seconds; a connection ends after some
//! minutes, so that a new one may find another server behind the same name.

use super::Destination;
use super::reply::{Outcome, Reply};
use crate::output::request::Protocol;
use anyhow::{Context as _, Result, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a request may take.
const REQUEST: Duration = Duration::from_secs(30);
/// How long a connection is used.
const CONNECTION: Duration = Duration::from_secs(300);
/// The most bytes of an answer that are looked at.
const ANSWER_BYTES: u64 = 64 << 10;

/// Most bytes of a body that was compressed: a file in a folder may be any.
const PLAIN_BYTES: u64 = 16 << 20;

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// As it is.
    Text(String),
    /// A beginning, and the contents of a file behind it, which is read for each request: it may change.
    File(String, PathBuf),
}

impl Secret {
    fn value(&self) -> Result<String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(before, path) => {
                let cannot = || format!("cannot read {}", path.display());
                let text = std::fs::read_to_string(path).with_context(cannot)?;
                Ok(format!("{before}{}", text.trim()))
            }
        }
    }
}

/// Certificates that are trusted, and our own, where addresses begin with `https`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates that are trusted instead of the usual ones, in PEM.
    pub ca: Option<PathBuf>,
    /// Our own certificate and its key, in PEM.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// A client of one server.
pub(super) struct Client {
    agent: ureq::Agent,
    protocol: Protocol,
    url: String,
    headers: Vec<(String, Secret)>,
}

impl Client {
    /// One for a server.
    ///
    /// # Errors
    /// When a certificate cannot be read.
    pub(super) fn new(destination: &Destination, tls: &Tls) -> Result<Self> {
        let config = ureq::Agent::config_builder()
            .tls_config(tls_config(tls)?)
            .timeout_connect(Some(CONNECT))
            .timeout_resolve(Some(CONNECT))
            .timeout_global(Some(REQUEST))
            .max_idle_age(CONNECTION)
            .http_status_as_error(false)
            // A window goes where it was meant to go, and nowhere else.
            .max_redirects(0)
            .user_agent(concat!("flame-bpf/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: config.into(),
            protocol: destination.protocol,
            url: destination.url.clone(),
            headers: destination.headers.clone(),
        })
    }

    /// Whether the files of secrets can be read.
    ///
    /// # Errors
    /// When one cannot.
    pub(super) fn check(&self) -> Result<()> {
        self.headers.iter().try_for_each(|(name, secret)| {
            secret.value().with_context(|| format!("header {name}"))?;
            Ok(())
        })
    }

    /// Sends a body, which may take so long.
    pub(super) fn post(&self, body: &[u8], left: Option<Duration>) -> Outcome {
        let mut request =
            (self.agent.post(&self.url)).header("content-type", self.protocol.content_type());
        if self.protocol.is_compressed() {
            request = request.header("content-encoding", "gzip");
        }
        for (name, secret) in &self.headers {
            match secret.value() {
                Ok(value) => request = request.header(name, value),
                Err(error) => return Outcome::failed(format!("header {name}: {error:#}")),
            }
        }
        let left = left.map_or(REQUEST, |left| left.min(REQUEST));
        let left = left.max(Duration::from_millis(1));
        request = request.config().timeout_global(Some(left)).build();
        let mut response = match request.send(body) {
            Ok(response) => response,
            Err(error) => return Outcome::failed(reason(&error, left)),
        };
        let mut answer = Vec::new();
        let read = response.body_mut().with_config().reader();
        if let Err(error) = read.take(ANSWER_BYTES).read_to_end(&mut answer) {
            return Outcome::failed(format!("its answer ended early: {error}"));
        }
        let header = |name: &str| response.headers().get(name)?.to_str().ok();
        let reply = Reply {
            status: response.status().as_u16(),
            content_type: header("content-type").unwrap_or_default(),
            retry_after: header("retry-after"),
            location: header("location"),
            body: &answer,
        };
        reply.outcome(self.protocol, SystemTime::now())
    }
}

/// Why there is no answer to a request that had so much time, as the end of a sentence.
fn reason(error: &ureq::Error, left: Duration) -> String {
    match error {
        ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
            format!("there was no connection within {} s", CONNECT.as_secs())
        }
        ureq::Error::Timeout(_) => {
            format!(
                "it did not answer within {:.0} s",
                left.as_secs_f64().ceil()
            )
        }
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// A body as requests of a protocol want it.
pub fn compressed(protocol: Protocol, body: Vec<u8>) -> Vec<u8> {
    if !protocol.is_compressed() {
        return body;
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let written = gzip.write_all(&body).and_then(|()| gzip.finish());
    written.expect("a vector grows as needed")
}

/// One body for several, each compressed as requests of a protocol want it; none if they cannot be one.
pub(super) fn joined(protocol: Protocol, bodies: &[Vec<u8>]) -> Option<Vec<u8>> {
    let plain = bodies.iter().map(|body| {
        let mut plain = Vec::new();
        let gzip = GzDecoder::new(body.as_slice());
        let read = gzip.take(PLAIN_BYTES).read_to_end(&mut plain).ok()?;
        ((read as u64) < PLAIN_BYTES).then_some(plain)
    });
    let plain = plain.collect::<Option<Vec<_>>>()?;
    Some(compressed(protocol, protocol.joined(&plain)?))
}

fn tls_config(tls: &Tls) -> Result<TlsConfig> {
    let mut config = TlsConfig::builder();
    if let Some(path) = &tls.ca {
        let trusted: Vec<Certificate<'_>> = (certificates(path)?).collect();
        ensure!(
            !trusted.is_empty(),
            "there is no certificate in {}",
            path.display()
        );
        config = config.root_certs(RootCerts::from(trusted));
    }
    if let Some((certificate, key)) = &tls.client {
        let chain: Vec<_> = certificates(certificate)?.collect();
        ensure!(
            !chain.is_empty(),
            "there is no certificate in {}",
            certificate.display()
        );
        let no_key = || format!("there is no key in {}", key.display());
        let key = PrivateKey::from_pem(&read(key)?).with_context(no_key)?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
    }
    Ok(config.build())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn certificates(path: &Path) -> Result<impl Iterator<Item = Certificate<'static>>> {
    let pem = read(path)?;
    let items: Vec<_> = parse_pem(&pem).collect();
    Ok(items.into_iter().filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    }))
}
