//! Errors on a real machine: a clear sentence, a proper exit code, and no half-written file.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use flame_bpf_tests::{
    Folded, Invocation, NEARLY_ALL, Program, files_in, kernel_test, require, svg_titles, tool,
};
use tempfile::tempdir;

/// A PID that nobody has: that of a child which is dead and reaped.
fn dead_pid() -> u32 {
    let mut child = Command::new("true").spawn().expect("true can be started");
    child.wait().expect("a child can be waited for");
    child.id()
}

#[kernel_test]
fn a_missing_process_or_thread_is_named() {
    let folder = tempdir().expect("a temporary folder can be made");
    let pid = dead_pid();
    for flag in ["-p", "-t"] {
        Invocation::new("-d 1")
            .flag(flag, pid)
            .path("-o", &folder.path().join("x.svg"))
            .run()
            .expect_code(1)
            .expect_stderr(&pid.to_string())
            .expect_any_stderr(&["process", "thread"]);
    }
    assert!(files_in(folder.path()).is_empty());
}

#[kernel_test]
fn an_output_that_cannot_be_written_is_refused_before_the_command_runs() {
    let folder = tempdir().expect("a temporary folder can be made");
    let marker = folder.path().join("ran");
    let is_a_folder = folder.path().join("folder.svg");
    fs::create_dir(&is_a_folder).expect("a folder can be made");
    let touch = require!(tool("touch"));
    for output in [
        Path::new("/no/such/folder/x.svg"),
        &is_a_folder,
        Path::new("/proc/x.svg"),
    ] {
        Invocation::new("")
            .path("-o", output)
            .command(&touch, &[&marker.display().to_string()])
            .run()
            .expect_code(1)
            .expect_stderr(&output.display().to_string());
        assert!(
            !marker.exists(),
            "the command ran although {} is hopeless",
            output.display()
        );
    }
    assert_eq!(files_in(folder.path()), ["folder.svg"]);
}

#[kernel_test]
fn an_idle_target_is_reported_to_have_used_no_cpu() {
    let workload = Program::c("sleeper").start(&[]);
    let run = Invocation::new("-f -d 1")
        .flag("-p", workload.pid())
        .run()
        .expect_no_panic()
        .expect_stderr("0.00 s")
        .expect_any_stderr(&["no samples", "not one sample", "0 samples", "no sample"]);
    assert_eq!(run.stdout, b"");
}

#[kernel_test]
fn a_target_without_samples_leaves_no_broken_file() {
    let workload = Program::c("sleeper").start(&[]);
    let folder = tempdir().expect("a temporary folder can be made");
    let svg = folder.path().join("x.svg");
    Invocation::new("-d 1")
        .flag("-p", workload.pid())
        .path("-o", &svg)
        .run()
        .expect_no_panic();
    if svg.exists() {
        svg_titles(&svg);
        assert_eq!(files_in(folder.path()), ["x.svg"]);
    } else {
        assert!(files_in(folder.path()).is_empty());
    }
}

#[kernel_test]
fn a_target_that_exits_early_still_gets_a_graph() {
    for flags in ["-f -F 997 -d 60", "-f -F 997"] {
        let workload = Program::c("shares").start(&["1000"]);
        let mut running = Invocation::new(flags).flag("-p", workload.pid()).start();
        running.wait_until_attached();
        workload.stop_by_itself();
        let run = running
            .finish()
            .expect_code(0)
            .expect_any_stderr(&["exited", "ended", "gone"]);
        let folded = run.folded();
        assert!(
            folded.share(|stack| stack.has("work_round")) > NEARLY_ALL,
            "{folded}"
        );
    }
}

#[kernel_test]
fn the_run_ends_when_its_only_thread_exits() {
    let workload = Program::c("shares").start(&["1000"]);
    let mut running = Invocation::new("-f -F 997 -d 60")
        .flag("-t", workload.pid())
        .start();
    running.wait_until_attached();
    workload.stop_by_itself();
    let folded = running.finish().expect_code(0).folded();
    assert!(folded.any(|stack| stack.has("work_round")), "{folded}");
}

