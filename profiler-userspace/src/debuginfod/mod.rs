//! Fetches debug files and source from debuginfod servers, by build ID.
//!
//! In: servers, and a build ID. Out: an open file that is an object of that build, from the cache or over the
//! network; or text of a source file. Never takes longer or stores more than its limits allow, because servers may be slow, endless or
//! lying. Protocol and environment variables are elfutils': see `debuginfod(8)` and
//! `debuginfod_find_debuginfo(3)`.

mod cache;
mod limits;
#[cfg(test)]
pub(crate) mod tests;

pub use limits::Limits;

use crate::object::{BuildId, Elf, RegularFile};
use cache::{Cache, Cached};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Where distributions list their servers.
const LISTS: &str = "/etc/debuginfod";

/// How long the first byte from a server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How much is read at a time, in bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// Which servers to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Servers {
    /// Those in `DEBUGINFOD_URLS`; none if it is not set.
    #[default]
    IfSet,
    /// Those in `DEBUGINFOD_URLS`, or the distribution's.
    Usual,
    /// These, separated by spaces.
    Named(String),
}

impl Servers {
    /// The servers' addresses; empty if no server is to be asked.
    pub fn addresses(&self) -> Vec<String> {
        let set = || std::env::var("DEBUGINFOD_URLS").unwrap_or_default();
        let text = match self {
            Self::IfSet => set(),
            Self::Usual => match set() {
                text if text.trim().is_empty() => listed(Path::new(LISTS)),
                text => text,
            },
            Self::Named(text) => text.clone(),
        };
        addresses(&text)
    }
}

/// The addresses in the distribution's lists.
fn listed(directory: &Path) -> String {
    let mut lists: Vec<_> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "urls"))
        .collect();
    lists.sort();
    lists
        .iter()
        .filter_map(|list| fs::read_to_string(list).ok())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The words that are addresses; the others are elfutils' own settings.
fn addresses(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let known = word.starts_with("http://") || word.starts_with("https://");
        let address = word.trim_end_matches('/').to_owned();
        if known && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// Totals of the files fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Files that came over the network.
    pub files: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// Whether a limit was reached, so that something was not requested or not kept.
    pub limited: bool,
}

/// A server that was not asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its address, without name and password.
    pub server: String,
    /// The answer that made it so, as the end of a sentence.
    pub reason: String,
}

/// A client of several servers.
pub struct Client<'a> {
    agent: ureq::Agent,
    servers: Vec<String>,
    cache: Cache,
    limits: Limits,
    /// Called whenever progress changes.
    progress: Box<dyn Fn(&Fetched) + 'a>,
    spent: Cell<Duration>,
    fetched: Cell<Fetched>,
    // Servers that failed are not asked again.
    silent: RefCell<HashSet<usize>>,
    failures: RefCell<Vec<Failure>>,
}

/// A server's answer.
enum Answer<T> {
    Found(T),
    /// It has no such file.
    Unknown,
    /// It has one, but it exceeds a limit.
    Limited,
    /// There was none, or the answer is unusable.
    Failed(String),
}

impl<'a> Client<'a> {
    /// A client of `servers`; none if there are none.
    pub fn new(
        servers: Vec<String>,
        limits: Limits,
        progress: impl Fn(&Fetched) + 'a,
    ) -> Option<Self> {
        Self::with_cache(servers, limits, Cache::usual(), Box::new(progress))
    }

