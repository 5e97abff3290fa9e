//! A service: each window comes to its servers, whatever these do meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flame_bpf_tests::stacks::{self, Stacks};
use flame_bpf_tests::{
    Answer, Invocation, Mounted, ProfileServer, Program, Run, Running, Workload, kernel_test,
    require, wait_until,
};
use parquet::record::Field;
use rustix::process::Signal;
use tempfile::tempdir;

fn total(stacks: &Stacks) -> u64 {
    stacks.values().sum()
}

fn ended(running: Running) -> Run {
    running.signal(Signal::TERM);
    let run = running.finish().expect_code(0);
    run.lossless_balance().assert_even();
    run
}

#[kernel_test]
fn each_sample_comes_to_a_server_that_fails_meanwhile_and_none_twice() {
    let busy = Answer::Status(
        "503 Service Unavailable",
        "text/plain",
        "Retry-After: 0\r\n",
    );
    let page = Answer::Status("200 OK", "text/html", "");
    let server = ProfileServer::start(&[busy, page, Answer::Half, Answer::Taken, busy]);
    let workload = Program::c("shares").start(&[]);
    let mut running = Invocation::new("service -v -F 997 --window 1s")
        .flag("--otlp", server.url())
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    wait_until(|| server.requests() > 4);
    let run = ended(running);
    let stacks = server.stacks();
    assert_eq!(total(&stacks), run.balance().recorded, "{}", run.stderr);
    assert!(
        stacks
            .keys()
            .any(|stack| stack.iter().any(|name| name == "work_round"))
    );
    // A window that was taken was sent again, because the answer did not come.
    assert!(
        run.stderr
            .contains("does not take profiles: it answered 503")
    );
    assert!(
        run.stderr.contains("takes profiles again"),
        "{}",
        run.stderr
    );
}

#[kernel_test]
fn windows_gather_and_go_in_one_request() {
    let server = ProfileServer::start(&[]);
    let workload = Program::c("shares").start(&[]);
    let mut running = Invocation::new("service -v -F 997 --window 1s --otlp-every 4s")
        .flag("--otlp", server.url())
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    wait_until(|| server.requests() > 1);
    let run = ended(running);
    assert_eq!(total(&server.stacks()), run.balance().recorded);
    let bodies = server.bodies();
    let profiles = |body: &Vec<u8>| stacks::profiles_of_otlp(body).len();
    let each: Vec<usize> = bodies.iter().map(profiles).collect();
    // The first is due at any time, the last at the end.
    assert!(each[1] >= 3, "{each:?}");
    let all: usize = each.iter().sum();
    let (sent, said) = (format!("{all} of {all} windows"), &run.stderr);
    assert!(said.contains(&sent), "no {sent} in {said}");
}

#[kernel_test]
fn what_no_server_takes_is_sent_by_the_next_run() {
    let folder = tempdir().expect("a temporary folder can be made");
    let workload = Program::c("shares").start(&[]);
    let server = ProfileServer::start(&[]);
    let start = || {
        let mut running = Invocation::new("service -v -F 997 --window 1s")
            .flag("--otlp", server.url())
            .path("--spool", folder.path())
            .flag("-p", workload.pid())
            .start();
        running.wait_until_attached();
        running
    };
    server.set_down(true);
    let first = start();
    std::thread::sleep(Duration::from_secs(3));
    let first = ended(first).expect_stderr("kept for the next run");
    assert_eq!(server.requests(), 0);
    server.set_down(false);
    let second = start();
    wait_until(|| server.requests() > 0);
    let second = ended(second);
    let recorded = first.balance().recorded + second.balance().recorded;
    assert_eq!(total(&server.stacks()), recorded);
    let own = fs::read_dir(folder.path()).expect("it is there").next();
    let own = own
        .expect("a folder for the server")
        .expect("it can be read")
        .path();
    assert_eq!(fs::read_dir(own).expect("it is there").count(), 0);
}