fn shell(script: &str) -> Output {
    Command::new("sh")
        .args(["-c", script])
        .output()
        .expect("sh is there")
}

#[kernel_test]
fn a_reader_that_closes_stdout_early_causes_no_panic() {
    let _workloads = [
        Program::c("deep").start(&["1000"]),
        Program::c("deep").start(&["900"]),
        Program::c("forkstorm").start(&["100", "2000", "500"]),
    ];
    let invocation = Invocation::new("-f -a -F 997 -d 2").shell();
    for reader in ["head -1", "true"] {
        let output = shell(&format!("{invocation} | {reader}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "into `{reader}`:\n{stderr}");
        if reader != "true" {
            let folded = Folded::parse(&output.stdout).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(folded.stacks.len(), 1);
        }
    }
}

#[kernel_test]
fn impossible_rates_are_refused_with_the_reason() {
    let workload = Program::c("shares").start(&[]);
    let limit = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate")
        .expect("the kernel has a limit");
    for (rate, reason) in [("0", "0"), ("10000000", limit.trim())] {
        let run = Invocation::new("-f -d 1")
            .flag("-p", workload.pid())
            .flag("-F", rate)
            .run()
            .expect_no_panic();
        assert!([1, 2].contains(&run.code()), "-F {rate}: {}", run.code());
        assert_eq!(run.stdout, b"");
        // Grouped digits are as good.
        let digits: String = run.stderr.chars().filter(|letter| *letter != ',').collect();
        assert!(
            digits.contains(reason),
            "-F {rate} does not say {reason}:\n{}",
            run.stderr
        );
    }
}

#[kernel_test]
fn a_proc_of_another_namespace_is_refused() {
    require!(tool("unshare"));
    Invocation::new("-a -d 1")
        .wrapped("unshare --pid --fork")
        .run()
        .expect_code(1)
        .expect_stderr("/proc is of another PID namespace");
}

/// Where the superuser may not raise the limit, either.
#[kernel_test]
fn too_few_descriptors_are_named_as_the_reason() {
    require!(tool("prlimit"));
    let run = Invocation::new("-f -a -d 1 -F 997")
        .wrapped("prlimit --nofile=20:20")
        .run();
    if run.code() != 0 {
        run.expect_stderr("prlimit --pid $$ --nofile=4096");
    }
}

#[kernel_test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    require!(tool("unshare"));
    let workload = Program::c("shares").start(&[]);
    let folder = tempdir().expect("a temporary folder can be made");
    let mount = folder.path().display();
    // One page for the old file and one for what is written: an SVG's script alone needs more.
    let script = format!(
        "mount -t tmpfs -o size=8k tmpfs {mount} && echo old > {mount}/x.svg || exit 99
         {} ; code=$?
         ls -A {mount}; cat {mount}/x.svg; exit $code",
        Invocation::new("-F 997 -d 1 -q")
            .flag("-p", workload.pid())
            .flag("-o", format!("{mount}/x.svg"))
            .shell()
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .output()
        .expect("unshare was asked for");
    let stderr = String::from_utf8_lossy(&output.stderr);
    require!(match output.status.code() {
        Some(99) => Err(format!("no file system can be mounted: {}", stderr.trim())),
        _ => Ok(()),
    });
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("space") && stderr.contains("x.svg"),
        "{stderr}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "x.svg\nold\n");
}

#[kernel_test]
fn a_full_device_on_stdout_is_an_error() {
    let workload = Program::c("shares").start(&[]);
    let invocation = Invocation::new("-f -F 997 -d 1").flag("-p", workload.pid());
    let output = shell(&format!("{} > /dev/full", invocation.shell()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("space") && !stderr.contains("panicked"),
        "{stderr}"
    );
}
