//! Instructions and lines of real programs: what was counted at each, and what is said where code is not here.
//!
//! In: a program whose time is in one loop. Out: shares that are not where the time was spent.

use std::fs;
use std::path::Path;
use std::process::Command;

use flame_bpf_tests::{Invocation, PrivateCopy, Program, Run, Workload, kernel_test};
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
    // Addresses of the kernel and of processes are longer than those of files.
    let rows = text.lines().filter_map(|line| {
        let (before, code) = line.split_once(":  ")?;
        u64::from_str_radix(before.get(16..)?.trim(), 16).ok()?;
        Some((share(&before[..7]), share(&before[8..15]), code.trim()))
    });
    rows.collect()
}

/// Samples of a function, in all and its own, that an annotation's second line tells.
fn told(text: &str) -> (u64, u64) {
    let line = text.lines().nth(1).expect("a second line");
    let number = |text: &str| -> u64 {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    };
    let (total, rest) = line.split_once(" samples, ").expect("samples");
    let itself = rest.split(';').nth(1).expect("its own");
    (number(total), number(itself))
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
        .expect_stderr(
            "no function of this recording whose addresses are known matches `absent_function`",
        );
}

/// A program that spends its time in reads of zeros.
fn reader() -> Workload {
    let line = "echo ready; exec dd if=/dev/zero of=/dev/null bs=64k status=none";
    Workload::start(Command::new("sh").args(["-c", line]))
}

#[kernel_test]
fn functions_of_the_kernel_are_shown_as_they_run() {
    let reader = reader();
    let folder = tempdir().expect("a temporary folder can be made");
    let recording = folder.path().join("x.fbpf");
    Invocation::new("-F 997 -d 3")
        .flag("-p", reader.pid())
        .path("-o", &recording)
        .run()
        .expect_code(0);
    let check = |run: Run, function: &str| {
        let text = String::from_utf8(run.stdout.clone()).expect("text");
        assert!(
            text.starts_with(&format!("{function} in the kernel")),
            "{text}"
        );
        let (total, own) = told(&text);
        let all = rows(&text);
        let itself: f64 = all.iter().map(|(itself, ..)| itself).sum();
        let expected = 100.0 * own as f64 / total as f64;
        // Each share is rounded.
        let rounding = 0.06 * all.len() as f64;
        assert!(
            own > 0 && (itself - expected).abs() < rounding,
            "{itself} {expected}: {text}"
        );
        // Code that is decoded from a wrong place is hardly ever without these.
        assert!(
            all.iter().all(|(.., code)| !code.contains("(bad)")),
            "{text}"
        );
        text
    };
    let annotate = || Invocation::new("annotate").arg(recording.display());
    check(
        annotate().arg("read_zero").run().expect_code(0),
        "read_zero",
    );
    // A caller spends its time in calls, whose names are known.
    let text = check(annotate().arg("vfs_read").run().expect_code(0), "vfs_read");
    let all = rows(&text);
    let calls: f64 = (all.iter())
        .filter(|(.., code)| code.starts_with("call"))
        .map(|(_, total, _)| total)
        .sum();
    assert!(calls > 80.0, "{calls}: {text}");
    assert!(text.contains("call    rw_verify_area"), "{text}");
    // Without a recording.
    let now = Invocation::new("annotate read_zero -F 997 -d 2").flag("-p", reader.pid());
    check(now.run().expect_code(0), "read_zero");
}

#[kernel_test]
fn code_of_a_runtime_is_read_from_the_process_while_it_runs() {
    let folder = tempdir().expect("a temporary folder can be made");
    let recording = folder.path().join("x.fbpf");
    let path = folder.path().display().to_string();
    for (arguments, function) in [
        (&["map"][..], "told_in_a_map"),
        (&["dump", &path], "told_in_a_dump"),
    ] {
        let program = Program::c("anonymous").start(arguments);
        let map = format!("/tmp/perf-{}.map", program.pid());
        Invocation::new("-F 997 -d 1")
            .flag("-p", program.pid())
            .path("-o", &recording)
            .run()
            .expect_code(0);
        let annotate = || {
            Invocation::new("annotate")
                .arg(recording.display())
                .arg(function)
                .run()
        };
        let run = annotate().expect_code(0);
        let text = String::from_utf8(run.stdout.clone()).expect("text");
        let all = rows(&text);
        let code = all.iter().map(|(.., code)| code.split(' ').next());
        let code: Vec<&str> = code.flatten().collect();
        if cfg!(target_arch = "x86_64") {
            assert_eq!(code, ["push", "mov", "dec", "jne", "pop", "ret"], "{text}");
        }
        let of = |name: &str| -> f64 {
            let such = all.iter().filter(|(.., code)| code.starts_with(name));
            such.map(|(itself, ..)| itself).sum()
        };
        assert!(of("dec") + of("jne") > 90.0, "{text}");
        assert!(text.contains("as it is now"), "{text}");
        drop(program);
        annotate()
            .expect_code(1)
            .expect_stderr("has ended, and recordings do not keep it");
        // A jitdump has the code itself.
        let dumped = Invocation::new("annotate")
            .arg(recording.display())
            .arg(function)
            .path("--jitdump", folder.path())
            .run();
        if function == "told_in_a_dump" {
            let dumped = String::from_utf8(dumped.expect_code(0).stdout).expect("text");
            assert_eq!(rows(&dumped), all, "{dumped}");
        } else {
            dumped.expect_code(1).expect_stderr("cannot open");
        }
        fs::remove_file(map).ok();
    }
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
