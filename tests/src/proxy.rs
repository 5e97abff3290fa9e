//! A proxy before a server of profiles, which loses some of its answers.
//!
//! In: requests in OTLP, and where they go. Out: what each had, and what was answered. Never: an answer of its own.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::request::Request;
use crate::stacks;

/// A proxy on a port of its own.
pub struct Proxy {
    address: SocketAddr,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    request: Request,
    /// Whether the server took it.
    pub is_taken: bool,
    /// Whether the answer was lost on its way.
    pub is_lost: bool,
    /// When the server answered, or did not.
    pub at: Instant,
}

impl Proxy {
    /// One before the server at this address. Of the answers that say that a request was taken it loses each so-manieth; none if
    /// there is no number.
    ///
    /// # Panics
    ///
    /// When there is no port.
    pub fn start(server: SocketAddr, loses_each: Option<usize>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let proxy = Self {
            address: listener.local_addr().expect("it has an address"),
            exchanges: Arc::default(),
        };
        let exchanges = Arc::clone(&proxy.exchanges);
        let taken = Arc::<AtomicUsize>::default();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.expect("somebody has come");
                let (exchanges, taken) = (Arc::clone(&exchanges), Arc::clone(&taken));
                std::thread::spawn(move || {
                    let Some(request) = Request::read(&mut client) else {
                        return;
                    };
                    let answer = passed_on(&request, server);
                    let is_taken = answer.starts_with(b"HTTP/1.1 200");
                    let number = taken.fetch_add(usize::from(is_taken), Ordering::Relaxed) + 1;
                    let is_lost = is_taken && loses_each.is_some_and(|each| number % each == 0);
                    exchanges.lock().expect("nobody panicked").push(Exchange {
                        request,
                        is_taken,
                        is_lost,
                        at: Instant::now(),
                    });
                    if !is_lost {
                        // The client may have gone.
                        let _gone = client.write_all(&answer);
                    }
                });
            }
        });
        proxy
    }

    /// The address to send to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, and their answers.
    ///
    /// # Panics
    ///
    /// When the proxy's thread did.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().expect("nobody panicked").clone()
    }
}

impl Exchange {
    /// The sums of values by the ID of their profile, of the requests that a server took among some.
    ///
    /// # Panics
    ///
    /// When a request is not what OTLP wants, or two profiles with one ID differ.
    pub fn taken<'e>(exchanges: impl IntoIterator<Item = &'e Self>) -> BTreeMap<String, u64> {
        let taken = exchanges.into_iter().filter(|of| of.is_taken);
        let bodies: Vec<Vec<u8>> = taken.map(|of| of.request.unpacked()).collect();
        stacks::sums_of_otlp(bodies.iter().map(Vec::as_slice))
    }
}

/// The server's answer; empty if there is none.
fn passed_on(request: &Request, server: SocketAddr) -> Vec<u8> {
    let mut answer = Vec::new();
    if let Ok(mut stream) = TcpStream::connect(server)
        && stream.write_all(&request.last()).is_ok()
    {
        // Bytes before an error are passed on, too.
        let _ended = stream.read_to_end(&mut answer);
    }
    answer
}
