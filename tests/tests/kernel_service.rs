//! A service: each window comes to its servers, whatever these do meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use flame_bpf_tests::stacks::Stacks;
use flame_bpf_tests::{Answer, Invocation, ProfileServer, Program, Run, Running, kernel_test};
use rustix::process::Signal;
use tempfile::tempdir;

fn total(stacks: &Stacks) -> u64 {
    stacks.values().sum()
}

/// Waits until it is so, for at most a minute.
fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never was so");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn ended(running: Running) -> Run {
    running.signal(Signal::TERM);
    let run = running.finish().expect_no_panic().expect_code(0);
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
    write("nonsense = 1\n");
    running.signal(Signal::HUP);
    let before = server.requests();
    wait_until(|| server.requests() > before + 1);
    write("service-name = 'shop'\n");
    running.signal(Signal::HUP);
    std::thread::sleep(Duration::from_secs(3));
    let before = server.requests();
    wait_until(|| server.requests() > before);
    running.signal(Signal::TERM);
    let run = running.finish().expect_no_panic().expect_code(0);
    assert!(
        run.stderr.contains("options stay as they are"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("--nonsense"), "{}", run.stderr);
    assert!(server.has_text("shop"));
}