#[kernel_test]
fn a_spool_whose_disk_is_full_loses_nothing_while_memory_has_room() {
    let folder = tempdir().expect("a temporary folder can be made");
    let disk = require!(Mounted::small(folder.path().to_owned(), 64));
    let workload = Program::c("shares").start(&[]);
    let server = ProfileServer::start(&[]);
    server.set_down(true);
    let mut running = Invocation::new("service -v -F 997 --window 1s")
        .flag("--otlp", server.url())
        .path("--spool", &disk.0)
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    std::thread::sleep(Duration::from_millis(1500));
    let filler = disk.0.join("filler");
    // Until nothing more goes in.
    let _full = fs::write(&filler, vec![0; 1 << 20]);
    std::thread::sleep(Duration::from_secs(3));
    fs::remove_file(filler).expect("it is there");
    std::thread::sleep(Duration::from_secs(2));
    server.set_down(false);
    wait_until(|| server.requests() > 0);
    let run = ended(running);
    assert_eq!(
        total(&server.stacks()),
        run.balance().recorded,
        "{}",
        run.stderr
    );
}

#[kernel_test]
fn options_are_read_again_unless_they_are_wrong() {
    let folder = tempdir().expect("a temporary folder can be made");
    let config = folder.path().join("service.toml");
    let server = ProfileServer::start(&[]);
    let write = |more: &str| {
        let text = format!("otlp = '{}'\nfreq = 199\n{more}", server.url());
        fs::write(&config, text).expect("it can be written");
    };
    write("");
    let workload = Program::c("shares").start(&[]);
    let mut running = Invocation::new("service --window 1s")
        .path("--config", &config)
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    wait_until(|| server.requests() > 0);
    // Words that are wrong, and words whose files or address are.
    let wrong = [
        ("nonsense = 1\n", "there is no option `nonsense`"),
        ("ca = '/nonexistent'\n", "cannot read /nonexistent"),
        (
            "otlp-header = 'A: @/nonexistent'\n",
            "header A: cannot read /nonexistent",
        ),
        ("spool = '/etc/passwd/x'\n", "/etc/passwd is no folder"),
        ("spool = '/proc/x'\n", "/proc takes no file"),
        (
            "listen = '192.0.2.1:9464'\n",
            "cannot listen on 192.0.2.1:9464",
        ),
    ];
    for (words, _) in wrong {
        write(words);
        running.signal(Signal::HUP);
        let before = server.requests();
        wait_until(|| server.requests() > before);
    }
    write("service-name = 'shop'\n");
    running.signal(Signal::HUP);
    std::thread::sleep(Duration::from_secs(3));
    let before = server.requests();
    wait_until(|| server.requests() > before);
    running.signal(Signal::TERM);
    let run = running.finish().expect_code(0);
    let said = { run.stderr.lines() }.filter(|line| line.contains("options stay as they are"));
    let said: Vec<&str> = said.collect();
    assert_eq!(said.len(), wrong.len(), "{}", run.stderr);
    for (said, (_, why)) in said.iter().zip(wrong) {
        assert!(said.contains(why), "{said}");
    }
    assert!(server.has_text("shop"));
}

#[kernel_test]
fn systemd_waits_for_windows_that_are_longer_than_it_would() {
    let folder = tempdir().expect("a temporary folder can be made");
    let socket = folder.path().join("notify");
    let listening = UnixDatagram::bind(&socket).expect("there is room for a socket");
    let server = ProfileServer::start(&[]);
    let workload = Program::c("shares").start(&[]);
    let mut running = Invocation::new("service -v -F 997 --window 1s")
        .wrapped(&format!(
            "env NOTIFY_SOCKET={} WATCHDOG_USEC=2000000",
            socket.display()
        ))
        .flag("--otlp", server.url())
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    wait_until(|| server.requests() > 1);
    ended(running);
    let told: Vec<String> = std::iter::from_fn(|| {
        let mut bytes = [0; 4096];
        listening.set_nonblocking(true).expect("it is a socket");
        let count = listening.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..count]).trim().to_owned())
    })
    .collect();
    let place = |word: &str| told.iter().position(|told| told == word);
    let waits = place("WATCHDOG_USEC=3000000").expect("three windows");
    let ready = place("READY=1").expect("sampling began");
    assert!(
        waits < ready && place("WATCHDOG=1") > Some(ready),
        "{told:?}"
    );
    assert!(place("STOPPING=1").is_some(), "{told:?}");
}

