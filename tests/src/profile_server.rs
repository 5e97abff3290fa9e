//! A server that takes profiles, and may fail to.
//!
//! In: requests in OTLP, and how to answer the first of them. Out: what the requests hold, each profile once, however often it came.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::request::Request;
use crate::stacks::{self, Stacks};

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As a collector that has taken it.
    Taken,
    /// With this status line's end, content type and further header.
    Status(&'static str, &'static str, &'static str),
    /// With half of an answer, though it was taken.
    Half,
    /// As one that has taken it, but for three profiles.
    Partial,
    /// Never.
    Silence,
}

/// A server on a port of its own.
pub struct ProfileServer {
    address: std::net::SocketAddr,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
    is_down: Arc<AtomicBool>,
}

/// The answer of a server that is down.
const DOWN: Answer = Answer::Status("503 Service Unavailable", "text/plain", "");

impl ProfileServer {
    /// One that gives these answers, and takes everything behind them.
    ///
    /// # Panics
    ///
    /// When there is no port.
    pub fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let server = Self {
            address: listener.local_addr().expect("it has an address"),
            bodies: Arc::default(),
            is_down: Arc::default(),
        };
        let (bodies, answers) = (Arc::clone(&server.bodies), answers.to_vec());
        let is_down = Arc::clone(&server.is_down);
        std::thread::spawn(move || {
            let mut answers = answers.into_iter();
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.expect("somebody has come");
                let Some(request) = Request::read(&mut stream) else {
                    continue;
                };
                let body = request.unpacked();
                let answer = match is_down.load(Ordering::Relaxed) {
                    true => DOWN,
                    false => answers.next().unwrap_or(Answer::Taken),
                };
                if matches!(answer, Answer::Taken | Answer::Half | Answer::Partial) {
                    bodies.lock().expect("nobody panicked").push(body);
                }
                match answer {
                    Answer::Silence => silent.push(stream),
                    // The client may have gone.
                    answer => drop(stream.write_all(text(answer).as_bytes())),
                }
            }
        });
        server
    }

    /// Takes nothing from now on, or takes all again.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    /// The address to send to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests that were taken, also those that came again.
    ///
    /// # Panics
    ///
    /// When the server's thread did.
    pub fn requests(&self) -> usize {
        self.bodies.lock().expect("nobody panicked").len()
    }

    /// Whether a text stands in any request.
    ///
    /// # Panics
    ///
    /// When the server's thread did.
    pub fn has_text(&self, text: &str) -> bool {
        let bodies = self.bodies.lock().expect("nobody panicked");
        let has = |body: &Vec<u8>| body.windows(text.len()).any(|part| part == text.as_bytes());
        bodies.iter().any(has)
    }

    /// Bodies of the requests that were taken, unpacked, in their order.
    ///
    /// # Panics
    ///
    /// When the server's thread did.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.bodies.lock().expect("nobody panicked").clone()
    }

    /// The sums of all profiles, by their IDs in hexadecimal digits.
    ///
    /// # Panics
    ///
    /// When a request is not what OTLP wants, or two with one ID differ.
    pub fn sums(&self) -> BTreeMap<String, u64> {
        let bodies = self.bodies.lock().expect("nobody panicked");
        stacks::sums_of_otlp(bodies.iter().map(Vec::as_slice))
    }

    /// Stacks of all profiles, each profile once by its ID.
    ///
    /// # Panics
    ///
    /// When a request is not what OTLP wants, or two with one ID differ.
    pub fn stacks(&self) -> Stacks {
        let bodies = self.bodies.lock().expect("nobody panicked");
        let mut known: BTreeMap<Vec<u8>, Stacks> = BTreeMap::new();
        for (id, stacks) in bodies
            .iter()
            .flat_map(|body| stacks::profiles_of_otlp(body))
        {
            assert_eq!(id.len(), 16, "{id:?}");
            let before = known.insert(id, stacks.clone());
            assert!(
                before.is_none_or(|before| before == stacks),
                "one ID, two profiles"
            );
        }
        let mut all = Stacks::new();
        for (stack, weight) in known.into_values().flatten() {
            *all.entry(stack).or_default() += weight;
        }
        all
    }
}

fn text(answer: Answer) -> String {
    let json = r#"{"partialSuccess":{"rejectedProfiles":"3","errorMessage":"too\nold"}}"#;
    let (status, kind, more, body) = match answer {
        Answer::Taken => ("200 OK", "application/x-protobuf", "", ""),
        Answer::Partial => ("200 OK", "application/json", "", json),
        Answer::Status(status, kind, more) => (status, kind, more, ""),
        Answer::Half => return "HTTP/1.1 200 OK\r\nContent-Le".to_owned(),
        Answer::Silence => return String::new(),
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
