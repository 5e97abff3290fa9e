//! The command line as a user meets it: help, refusals, and answers to other profilers' habits.
//!
//! None of these runs may get as far as recording, so they need neither privileges nor a kernel.

use std::fs;
use std::process::{Command, Stdio};

use flame_bpf_tests::{Invocation, Run, binary};
use tempfile::{TempDir, tempdir};

/// Runs with `flags`, which are split at white space.
fn run(flags: &str) -> Run {
    Invocation::new(flags).run().expect_no_panic()
}

fn stdout(run: &Run) -> String {
    String::from_utf8(run.stdout.clone()).expect("help is UTF-8")
}

/// Runs in an empty folder, and sees to it that a refusal is one: exit code 2, a sentence on stderr,
/// and nothing on stdout or on disk.
#[track_caller]
fn refused(flags: &str) -> String {
    let folder = tempdir().expect("a temporary folder can be made");
    let run = Invocation::new(flags)
        .within(folder.path())
        .run()
        .expect_code(2);
    assert!(run.stdout.is_empty(), "`{flags}` wrote to stdout");
    assert!(
        run.stderr.starts_with("error: "),
        "`{flags}`: {}",
        run.stderr
    );
    assert!(
        run.stderr.ends_with("--help'.\n"),
        "`{flags}`: {}",
        run.stderr
    );
    assert!(is_empty(&folder), "`{flags}` left a file");
    run.stderr
}

fn is_empty(folder: &TempDir) -> bool {
    fs::read_dir(folder)
        .expect("the folder is there")
        .next()
        .is_none()
}

#[test]
fn the_short_help_is_one_screen() {
    let run = run("-h").expect_code(0);
    let help = stdout(&run);
    assert!(help.lines().count() <= 50, "{help}");
    for documented in [
        "-p, --pid",
        "-o, --output",
        "--off-cpu",
        "--help prints all",
        "help top",
    ] {
        assert!(help.contains(documented), "{documented}: {help}");
    }
    assert!(!help.contains("--max-unwind-memory"), "{help}");
}

#[test]
fn help_names_every_flag_and_goes_to_stdout() {
    for flag in ["--help"] {
        let run = run(flag).expect_code(0);
        assert!(run.stderr.is_empty(), "{}", run.stderr);
        let help = stdout(&run);
        for documented in [
            "Usage: flame-bpf [OPTIONS] [DURATION] [-- COMMAND [ARGS]...]",
            "-p, --pid",
            "-t, --tid",
            "-a, --all",
            "-C, --cpu",
            "-d, --duration",
            "-F, --freq",
            "-c, --count",
            "-e, --event",
            "-U, --user-stacks-only",
            "-K, --kernel-stacks-only",
            "-I, --include-idle",
            "--per-thread",
            "--per-cpu",
            "-o, --output",
            "-f, --folded",
            "--delimited",
            "--annotate",
            "--debug-dir",
            "--debuginfod",
            "--inline",
            "--lines",
            "--simplify",
            "--no-demangle",
            "--max-symbol-memory",
            "--kernel-lines",
            "--title",
            "--subtitle",
            "--width",
            "--height",
            "--minwidth",
            "--colors",
            "--inverted",
            "--reverse",
            "-q, --quiet",
            "-v, --verbose",
            "--map-memory",
            "--max-unwind-memory",
            "--call-graph",
            "-V, --version",
            "Examples:",
            "Exit status:",
        ] {
            assert!(
                help.contains(documented),
                "{flag} does not say {documented}"
            );
        }
    }
}

#[test]
fn the_long_help_lists_the_events_and_explains_the_graph() {
    let help = stdout(&run("--help").expect_code(0));
    for documented in [
        "cpu-clock",
        "page-faults",
        "branch-misses",
        "L1-dcache",
        "rNNN",
        "Reading the graph",
    ] {
        assert!(help.contains(documented), "{documented}");
    }
}

#[test]
fn help_fits_a_terminal_of_100_columns() {
    for flag in ["-h", "--help"] {
        for line in stdout(&run(flag)).lines() {
            assert!(line.chars().count() <= 100, "{flag}: {line}");
        }
    }
}

