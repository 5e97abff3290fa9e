use super::*;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// A server on this machine that says the same to everybody.
pub(crate) struct Server {
    pub(crate) address: String,
    asked: Arc<AtomicUsize>,
}

/// How a server behaves.
#[derive(Clone)]
pub(crate) enum Manner {
    Has(Arc<Vec<u8>>),
    HasNot,
    Fails,
    /// Says nothing.
    Silent,
    /// Never comes to an end.
    Endless,
    /// Says that it has so much.
    Claims(u64),
    /// Stops in the middle.
    Stops(Arc<Vec<u8>>),
}

impl Server {
    fn start(manner: Manner) -> Self {
        Self::start_with(format!("{}/debuginfo", own_id()), manner)
    }

    /// One that behaves so where it is asked for this, below its build IDs.
    pub(crate) fn start_with(wanted: String, manner: Manner) -> Self {
        let wanted = format!("GET /buildid/{wanted} ");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                let (wanted, manner) = (wanted.clone(), manner.clone());
                std::thread::spawn(move || serve(stream, &wanted, manner));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn serve(mut stream: TcpStream, wanted: &str, manner: Manner) -> Option<()> {
    let mut request = String::new();
    let mut lines = BufReader::new(stream.try_clone().ok()?);
    while lines.read_line(&mut request).ok()? > 2 {}
    let status = match (&manner, request.starts_with(wanted)) {
        (Manner::HasNot, _) | (_, false) => "404 Not Found",
        (Manner::Fails, _) => "500 Internal Server Error",
        _ => "200 OK",
    };
    let head = |length: String| format!("HTTP/1.1 {status}\r\nConnection: close\r\n{length}\r\n");
    let length = |bytes: u64| head(format!("Content-Length: {bytes}\r\n"));
    let say = |stream: &mut TcpStream, text: String| stream.write_all(text.as_bytes()).ok();
    match manner {
        _ if !status.starts_with("200") => say(&mut stream, length(0)),
        Manner::Has(bytes) => {
            say(&mut stream, length(bytes.len() as u64))?;
            stream.write_all(&bytes).ok()
        }
        Manner::Silent => {
            std::thread::sleep(Duration::from_secs(30));
            None
        }
        Manner::Endless => {
            say(&mut stream, head(String::new()))?;
            loop {
                stream.write_all(&[0; 4096]).ok()?;
            }
        }
        Manner::Claims(bytes) => say(&mut stream, length(bytes)),
        Manner::Stops(bytes) => {
            say(&mut stream, length(bytes.len() as u64))?;
            stream.write_all(&bytes[..bytes.len() / 2]).ok()
        }
        Manner::HasNot | Manner::Fails => None,
    }
}

fn own_file() -> Arc<Vec<u8>> {
    static FILE: LazyLock<Arc<Vec<u8>>> =
        LazyLock::new(|| Arc::new(fs::read("/proc/self/exe").unwrap()));
    Arc::clone(&FILE)
}

/// This test's own program serves as the file to be had.
fn own_id() -> BuildId {
    let elf = Elf::read(&File::open("/proc/self/exe").unwrap()).unwrap();
    elf.build_id.expect("linkers give programs build IDs")
}

fn quickly() -> Limits {
    Limits {
        time: Duration::from_secs(20),
        silence: Duration::from_secs(1),
        bytes: 2 << 30,
    }
}

fn client<'a>(
    servers: &[&Server],
    limits: Limits,
    cache: &Path,
    progress: &'a dyn Fn(&Fetched),
) -> Client<'a> {
    let addresses = servers.iter().map(|server| server.address.clone());
    Client::with_cache(
        addresses.collect(),
        limits,
        Cache::at(cache),
        Box::new(progress),
    )
    .unwrap()
}

fn has_all(file: RegularFile) -> bool {
    file.file.metadata().unwrap().len() == own_file().len() as u64
}

#[test]
fn a_file_is_fetched_once_and_kept() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(Manner::Has(own_file()));
    let fetched_bytes = Cell::new(0);
    let progress = |fetched: &Fetched| fetched_bytes.set(fetched.bytes);
    let first = client(&[&server], quickly(), cache.path(), &progress);
    assert!(has_all(first.find(&own_id()).unwrap()));
    assert_eq!(fetched_bytes.get(), own_file().len() as u64);
    assert_eq!(first.fetched().files, 1);
    let second = client(&[&server], quickly(), cache.path(), &progress);
    assert!(has_all(second.find(&own_id()).unwrap()));
    assert_eq!((server.asked(), second.fetched()), (1, Fetched::default()));
    let kept = cache.path().join(own_id().to_string()).join("debuginfo");
    assert_eq!(fs::read(kept).unwrap(), *own_file());
}

