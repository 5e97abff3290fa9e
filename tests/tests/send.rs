//! Senders of windows, beside a server that fails in all ways.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flame_bpf::output::request::Protocol;
use flame_bpf::send::{
    Board, Body, Destination, Limits, Secret, Sender, Standing, Tls, compressed,
};
use flame_bpf_tests::{Answer, ProfileServer};

/// Starts a sender, and keeps what it says.
fn started(url: &str) -> (Sender, Arc<Mutex<Vec<String>>>) {
    let destination = Destination {
        protocol: Protocol::Otlp,
        url: url.to_owned(),
        headers: vec![("X-Scope".to_owned(), Secret::Text("a".to_owned()))],
        every: Duration::ZERO,
    };
    let limits = Limits {
        folder: None,
        bytes: 1 << 20,
    };
    let said = Arc::<Mutex<Vec<String>>>::default();
    let says = Arc::clone(&said);
    let say = move |sentence: &str| says.lock().expect("it works").push(sentence.to_owned());
    let sender = Sender::start(&destination, &limits, &Tls::default(), say);
    (sender.expect("it can be started"), said)
}

fn body(byte: u8) -> Body {
    Body {
        bytes: compressed(Protocol::Otlp, vec![byte; 100]),
        samples: 10,
    }
}

/// The first bytes of the bodies that a server took, when it has so many.
fn taken(server: &ProfileServer, count: usize) -> Vec<u8> {
    let begun = Instant::now();
    while server.requests() < count {
        assert!(begun.elapsed() < Duration::from_secs(60), "they never came");
        std::thread::sleep(Duration::from_millis(10));
    }
    server.bodies().iter().map(|body| body[0]).collect()
}

#[test]
fn windows_come_in_order_whatever_a_server_answers_meanwhile() {
    let busy = Answer::Status(
        "503 Service Unavailable",
        "text/plain",
        "Retry-After: 0\r\n",
    );
    let page = Answer::Status("200 OK", "text/html", "");
    let answers = [busy, Answer::Taken, page, Answer::Half, busy, Answer::Taken];
    let server = ProfileServer::start(&answers);
    let (sender, said) = started(&server.url());
    (0..3).for_each(|byte| sender.put(body(byte)));
    // That which was taken though the answer did not come is sent again.
    assert_eq!(taken(&server, 4), [0, 1, 1, 2]);
    sender.close();
    let counts = sender.end();
    assert_eq!((counts.put.windows, counts.taken.windows), (3, 3));
    assert_eq!((counts.taken.samples, counts.failures), (30, 4));
    let said = said.lock().expect("it works");
    assert!(
        said[0].contains("does not take profiles: it answered 503"),
        "{said:?}"
    );
    assert!(said[1].ends_with("takes profiles again"), "{said:?}");
}

#[test]
fn what_a_server_will_never_take_does_not_stop_the_next() {
    let wrong = Answer::Status("400 Bad Request", "text/plain", "");
    let server = ProfileServer::start(&[wrong, wrong]);
    let (sender, said) = started(&server.url());
    (0..3).for_each(|byte| sender.put(body(byte)));
    assert_eq!(taken(&server, 1), [2]);
    sender.close();
    let counts = sender.end();
    assert_eq!((counts.refused.windows, counts.taken.windows), (2, 1));
    let said = said.lock().expect("it works");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("refused a window, which is lost"),
        "{said:?}"
    );
}

#[test]
fn what_a_server_does_not_want_or_say_is_said() {
    let wait = Answer::Status("429 Too Many Requests", "text/plain", "Retry-After: 1\r\n");
    let server = ProfileServer::start(&[Answer::Partial, Answer::Partial, wait, Answer::Silence]);
    let (sender, said) = started(&server.url());
    (0..2).for_each(|byte| {
        sender.put(body(byte));
        taken(&server, usize::from(byte) + 1);
    });
    sender.put(body(2));
    let begun = Instant::now();
    while sender.counts().failures < 1 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never failed");
        std::thread::sleep(Duration::from_millis(10));
    }
    sender.close();
    let counts = sender.end();
    assert_eq!((counts.taken.windows, counts.rejected_profiles), (2, 6));
    let said = said.lock().expect("it works");
    // The silence is part of the same trouble.
    let [partial, wait] = &**said else {
        panic!("{said:?}");
    };
    assert!(
        partial.contains("without 3 profiles, lost for this reason: too old;"),
        "{partial}"
    );
    assert!(
        wait.ends_with("429; trying again in 1 s, as it wants"),
        "{wait}"
    );
    let (silent, said) = started(&ProfileServer::start(&[Answer::Silence]).url());
    silent.put(body(0));
    silent.close();
    assert_eq!(silent.end().dropped.windows, 1);
    let said = said.lock().expect("it works");
    assert!(said[0].contains("it did not answer within 5 s"), "{said:?}");
}

#[test]
fn servers_that_are_not_there_cost_no_more_than_what_waits() {
    // Nobody listens on these ports any more.
    let gone = || {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        listener.local_addr().expect("it has an address")
    };
    let both = [gone(), gone()].map(|address| started(&format!("http://{address}/")));
    for (sender, _) in &both {
        (0..2).for_each(|byte| sender.put(body(byte)));
    }
    both.iter().for_each(|(sender, _)| sender.close());
    for (sender, said) in both {
        let counts = sender.end();
        assert_eq!((counts.put.windows, counts.dropped.windows), (2, 2));
        assert!(counts.failures > 0);
        assert_eq!(said.lock().expect("it works").len(), 1, "said once");
    }
}

#[test]
fn a_service_tells_how_it_stands() {
    let server = ProfileServer::start(&[]);
    let (sender, _said) = started(&server.url());
    let senders = std::slice::from_ref(&sender);
    let board = Arc::new(Board::new(senders, None, Duration::from_secs(10)));
    let mut standing = Standing::default();
    standing.add("cpu-clock".to_owned(), [5, 6, 7]);
    board.window(standing, vec![("silent", 2)]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it has an address");
    drop(listener);
    Board::serve(&board, address).expect("the port is free");
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    };
    let metrics = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    for line in [
        "flame_bpf_firings_total{event=\"cpu-clock\",outcome=\"lost\"} 7",
        "flame_bpf_windows_total 1",
        "flame_bpf_unread_contexts{reason=\"silent\"} 2",
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