#[test]
fn the_version_is_one_line() {
    for flag in ["-V", "--version"] {
        let run = run(flag).expect_code(0);
        let version = stdout(&run);
        let number = version
            .strip_prefix("flame-bpf ")
            .expect("the name comes first");
        assert_eq!(number.trim_end().split('.').count(), 3, "{version}");
        assert_eq!(version.lines().count(), 1);
    }
}

#[test]
fn a_wrong_value_is_answered_with_an_example_of_a_right_one() {
    for (flags, answer) in [
        ("-p nginx", "-p $(pgrep -n nginx)"),
        ("-p -5", "from 1 to"),
        ("-p 0", "idle"),
        ("-t main", "/proc/PID/task"),
        ("-C 3-0", "0-3"),
        ("-F 0", "0 Hz"),
        ("-F fast", "whole number"),
        ("-c 0", "period of 0"),
        ("-d -1", "negative"),
        ("-d 0", "until Ctrl-C"),
        ("soon", "pgrep"),
        ("-e page-fault", "page-faults"),
        ("-e cyles", "cycles"),
        ("-o graph.png", ".svg"),
        ("-o graph", ".folded"),
        ("--colors plaid", "aqua"),
        ("--width 1", "pixels"),
        ("--map-memory 0", "32"),
        ("--max-symbol-memory 63", "64 or more"),
        ("--frobnicate", "--frobnicate"),
    ] {
        let said = refused(flags);
        assert!(
            said.contains(answer),
            "`{flags}` should say {answer:?}: {said}"
        );
    }
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    for (flags, answer) in [
        ("-U -K", "-K"),
        ("-a -p 1", "-a"),
        ("-p 1 -t 1", "-t"),
        ("-F 99 -c 1000", "-c"),
        ("-d 10 10", "twice"),
        ("-q -v", "-v"),
        ("-o a.svg -o ./a.svg", "twice"),
        ("-e cpu-clock -c 10", "10000"),
        ("-p 1 23456", "-d 23456"),
        ("--", "no command"),
        // Stdout is not a terminal here, so folded text is all that there would be.
        ("--title T", "-o flamegraph.svg"),
    ] {
        let said = refused(flags);
        assert!(
            said.contains(answer),
            "`{flags}` should say {answer:?}: {said}"
        );
    }
}

#[test]
fn commands_of_other_tools_are_answered_with_ours() {
    for (flags, tip) in [
        ("-dfK", "flame-bpf -fK --delimited"),
        (
            "-adf -p 185 30",
            "flame-bpf -f --annotate --delimited -p 185 30",
        ),
        ("-F 99 -ag -- sleep 10", "flame-bpf -a -F 99 -- sleep 10"),
        (
            "-g --call-graph dwarf -p 185",
            "flame-bpf --call-graph dwarf -p 185",
        ),
        (
            "record -F 99 -a -g -- sleep 60",
            "flame-bpf -a -F 99 -- sleep 60",
        ),
        ("record ./prog", "flame-bpf -- ./prog"),
        ("./prog --flag", "flame-bpf -- ./prog --flag"),
        ("report --stdio", "flame-bpf -p PID -d 10"),
    ] {
        let said = refused(flags);
        assert!(
            said.lines().any(|line| line == format!("  tip: {tip}")),
            "`{flags}` should show {tip:?}: {said}"
        );
    }
}

#[test]
fn a_word_that_is_not_utf8_is_refused_like_any_other() {
    use std::os::unix::ffi::OsStrExt as _;
    let word = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    for flags in [&[][..], &["-p"], &["-e"]] {
        let output = Command::new(binary())
            .args(flags)
            .arg(word)
            .output()
            .expect("flame-bpf can be started");
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{flags:?}"
        );
    }
}

#[test]
fn help_into_a_closed_pipe_does_not_panic() {
    let mut child = Command::new(binary())
        .arg("--help")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("flame-bpf can be started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("a child can be waited for");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn windows_into_a_named_pipe_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let pipe = folder.path().join("x.fbpf");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe can be made");
    let run = Invocation::new("-a -d 1 --window 1s")
        .path("-o", &pipe)
        .run()
        .expect_code(1);
    assert!(
        run.stderr.contains("no file that can grow"),
        "{}",
        run.stderr
    );
}