#[test]
fn a_missing_file_is_not_requested_again_soon() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(Manner::HasNot);
    let client = client(&[&server], quickly(), cache.path(), &|_| ());
    assert!(client.find(&own_id()).is_none());
    assert!(client.find(&own_id()).is_none());
    assert_eq!((server.asked(), client.fetched()), (1, Fetched::default()));
    // Unless the cache is told to forget at once.
    fs::write(cache.path().join("cache_miss_s"), "0\n").unwrap();
    assert!(client.find(&own_id()).is_none());
    assert_eq!(server.asked(), 2);
}

#[test]
fn the_next_server_is_asked_and_a_failing_one_skipped() {
    for (manner, fails) in [
        (Manner::HasNot, None),
        (Manner::Fails, Some("it answered 500")),
        (Manner::Silent, Some("timeout")),
        (Manner::Stops(own_file()), Some("its answer ended early")),
        (
            Manner::Has(Arc::new(b"this is no object".to_vec())),
            Some("it sent 17 bytes that are no object of the build "),
        ),
        (Manner::Has(Arc::default()), Some("it sent 0 bytes ")),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let (bad, good) = (
            Server::start(manner),
            Server::start(Manner::Has(own_file())),
        );
        let client = client(&[&bad, &good], quickly(), cache.path(), &|_| ());
        let found = client.find(&own_id());
        assert!(found.is_some(), "{:?}", client.fetched());
        assert!(found.is_some_and(has_all));
        let other = BuildId::new(&[7; 20]).unwrap();
        assert!(client.find(&other).is_none());
        let failures = client.failures();
        assert_eq!(failures.len(), usize::from(fails.is_some()));
        for (failure, reason) in failures.iter().zip(fails) {
            assert_eq!(failure.server, bad.address);
            assert!(failure.reason.starts_with(reason), "{failure:?}");
        }
        let fails = fails.is_some();
        assert_eq!((bad.asked(), good.asked()), (2 - usize::from(fails), 2));
        // The server that did not answer may have it, so no miss is cached.
        assert_eq!(cache.path().join(other.to_string()).exists(), !fails);
    }
}

#[test]
fn a_download_stops_at_the_size_limit() {
    let limits = Limits {
        bytes: 1 << 20,
        ..quickly()
    };
    for manner in [Manner::Endless, Manner::Claims(u64::MAX >> 1)] {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(manner);
        let client = client(&[&server], limits, cache.path(), &|_| ());
        assert!(client.find(&own_id()).is_none());
        assert!(client.fetched().limited && client.failures().is_empty());
        let left = cache.path().join(own_id().to_string()).join("debuginfo");
        assert!(!left.exists());
    }
}

#[test]
fn a_download_stops_at_the_time_limit() {
    let cache = tempfile::tempdir().unwrap();
    let limits = Limits {
        time: Duration::from_millis(300),
        ..quickly()
    };
    let server = Server::start(Manner::Endless);
    let client = client(&[&server], limits, cache.path(), &|_| ());
    let began = Instant::now();
    assert!(client.find(&own_id()).is_none());
    assert!(client.find(&own_id()).is_none());
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(client.fetched().limited);
    assert_eq!(server.asked(), 1);
}

#[test]
fn server_addresses_are_distinguished_from_settings() {
    assert_eq!(
        addresses(
            " ima:enforcing https://a.example/ http://b.example https://a.example\nfile:///x"
        ),
        ["https://a.example", "http://b.example"]
    );
    assert_eq!(
        Servers::Named("http://x".to_owned()).addresses(),
        ["http://x"]
    );
    let lists = tempfile::tempdir().unwrap();
    fs::write(lists.path().join("b.urls"), "http://b\n").unwrap();
    fs::write(lists.path().join("a.urls"), "http://a http://c\n").unwrap();
    fs::write(lists.path().join("a.certpath"), "http://no\n").unwrap();
    assert_eq!(
        addresses(&listed(lists.path())),
        ["http://a", "http://c", "http://b"]
    );
    assert!(addresses(&listed(Path::new("/nowhere"))).is_empty());
    assert!(Client::new(Vec::new(), quickly(), |_| ()).is_none());
}

#[test]
fn no_password_is_shown() {
    for (address, shown) in [
        ("https://me:secret@host:8002/a@b", "https://host:8002/a@b"),
        ("http://host", "http://host"),
        ("https://host/a", "https://host/a"),
    ] {
        assert_eq!(without_password(address), shown);
    }
}
