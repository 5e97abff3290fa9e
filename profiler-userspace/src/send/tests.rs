use super::*;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

/// A server's answer to one request.
type Answer = (&'static str, &'static str, &'static str);

const TAKEN: Answer = ("200 OK", "application/x-protobuf", "");
/// Says nothing at all.
const SILENT: Answer = ("", "", "");

/// A server that gives these answers, and then takes everything: its address, and the bodies that came.
fn server(answers: Vec<Answer>) -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://{}/v1development/profiles",
        listener.local_addr().unwrap()
    );
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        let mut answers = answers.into_iter();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let body = body_of(&mut stream);
            let (status, kind, more) = answers.next().unwrap_or(TAKEN);
            if status.is_empty() {
                // Half of an answer.
                let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le");
                continue;
            }
            let _gone = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n"
            );
            if sender.send(body).is_err() {
                return;
            }
        }
    });
    (url, bodies)
}

/// The body of the request that comes next.
fn body_of(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut block = [0; 4096];
    loop {
        let head = bytes.windows(4).position(|four: &[u8]| four == b"\r\n\r\n");
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
            assert!(text.contains("content-encoding: gzip"), "{text}");
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let end = head + 4 + length.unwrap().parse::<usize>().unwrap();
            if bytes.len() >= end {
                return bytes[head + 4..end].to_vec();
            }
        }
        match stream.read(&mut block).unwrap() {
            0 => return Vec::new(),
            read => bytes.extend_from_slice(&block[..read]),
        }
    }
}

fn started(url: &str) -> (Sender, Arc<Mutex<Vec<String>>>) {
    let destination = Destination {
        protocol: Protocol::Otlp,
        url: url.to_owned(),
        headers: vec![("X-Scope".to_owned(), Secret::Text("a".to_owned()))],
    };
    let limits = Limits {
        folder: None,
        bytes: 1 << 20,
    };
    let said = Arc::<Mutex<Vec<String>>>::default();
    let says = Arc::clone(&said);
    let say = move |sentence: &str| says.lock().unwrap().push(sentence.to_owned());
    let sender = Sender::start(&destination, &limits, &Tls::default(), say).unwrap();
    (sender, said)
}

fn body(byte: u8) -> Body {
    Body {
        bytes: vec![byte; 100],
        samples: 10,
    }
}

#[test]
fn windows_come_once_and_in_order_whatever_a_server_answers_meanwhile() {
    let busy = (
        "503 Service Unavailable",
        "text/plain",
        "Retry-After: 0\r\n",
    );
    let page = ("200 OK", "text/html", "");
    let (url, bodies) = server(vec![busy, TAKEN, page, SILENT, busy, TAKEN]);
    let (sender, said) = started(&url);
    (0..3).for_each(|byte| sender.put(body(byte)));
    let mut last = None;
    let mut order = Vec::new();
    // Each failure is the same body again; that of the half answer is not told by the server.
    for _ in 0..6 {
        let body = bodies.recv_timeout(Duration::from_secs(60)).unwrap();
        if last.replace(body[0]) != Some(body[0]) {
            order.push(body[0]);
        }
    }
    assert_eq!(order, [0, 1, 2]);
    let counts = sender.end();
    assert_eq!((counts.put.windows, counts.taken.windows), (3, 3));
    assert_eq!((counts.taken.samples, counts.failures), (30, 4));
    let said = said.lock().unwrap();
    assert!(
        said[0].contains("does not take profiles: it answered 503"),
        "{said:?}"
    );
    assert!(said[1].ends_with("takes profiles again"), "{said:?}");
}

#[test]
fn what_a_server_will_never_take_does_not_stop_the_next() {
    let (url, bodies) = server(vec![("400 Bad Request", "text/plain", "")]);
    let (sender, said) = started(&url);
    (0..2).for_each(|byte| sender.put(body(byte)));
    for byte in 0..2 {
        let body = bodies.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(body[0], byte);
    }
    let counts = sender.end();
    assert_eq!((counts.refused.windows, counts.taken.windows), (1, 1));
    assert!(said.lock().unwrap()[0].contains("refused a window, which is lost"));
}

#[test]
fn a_server_that_is_not_there_costs_no_more_than_what_waits() {
    // Nobody listens on this port any more.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (sender, said) = started(&format!("http://{port}/"));
    (0..2).for_each(|byte| sender.put(body(byte)));
    let counts = sender.end();
    assert_eq!((counts.put.windows, counts.dropped.windows), (2, 2));
    assert!(counts.failures > 0);
    assert_eq!(said.lock().unwrap().len(), 1, "said once");
}

#[test]
fn a_service_tells_how_it_stands() {
    let (url, _bodies) = server(Vec::new());
    let (sender, _said) = started(&url);
    let board = Arc::new(Board::new(
        std::slice::from_ref(&sender),
        Duration::from_secs(10),
    ));
    let mut standing = Standing::default();
    standing.add("cpu-clock".to_owned(), [5, 6, 7]);
    board.window(standing);
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    Board::serve(&board, address).unwrap();
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let metrics = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    for line in [
        "flame_bpf_firings_total{event=\"cpu-clock\",outcome=\"lost\"} 7",
        "flame_bpf_windows_total 1",
        "flame_bpf_waiting_windows{protocol=\"otlp\"",
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    assert!(ask("GET /healthz HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200"));
    for other in [
        "POST /metrics HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "\0\0\r\n\r\n",
    ] {
        assert!(ask(other).starts_with("HTTP/1.1 404"), "{other:?}");
    }
}