/// Files below a folder whose names end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        match path.is_dir() {
            true => found.extend(files(&path, end)),
            false if path.to_string_lossy().ends_with(end) => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// Stacks that `render` shows of a file or a folder.
fn rendered(path: &Path) -> Stacks {
    let run = Invocation::new("render -f")
        .arg(path.display())
        .run()
        .expect_code(0);
    stacks::of_folded(&run.stdout)
}

#[kernel_test]
fn an_hour_that_is_over_becomes_a_table_also_after_a_kill() {
    let store = tempdir().expect("a temporary folder can be made");
    let workload = Program::c("shares").start(&[]);
    let start = || {
        let mut running = Invocation::new("service -v -F 997 --window 1s")
            .path("--store", store.path())
            .flag("-p", workload.pid())
            .start();
        running.wait_until_attached();
        running
    };
    let killed = start();
    wait_until(|| !files(store.path(), ".fbpf").is_empty());
    std::thread::sleep(Duration::from_secs(2));
    killed.signal(Signal::KILL);
    drop(killed);
    let recordings = files(store.path(), ".fbpf");
    assert!(!recordings.is_empty() && files(store.path(), ".parquet").is_empty());
    let expected: Vec<Stacks> = recordings.iter().map(|path| rendered(path)).collect();
    // As if that had been the day before, and something was not finished.
    let day = recordings[0].parent().expect("it has a folder");
    let yesterday = Command::new("date")
        .args(["-u", "-d", "yesterday", "+date=%F"])
        .output();
    let yesterday = String::from_utf8(yesterday.expect("there is date").stdout);
    let before = day.with_file_name(yesterday.expect("a date is text").trim());
    fs::rename(day, &before).expect("it can be renamed");
    let unfinished = before.join(".table-x");
    fs::write(&unfinished, "PAR1").expect("it can be written");
    let second = start();
    wait_until(|| !files(&before, ".parquet").is_empty() && files(&before, ".fbpf").is_empty());
    assert!(!unfinished.exists());
    let tables = files(&before, ".parquet");
    let sum: u64 = expected.iter().map(total).sum();
    assert_eq!(total(&rendered(&tables[0])), sum);
    assert!(sum > 0);
    if let [expected] = &*expected {
        let bytes = fs::read(&tables[0]).expect("it is there");
        assert_eq!(total(&stacks::of_parquet(&bytes)), total(expected));
        assert!(rendered(&tables[0]) == *expected, "stacks are others");
    }
    std::thread::sleep(Duration::from_millis(2500));
    let second = ended(second);
    // The hour under way has its table, too, and its recordings are kept for the next run.
    assert_eq!(
        total(&rendered(store.path())),
        sum + second.balance().recorded
    );
    assert!(!files(store.path(), ".fbpf").is_empty());
}

#[kernel_test]
fn waits_are_stored_beside_samples() {
    let store = tempdir().expect("a temporary folder can be made");
    let workload = Program::c("waits").start(&[]);
    let mut running = Invocation::new("service -v -F 199 --window 1s --with-off-cpu")
        .path("--store", store.path())
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    std::thread::sleep(Duration::from_secs(3));
    running.signal(Signal::TERM);
    let run = running.finish().expect_code(0);
    for balance in [run.balance(), run.balance_of("off-CPU")] {
        balance.assert_lossless();
    }
    let shown = |kind: &str, function: &str| {
        let folded = Invocation::new("render -f --sample-type")
            .arg(kind)
            .arg(store.path().display())
            .run()
            .expect_code(0)
            .folded();
        folded.weight(|stack| stack.has(function))
    };
    assert!(shown("cpu-clock", "spinner") > 0);
    let slept = Duration::from_micros(shown("off-CPU", "wait_sleep"));
    assert!(slept > Duration::from_secs(1), "{slept:?}");
}

