//! The functions that Python runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones, short-lived ones, and those that are made and dropped.

use std::path::Path;
use std::process::Command;

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Grammar, Interpreter, Invocation, NEARLY_ALL, Stack, Workload, annotated,
    kernel_test, profile, python, require, source,
};

const PYTHON: Interpreter = Interpreter {
    command: "python3",
    arguments: &["-S"],
    folder: "python",
    suffix: "_[py]",
};

/// The machine's own.
fn own_python() -> Result<Interpreter, String> {
    python().map(|path| PYTHON.at(path))
}

/// Those of pyenv that are understood.
fn other_pythons() -> Result<Vec<Interpreter>, String> {
    let understood = |name: &str| {
        let minor = name
            .strip_prefix("3.")
            .and_then(|rest| rest.split('.').next());
        let minor = minor.and_then(|minor| minor.parse().ok());
        // Free-threaded builds are called so.
        let is_free_threaded = name.ends_with('t');
        minor.is_some_and(|minor: u8| {
            (8..=14).contains(&minor) && (!is_free_threaded || minor == 13)
        })
    };
    PYTHON.others(
        ("PYENV_ROOT", ".pyenv"),
        ("versions", "bin/python3"),
        understood,
    )
}

/// The functions of Python's in a stack, from the root, without where those without a name are defined.
fn functions(stack: &Stack) -> Vec<String> {
    let names = PYTHON
        .functions(stack)
        .map(|frame| frame.split_once(" (").map_or(frame, |(name, _)| name));
    names.map(str::to_owned).collect()
}

