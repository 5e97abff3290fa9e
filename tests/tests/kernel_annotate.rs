//! Instructions and lines of real programs: what was counted at each, and what is said where code is not here.
//!
//! In: a program whose time is in one loop. Out: shares that are not where the time was spent.

use std::fs;
use std::path::Path;
use std::process::Command;

use flame_bpf_tests::{Invocation, PrivateCopy, Program, Workload, kernel_test};
use tempfile::tempdir;

/// A row of an annotation: self and total in percent, and the instruction.
fn rows(text: &str) -> Vec<(f64, f64, &str)> {
    let share = |text: &str| {
        text.trim()
            .trim_start_matches('<')
            .trim_end_matches('%')
            .parse()
            .unwrap_or(0.0)
    };
    let row = |line: &'_ str| -> Option<(f64, f64)> {
        let address = line.get(16..25)?.trim();
        let is_row = !address.is_empty()
            && u64::from_str_radix(address, 16).is_ok()
            && line.get(25..26) == Some(":");
        is_row.then(|| (share(&line[..7]), share(&line[8..15])))
    };
    text.lines()
        .filter_map(|line| row(line).map(|(itself, total)| (itself, total, line[26..].trim())))
        .collect()
}

#[kernel_test]
fn a_function_is_shown_instruction_by_instruction_with_its_source() {
    let shares = Program::c_with_debug_information("shares");
    let folder = tempdir().expect("a temporary folder can be made");
    let recording = folder.path().join("x.fbpf");
    let program = shares.start(&[]);
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/c");
    Invocation::new("-F 997 -d 2")
        .flag("-p", program.pid())
        .path("-o", &recording)
        .run()
        .expect_code(0);
    let annotate = |function: &str, flags: &str| {
        Invocation::new("annotate")
            .arg(recording.display())
            .arg(function)
            .args(flags)
            .run()
    };
    let source = format!("--source {}", workloads.display());
    let run = annotate("burn", &source).expect_code(0);
    let text = String::from_utf8(run.stdout.clone()).expect("text");
    let all = rows(&text);
    let itself: f64 = all.iter().map(|(itself, ..)| itself).sum();
    assert!((95.0..105.0).contains(&itself), "{itself}: {text}");
    assert!(
        all.iter().any(|(_, _, code)| code.starts_with("ret")),
        "{text}"
    );
    assert!(text.contains("workload.h:"), "{text}");
    // A caller spends its time in calls.
    let run = annotate("work_round", "").expect_code(0);
    let text = String::from_utf8(run.stdout.clone()).expect("text");
    let all = rows(&text);
    let calls: f64 = (all.iter())
        .filter(|(_, _, code)| code.starts_with("call"))
        .map(|(_, total, _)| total)
        .sum();
    assert!(calls > 90.0, "{calls}: {text}");
    annotate("absent_function", "")
        .expect_code(1)
        .expect_stderr("no native function of this recording matches `absent_function`");
}

#[kernel_test]
fn code_that_is_not_here_is_not_guessed() {
    let shares = Program::c_with_debug_information("shares");
    let copy = PrivateCopy::of(shares.stripped().path());
    let folder = tempdir().expect("a temporary folder can be made");
    let recording = folder.path().join("x.fbpf");
    let workload = Workload::start(&mut Command::new(copy.path()));
    Invocation::new("-F 997 -d 1")
        .flag("-p", workload.pid())
        .path("-o", &recording)
        .run()
        .expect_code(0);
    drop(workload);
    // Another program has its place.
    fs::copy(Program::c("waits").path(), copy.path()).expect("a program can be replaced");
    let debug = folder.path().join("debug");
    let annotate = || {
        Invocation::new("annotate")
            .arg(recording.display())
            .arg("work_round")
            .path("--debug-dir", &debug)
            .run()
            .expect_code(1)
    };
    annotate().expect_stderr("; unnamed: ");
    // Names from a debug file are no code.
    let told = Invocation::new("render -f -v")
        .arg(recording.display())
        .run();
    let id = told.stderr.split("(build ID ").nth(1);
    let id = id.and_then(|rest| rest.split(')').next());
    let (first, rest) = id.expect("the build ID is printed").split_at(2);
    let directory = debug.join(".build-id").join(first);
    fs::create_dir_all(&directory).expect("folders can be made");
    fs::copy(shares.path(), directory.join(format!("{rest}.debug"))).expect("a copy");
    annotate().expect_stderr("is not here: the file is another build");
    fs::remove_file(copy.path()).expect("a copy can be deleted");
    annotate().expect_stderr("is not here: No such file");
}
