//! Outputs: files by extension, stdout, a terminal, and that all of them agree.

use std::fs;
use std::process::{Command, Output};

use flame_bpf_tests::{
    Invocation, Program, Workload, assert_whole_svg, kernel_test, require, svg_titles, tool,
};
use tempfile::{TempDir, tempdir};

fn folder() -> TempDir {
    tempdir().expect("a temporary folder can be made")
}

#[kernel_test]
fn all_outputs_of_a_run_agree() {
    let workload = Program::c("shares").start(&[]);
    let folder = folder();
    let [svg, first, second] =
        ["a.svg", "b.folded", "c.folded"].map(|name| folder.path().join(name));
    let run = Invocation::new("-f -F 997 -d 1 --minwidth 0")
        .flag("-p", workload.pid())
        .path("-o", &svg)
        .path("-o", &first)
        .path("-o", &second)
        .run()
        .expect_code(0);
    let folded = run.folded();
    assert_eq!(run.folded_file(&first), folded);
    assert_eq!(run.folded_file(&second), folded);
    let titles = svg_titles(&svg);
    for stack in &folded.stacks {
        for frame in &stack.frames {
            assert!(
                titles.iter().any(|title| title.contains(frame)),
                "{frame} is in the folded text and not in the SVG"
            );
        }
    }
    assert_eq!(
        fs::read_dir(folder.path())
            .expect("the folder is there")
            .count(),
        3
    );
}

#[kernel_test]
fn a_stdout_that_is_no_terminal_gets_folded_text_and_nothing_else() {
    let workload = Program::c("shares").start(&[]);
    let folder = folder();
    let run = Invocation::new("-F 997 -d 1")
        .flag("-p", workload.pid())
        .within(folder.path())
        .run()
        .expect_code(0);
    // Parsed strictly: anything else on stdout fails.
    assert!(run.folded().any(|stack| stack.has("alpha")));
    assert_eq!(
        fs::read_dir(folder.path())
            .expect("the folder is there")
            .count(),
        0
    );
}

#[kernel_test]
fn an_output_replaces_an_existing_file() {
    let workload = Program::c("shares").start(&[]);
    let folder = folder();
    let svg = folder.path().join("x.svg");
    fs::write(&svg, "something else").expect("the folder can be written");
    Invocation::new("-F 997 -d 1")
        .flag("-p", workload.pid())
        .path("-o", &svg)
        .run()
        .expect_code(0);
    assert_whole_svg(&svg);
}

/// Runs on a terminal of its own, inside `folder`; stdout and stderr come as one.
fn on_terminal(folder: &TempDir, invocation: &Invocation) -> Output {
    Command::new("script")
        .current_dir(folder.path())
        // Not everyone who runs the tests has one.
        .env("TERM", "xterm")
        .args([
            "--quiet",
            "--return",
            "--command",
            &invocation.shell(),
            "/dev/null",
        ])
        .output()
        .expect("script was asked for")
}

fn recording(workload: &Workload, flags: &str) -> Invocation {
    Invocation::new(flags).flag("-p", workload.pid())
}

#[kernel_test]
fn a_terminal_gets_progress_and_a_flame_graph_in_the_folder() {
    require!(tool("script"));
    let workload = Program::c("shares").start(&[]);
    let folder = folder();
    let output = on_terminal(&folder, &recording(&workload, "-F 997 -d 2"));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert_whole_svg(&folder.path().join("flamegraph.svg"));
    assert_eq!(
        fs::read_dir(folder.path())
            .expect("the folder is there")
            .count(),
        1
    );
    // A progress line is drawn again and again over itself.
    assert!(shown.matches("samples").count() > 1, "{shown:?}");
    assert!(shown.contains("flamegraph.svg"), "{shown:?}");
}

#[kernel_test]
fn quiet_means_no_progress() {
    require!(tool("script"));
    let workload = Program::c("shares").start(&[]);
    let folder = folder();
    let output = on_terminal(&folder, &recording(&workload, "-q -F 997 -d 2"));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(shown.matches("samples").count() <= 1, "{shown:?}");
    assert!(folder.path().join("flamegraph.svg").exists());
}

#[kernel_test]
fn folded_text_on_a_terminal_is_still_folded_text() {
    require!(tool("script"));
    let workload = Program::c("shares").start(&[]);
    let folder = folder();
    let output = on_terminal(&folder, &recording(&workload, "-q -f -F 997 -d 1"));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.lines().any(|line| line.starts_with("shares;")),
        "{shown}"
    );
    assert!(!folder.path().join("flamegraph.svg").exists());
}