#[kernel_test]
fn shares_of_python_functions_are_as_measured() {
    let python = require!(own_python());
    let folded = python.check_shares("shares.py");
    let chain = ["main", "measured", "long_phase", "burn"];
    assert!(folded.any(|stack| stack.has_chain(&chain)), "{folded}");
    // The interpreter's loop is shown only if it is asked for.
    let with_loop = folded.only(|stack| stack.has("_PyEval_EvalFrameDefault"));
    let with_loop: Vec<_> = with_loop.collect();
    assert!(with_loop.is_empty(), "{with_loop:#?}");
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_python_program_allows() {
    let python = require!(own_python());
    check_grammar(&python, python.start("chains.py", &[]), 4.0);
}

#[kernel_test]
fn fifty_random_stops_are_as_the_interpreter_says() {
    let python = require!(own_python());
    check_grammar(&python, python.start("stops.py", &[]), 5.0);
}

/// Checks that the stacks of a program, for so long of its CPU time, are chains that it allows.
fn check_grammar(python: &Interpreter, workload: Workload, seconds: f64) {
    let folded = annotated(&workload, seconds);
    let grammar = Grammar::of(&workload.stop());
    // Before 3.11, functions do not know what they are defined in.
    let is_qualified = Command::new(python.command)
        .args(["-c", "import sys; sys.exit(sys.version_info < (3, 11))"])
        .status()
        .expect("it runs")
        .success();
    if is_qualified {
        grammar.check(&folded, functions);
    } else {
        grammar.unqualified('.').check(&folded, functions);
    }
}

#[kernel_test]
fn chains_are_allowed_in_every_other_version_of_python_here() {
    for python in require!(other_pythons()) {
        check_grammar(&python, python.start("chains.py", &[]), 2.0);
    }
}

#[kernel_test]
fn an_interpreter_that_runs_another_is_shown_behind_it() {
    let mut pythons = vec![require!(own_python())];
    pythons.extend(other_pythons().unwrap_or_default());
    for python in pythons {
        check_grammar(&python, python.start("interpreters.py", &[]), 2.0);
    }
}

#[kernel_test]
fn greenlets_have_their_own_chains() {
    let python = require!(own_python());
    let has_greenlets = Command::new(python.command)
        .args(["-c", "import greenlet"])
        .output()
        .is_ok_and(|output| output.status.success());
    require!(
        has_greenlets
            .then_some(())
            .ok_or("greenlet is not installed for Python")
    );
    // It is where `-S` does not look.
    let workload = Workload::start(Command::new(python.command).arg(source("python/greenlets.py")));
    check_grammar(&python, workload, 2.0);
}

#[kernel_test]
fn processes_that_python_forks_have_their_chains() {
    let python = require!(own_python());
    let folded = PYTHON.run(Path::new(python.command), "-f -F 997", "pool.py");
    let chain = ["worker", "mapstar", "work", "burn"];
    let share = folded.share_among(|stack| stack.has("burn"), |stack| stack.has_chain(&chain));
    assert!(share > ALL_BUT_A_FEW, "{share} in {folded}");
    assert!(folded.share(|stack| stack.has("burn")) > 0.5, "{folded}");
}

#[kernel_test]
fn nine_hundred_python_functions_are_whole_and_five_thousand_are_marked() {
    let python = require!(own_python());
    python.check_depths("deep.py", "descend");
}

#[kernel_test]
fn python_that_runs_for_20_ms_has_its_names() {
    let python = require!(own_python());
    let folded = PYTHON.run(Path::new(python.command), "-f -F 1997", "short.py");
    assert!(folded.any(|stack| stack.has("brief_work")), "{folded}");
}

#[kernel_test]
fn functions_that_are_made_and_dropped_never_have_each_other_s_names() {
    let python = require!(own_python());
    let workload = python.start("dropped.py", &[]);
    let folded = profile("-f -F 1997 -d 3", &workload).folded();
    let number = |stack: &Stack, prefix: &str| -> Option<String> {
        let numbered = stack
            .frames
            .iter()
            .find_map(|frame| frame.strip_prefix(prefix));
        numbered.map(str::to_owned)
    };
    let mut told = 0;
    for stack in &folded.stacks {
        let (made, tells) = (number(stack, "made_"), number(stack, "tell_"));
        if tells.is_some() {
            assert_eq!(made, tells, "{stack:?}");
            told += stack.weight;
        }
    }
    assert!(told > folded.total() / 4, "{told} in {folded}");
}

#[kernel_test]
fn lines_are_those_that_run_in_python() {
    let python = require!(own_python());
    let workload = python.start("lines.py", &[]);
    let folded = profile("-f -F 997 -d 1 --lines", &workload).folded();
    let on_line =
        folded.share(|stack| stack.mentions("lines.py:7") || stack.mentions("lines.py:6"));
    assert!(on_line > NEARLY_ALL, "{on_line} in {folded}");
    assert!(
        folded.share(|stack| stack.mentions("lines.py:11")) > NEARLY_ALL,
        "{folded}"
    );
}

#[kernel_test]
fn python_s_own_frames_are_shown_if_they_are_asked_for() {
    let python = require!(own_python());
    let workload = python.start("lines.py", &[]);
    let is_loop = |stack: &Stack| stack.has("_PyEval_EvalFrameDefault");
    let all = profile("-f -F 997 -d 1 --interpreter-frames", &workload).folded();
    assert!(all.share(is_loop) > NEARLY_ALL, "{all}");
    assert!(all.share(|stack| stack.has("burn")) > NEARLY_ALL, "{all}");
    let native = profile("-f -F 997 -d 1 --no-runtimes", &workload).folded();
    assert!(!native.any(|stack| stack.has("burn")), "{native}");
    assert!(native.any(is_loop), "{native}");
}

#[kernel_test]
fn python_s_functions_are_shown_behind_code_that_cannot_be_unwound() {
    let python = require!(own_python());
    let workload = python.start("broken.py", &[]);
    let folded = Invocation::new("-f -F 997")
        .run_for_cpu_time(&workload, 2.0)
        .folded();
    let is_marked =
        |stack: &Stack| stack.has("[no frame pointer]") || stack.has("[unwind info not loaded]");
    let share = folded.share_among(is_marked, |stack| {
        stack.has_chain(&["main", "in_made_code"])
    });
    assert!(share > ALL_BUT_A_FEW, "{share} in {folded}");
    assert!(folded.share(is_marked) > 0.3, "{folded}");
    assert!(
        folded.any(|stack| stack.has_chain(&["main", "burn"])),
        "{folded}"
    );
}

#[kernel_test]
fn raw_recordings_keep_python_s_names() {
    let python = require!(own_python());
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let raw = folder.path().join("python.fbpf");
    let workload = python.start("lines.py", &[]);
    Invocation::new("-F 997 -d 1")
        .flag("-p", workload.pid())
        .flag("-o", raw.display())
        .run()
        .expect_code(0);
    drop(workload);
    let rendered = Invocation::new(&format!("render {} -f", raw.display()))
        .run()
        .expect_code(0)
        .folded();
    let share = rendered.share(|stack| stack.has("burn"));
    assert!(share > NEARLY_ALL, "{share} in {rendered}");
}