#[kernel_test]
fn the_oldest_tables_go() {
    let store = tempdir().expect("a temporary folder can be made");
    let host = rustix::system::uname();
    let host = store
        .path()
        .join(format!("host={}", host.nodename().to_string_lossy()));
    let day = host.join("date=2020-02-29");
    fs::create_dir_all(&day).expect("folders can be made");
    fs::write(day.join("13.parquet"), "old").expect("it can be written");
    let workload = Program::c("shares").start(&[]);
    let mut running = Invocation::new("service -v -F 997 --window 1s --store-age 2h")
        .path("--store", store.path())
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    wait_until(|| !day.exists());
    std::thread::sleep(Duration::from_millis(1500));
    ended(running);
}

#[kernel_test]
fn a_process_is_of_the_service_that_it_publishes() {
    let store = tempdir().expect("a temporary folder can be made");
    let server = ProfileServer::start(&[]);
    let program = Program::c("context");
    let (shop, till) = (
        program.start(&["shop", "1"]),
        program.start(&["till", "2", "later"]),
    );
    let other = Program::c("shares").start(&[]);
    let mut running = Invocation::new("service -v -F 997 --window 1s --drop-label host.name")
        .flag("--otlp", server.url())
        .path("--store", store.path())
        .flag("-p", shop.pid())
        .flag("-p", till.pid())
        .flag("-p", other.pid())
        .start();
    running.wait_until_attached();
    wait_until(|| server.requests() > 1);
    till.proceed();
    // It is looked at again at some ages, the last of which is a minute.
    wait_until(|| server.has_text("till"));
    let run = ended(running);
    assert_eq!(total(&server.stacks()), run.balance().recorded);
    let bodies = server.bodies();
    let resources = bodies
        .iter()
        .flat_map(|body| stacks::resources_of_otlp(body));
    let resources: BTreeSet<BTreeMap<String, String>> = resources.collect();
    let text = |of: &BTreeMap<String, String>, key: &str| of.get(key).cloned();
    let of_service = |name: &str| {
        let all = resources.iter();
        let mut of_it = all.filter(|of| text(of, "service.name").as_deref() == Some(name));
        of_it.next()
    };
    for (service, instance) in [("shop", "1"), ("till", "2")] {
        let of = of_service(service).expect("there is a profile of it");
        let title = text(of, "process.title");
        assert_eq!(text(of, "service.instance.id").as_deref(), Some(instance));
        assert!(title.is_some_and(|title| title.starts_with("context")));
    }
    // The one before it published, and the one that never does, are of none.
    let is_of_none = |of: &&BTreeMap<String, String>| !of.contains_key("service.instance.id");
    assert_eq!(
        resources.iter().filter(is_of_none).count(),
        2,
        "{resources:?}"
    );
    assert_eq!(resources.len(), 4, "{resources:?}");
    assert!(!server.has_text("not its own"));
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for path in files(store.path(), ".parquet") {
        let bytes = fs::read(path).expect("it can be read");
        for row in stacks::rows_of_parquet(&bytes) {
            if let (Field::Str(service), Field::Long(count)) = (&row["service"], &row["count"]) {
                *counts.entry(service.clone()).or_default() += count;
            }
        }
    }
    assert!(counts.len() > 2, "{counts:?}");
    assert!(counts["shop"] > 0 && counts["till"] > 0);
}

#[kernel_test]
fn contexts_that_cannot_be_read_are_counted_and_said() {
    let server = ProfileServer::start(&[]);
    let program = Program::c("context");
    let all = ["newer", "large", "nowhere", "later"].map(|how| program.start(&["shop", "1", how]));
    let invocation = Invocation::new("service -v -F 997 --window 1s");
    let of = |invocation: Invocation, workload: &Workload| invocation.flag("-p", workload.pid());
    let mut running = { all.iter().fold(invocation, of) }
        .flag("--otlp", server.url())
        .start();
    running.wait_until_attached();
    wait_until(|| server.requests() > 1);
    let run = ended(running);
    let said = "contexts (OTEL_CTX) of 3 processes were not read: 1 not of version 2, 1 of more than 64 KiB, 1 broken;";
    // Once while it goes on, and in the summary.
    assert_eq!(run.stderr.matches(said).count(), 2, "{}", run.stderr);
    assert!(!server.has_text("shop"));
}