    fn with_cache(
        servers: Vec<String>,
        limits: Limits,
        cache: Cache,
        progress: Box<dyn Fn(&Fetched) + 'a>,
    ) -> Option<Self> {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(limits.silence))
            .http_status_as_error(false)
            .max_redirects(5)
            .user_agent(concat!("flame-bpf/", env!("CARGO_PKG_VERSION")))
            .build();
        (!servers.is_empty()).then(|| Self {
            agent: config.into(),
            servers,
            cache,
            limits,
            progress,
            spent: Cell::default(),
            fetched: Cell::default(),
            silent: RefCell::default(),
            failures: RefCell::default(),
        })
    }

    /// The debug file of a build.
    pub fn find(&self, id: &BuildId) -> Option<RegularFile> {
        match self.cache.get(id) {
            Cached::File(file) => return Some(file),
            Cached::KnownMissing => return None,
            Cached::Nothing => {}
        }
        let what = format!("{id}/debuginfo");
        let (found, is_known) = self.ask_all(&what, |body| self.take(body, id));
        if found.is_none() && is_known {
            self.cache.put_missing(id);
        }
        found
    }

    /// The first `most` bytes of a source file of a build, by the path that it had when it was compiled, from its root on.
    pub fn source(&self, id: &BuildId, path: &str, most: u64) -> Option<Vec<u8>> {
        let what = format!("{id}/source{}", escaped(path));
        let take = |body: ureq::BodyReader<'_>| {
            let mut bytes = Vec::new();
            body.take(most).read_to_end(&mut bytes)?;
            Ok(Answer::Found(bytes))
        };
        path.starts_with('/')
            .then(|| self.ask_all(&what, take).0)
            .flatten()
    }

    /// The answer of the first server that has it; and, if none has, whether that is the answer of all.
    fn ask_all<T>(
        &self,
        what: &str,
        take: impl Fn(ureq::BodyReader<'_>) -> io::Result<Answer<T>>,
    ) -> (Option<T>, bool) {
        let mut all_answered = true;
        for (number, server) in self.servers.iter().enumerate() {
            if self.silent.borrow().contains(&number) {
                all_answered = false;
                continue;
            }
            let began = Instant::now();
            let answer = self.ask(&format!("{server}/buildid/{what}"), &take);
            self.spent.set(self.spent.get() + began.elapsed());
            match answer {
                Answer::Found(found) => return (Some(found), false),
                Answer::Unknown => {}
                Answer::Limited => {
                    self.note(|fetched| fetched.limited = true);
                    return (None, false);
                }
                Answer::Failed(reason) => {
                    let server = without_password(server);
                    self.failures.borrow_mut().push(Failure { server, reason });
                    self.silent.borrow_mut().insert(number);
                    all_answered = false;
                }
            }
        }
        (None, all_answered)
    }

    /// Totals of the files fetched so far.
    pub fn fetched(&self) -> Fetched {
        self.fetched.get()
    }

    /// Servers that were not asked again, in the order of their failures.
    pub fn failures(&self) -> Vec<Failure> {
        self.failures.borrow().clone()
    }

    fn note(&self, change: impl FnOnce(&mut Fetched)) {
        let mut fetched = self.fetched.get();
        change(&mut fetched);
        self.fetched.set(fetched);
        (self.progress)(&fetched);
    }

    fn ask<T>(
        &self,
        address: &str,
        take: impl Fn(ureq::BodyReader<'_>) -> io::Result<Answer<T>>,
    ) -> Answer<T> {
        let left = self.limits.time.saturating_sub(self.spent.get());
        if left.is_zero() {
            return Answer::Limited;
        }
        (self.progress)(&self.fetched.get());
        let request = self
            .agent
            .get(address)
            .config()
            .timeout_global(Some(left))
            .build();
        let mut response = match request.call() {
            Ok(response) => response,
            Err(error) => return self.out_of_time(left, Answer::Failed(error.to_string())),
        };
        match response.status() {
            status if status.as_u16() == 200 => {}
            status if status.as_u16() == 404 => return Answer::Unknown,
            status => return Answer::Failed(format!("it answered {status}")),
        }
        let body = response.body_mut();
        let too_large = |bytes: u64| bytes > self.limits.bytes;
        if body.content_length().is_some_and(too_large) {
            return Answer::Limited;
        }
        let body = body.with_config().limit(u64::MAX).reader();
        match take(body) {
            Ok(answer) => answer,
            Err(error) => {
                let reason = format!("its answer ended early: {error}");
                self.out_of_time(left, Answer::Failed(reason))
            }
        }
    }

    /// How to report a failure after which no time is left.
    fn out_of_time<T>(&self, left: Duration, otherwise: Answer<T>) -> Answer<T> {
        // The server may have been slow only because we requested so much.
        match left < self.limits.silence {
            true => Answer::Limited,
            false => otherwise,
        }
    }

    /// Stores a file as it arrives.
    fn take(&self, mut body: impl io::Read, id: &BuildId) -> io::Result<Answer<RegularFile>> {
        let mut target = self.cache.begin(id)?;
        let before = self.fetched.get();
        let mut block = vec![0; BLOCK_BYTES];
        let mut bytes = 0;
        loop {
            let read = body.read(&mut block)?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            if bytes > self.limits.bytes {
                self.fetched.set(before);
                return Ok(Answer::Limited);
            }
            target.file().write_all(&block[..read])?;
            self.note(|fetched| fetched.bytes = before.bytes + bytes);
        }
        if !is_of(target.file(), id)? {
            self.fetched.set(before);
            let reason = format!("it sent {bytes} bytes that are no object of the build {id}");
            return Ok(Answer::Failed(reason));
        }
        self.note(|fetched| fetched.files += 1);
        Ok(Answer::Found(target.keep()?))
    }
}

/// A path as a part of an address.
fn escaped(path: &str) -> String {
    let mut escaped = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// An address without the name and password that may stand before its host.
fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// Whether a file is an object of that build.
fn is_of(file: &mut File, id: &BuildId) -> io::Result<bool> {
    file.rewind()?;
    let elf = std::panic::catch_unwind(|| Elf::read(file));
    Ok(elf.ok().flatten().and_then(|elf| elf.build_id).as_ref() == Some(id))
}
