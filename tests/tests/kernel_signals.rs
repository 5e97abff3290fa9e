//! Signals to flame-bpf: the first stops and writes, the second aborts, and no file is ever half there.

use std::fs;

use flame_bpf_tests::{Invocation, Program, assert_whole_svg, files_in, kernel_test};
use rustix::process::Signal;
use tempfile::tempdir;

#[kernel_test]
fn an_interrupt_stops_the_recording_and_writes_it() {
    let workload = Program::c("shares").start(&[]);
    let folder = tempdir().expect("a temporary folder can be made");
    let (svg, folded) = (folder.path().join("x.svg"), folder.path().join("x.folded"));
    for signal in [Signal::INT, Signal::TERM] {
        let mut running = Invocation::new("-F 997")
            .flag("-p", workload.pid())
            .path("-o", &svg)
            .path("-o", &folded)
            .start();
        running.wait_until_attached();
        std::thread::sleep(std::time::Duration::from_millis(500));
        running.signal(signal);
        let run = running.finish().expect_no_panic();
        let codes: &[i32] = if signal == Signal::TERM {
            &[0, 128 + 15]
        } else {
            &[0]
        };
        assert!(
            codes.contains(&run.code()),
            "{}: {}",
            run.code(),
            run.stderr
        );
        assert_whole_svg(&svg);
        assert!(
            run.folded_file(&folded)
                .any(|stack| stack.has("work_round"))
        );
        fs::remove_file(&svg)
            .and(fs::remove_file(&folded))
            .expect("both were written");
        assert!(files_in(folder.path()).is_empty());
    }
}

#[kernel_test]
fn a_second_interrupt_aborts_a_blocked_write() {
    // One such stack fills a pipe that nobody reads more than once over.
    let workloads = [1000, 990, 980, 970, 960, 950, 940, 930, 920, 910]
        .map(|depth: u32| Program::c("deep").start(&[&depth.to_string()]));
    let pids = workloads
        .each_ref()
        .map(|workload| workload.pid().to_string());
    let mut running = Invocation::new("-f -F 997")
        .flag("-p", pids.join(","))
        .start_unread();
    running.wait_until_attached();
    std::thread::sleep(std::time::Duration::from_secs(1));
    running.signal(Signal::INT);
    assert_eq!(
        running.read_stdout_byte(),
        Some(b'd'),
        "every stack begins with `deep`"
    );
    running.signal(Signal::INT);
    let run = running.finish().expect_no_panic();
    assert_ne!(
        run.code(),
        0,
        "aborted, and yet all is well:\n{}",
        run.stderr
    );
}

#[kernel_test]
fn an_aborted_run_leaves_a_complete_file_or_none() {
    let workload = Program::c("shares").start(&[]);
    let folder = tempdir().expect("a temporary folder can be made");
    let svg = folder.path().join("x.svg");
    for _ in 0..5 {
        let mut running = Invocation::new("-F 997")
            .flag("-p", workload.pid())
            .path("-o", &svg)
            .start();
        running.wait_until_attached();
        std::thread::sleep(std::time::Duration::from_millis(200));
        running.signal(Signal::INT);
        running.signal(Signal::INT);
        running.finish().expect_no_panic();
        if svg.exists() {
            assert_whole_svg(&svg);
            fs::remove_file(&svg).expect("the file is there");
        }
        assert_eq!(files_in(folder.path()), Vec::<String>::new());
    }
}
