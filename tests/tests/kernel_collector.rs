//! A service and a real collector: what was recorded is in the collector's file, each window once.

use std::thread::sleep;
use std::time::Duration;

use flame_bpf_tests::{Collector, Invocation, Program, kernel_test, require};
use rustix::process::Signal;

#[kernel_test]
fn a_collector_that_is_stopped_meanwhile_has_each_window_once() {
    let mut collector = require!(Collector::start());
    let _workload = Program::c("shares").start(&[]);
    let mut running = Invocation::new("service -v -a -F 199 --window 1s")
        .flag("--otlp", collector.url())
        .start();
    running.wait_until_attached();
    sleep(Duration::from_secs(4));
    collector.end();
    sleep(Duration::from_secs(5));
    collector.begin();
    sleep(Duration::from_secs(4));
    running.signal(Signal::TERM);
    let run = running.finish().expect_no_panic().expect_code(0);
    run.lossless_balance().assert_even();
    collector.end();
    let (sums, again) = collector.profiles();
    let recorded = run.balance().recorded;
    assert_eq!(sums.values().sum::<u64>(), recorded, "{}", run.stderr);
    assert!(sums.len() >= 12, "{} profiles", sums.len());
    // It answers before it ends, so nothing has to be sent twice.
    assert_eq!(again, 0, "{}", run.stderr);
    let stderr = &run.stderr;
    assert!(stderr.contains("takes profiles again"), "{stderr}");
}
