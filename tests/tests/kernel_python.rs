//! The functions that Python runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones, short-lived ones, and those that are made and dropped.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Grammar, Invocation, NEARLY_ALL, Run, Stack, Workload, annotated, kernel_test,
    python, require, source,
};

/// As in `kernel_on_cpu`: three standard deviations at 6,000 samples.
const TOLERANCE: f64 = 0.02;

/// Suffix of the names of Python's functions with `--annotate`.
const SUFFIX: &str = "_[py]";

/// Those of pyenv that are understood.
fn other_pythons() -> Result<Vec<PathBuf>, String> {
    let home = env::var_os("HOME").unwrap_or_default();
    let root =
        env::var_os("PYENV_ROOT").map_or_else(|| Path::new(&home).join(".pyenv"), PathBuf::from);
    let versions =
        fs::read_dir(root.join("versions")).map_err(|error| format!("pyenv: {error}"))?;
    let understood = |name: &str| {
        let minor = name.strip_prefix("3.")?.split('.').next()?;
        // Free-threaded builds are called so.
        let is_free_threaded = name.ends_with('t');
        minor
            .parse()
            .ok()
            .filter(|minor: &u8| (8..=14).contains(minor) && (!is_free_threaded || *minor == 13))
    };
    let found: Vec<PathBuf> = versions
        .flatten()
        .filter(|version| understood(&version.file_name().to_string_lossy()).is_some())
        .map(|version| version.path().join("bin/python3"))
        .collect();
    match found.is_empty() {
        true => Err("pyenv has no version of Python that is understood".to_owned()),
        false => Ok(found),
    }
}

fn start(python: &Path, name: &str, arguments: &[&str]) -> Workload {
    let mut command = Command::new(python);
    let script = source(&format!("python/{name}"));
    Workload::start(command.arg("-S").arg(script).args(arguments))
}

fn record(flags: &str, pid: u32) -> Run {
    Invocation::new(flags)
        .flag("-p", pid)
        .run()
        .expect_no_panic()
        .expect_code(0)
}

/// The functions of Python's in a stack, from the root, without where those without a name are defined.
fn functions(stack: &Stack) -> Vec<String> {
    let functions = stack
        .frames
        .iter()
        .filter_map(|frame| frame.strip_suffix(SUFFIX));
    let names = functions.map(|frame| frame.split_once(" (").map_or(frame, |(name, _)| name));
    names.map(str::to_owned).collect()
}

#[kernel_test(timing)]
fn shares_of_python_functions_are_as_measured() {
    let python = require!(python());
    let workload = start(&python, "shares.py", &[]);
    let folded = record("-f -F 997 -d 6", workload.pid()).folded();
    let shares = workload.stop().shares();
    for (phase, truth) in &shares {
        let shown = folded.share_among(
            |stack| shares.iter().any(|(phase, _)| stack.has(phase)),
            |stack| stack.has(phase),
        );
        assert!(
            (shown - truth).abs() < TOLERANCE,
            "{phase}: {shown}, {truth} in {folded}"
        );
    }
    let chain = ["main", "measured", "long_phase", "burn"];
    assert!(folded.any(|stack| stack.has_chain(&chain)), "{folded}");
    // The interpreter's loop is shown only if it is asked for.
    let is_loop = |stack: &Stack| stack.has("_PyEval_EvalFrameDefault");
    assert!(!folded.any(is_loop), "{folded}");
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_python_program_allows() {
    let python = require!(python());
    check_grammar(&python, start(&python, "chains.py", &[]), 4.0);
}

#[kernel_test]
fn fifty_random_stops_are_as_the_interpreter_says() {
    let python = require!(python());
    check_grammar(&python, start(&python, "stops.py", &[]), 5.0);
}

/// Checks that the stacks of a program, for so long of its CPU time, are chains that it allows.
fn check_grammar(python: &Path, workload: Workload, seconds: f64) {
    let folded = annotated(&workload, seconds);
    let grammar = Grammar::of(&workload.stop());
    // Before 3.11, functions do not know what they are defined in.
    let is_qualified = Command::new(python)
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
        check_grammar(&python, start(&python, "chains.py", &[]), 2.0);
    }
}

#[kernel_test]
fn an_interpreter_that_runs_another_is_shown_behind_it() {
    let mut pythons = vec![require!(python())];
    pythons.extend(other_pythons().unwrap_or_default());
    for python in pythons {
        check_grammar(&python, start(&python, "interpreters.py", &[]), 2.0);
    }
}

#[kernel_test]
fn greenlets_have_their_own_chains() {
    let python = require!(python());
    let has_greenlets = Command::new(&python)
        .args(["-c", "import greenlet"])
        .output()
        .is_ok_and(|output| output.status.success());
    require!(
        has_greenlets
            .then_some(())
            .ok_or("greenlet is not installed for Python")
    );
    // It is where `-S` does not look.
    let workload = Workload::start(Command::new(&python).arg(source("python/greenlets.py")));
    check_grammar(&python, workload, 2.0);
}

#[kernel_test]
fn processes_that_python_forks_have_their_chains() {
    let python = require!(python());
    let script = source("python/pool.py");
    let script = script.to_str().expect("the path is text");
    let folded = Invocation::new("-f -F 997")
        .command(&python, &["-S", script])
        .run()
        .expect_no_panic()
        .expect_code(0)
        .folded();
    let chain = ["worker", "mapstar", "work", "burn"];
    let share = folded.share_among(|stack| stack.has("burn"), |stack| stack.has_chain(&chain));
    assert!(share > ALL_BUT_A_FEW, "{share} in {folded}");
    assert!(folded.share(|stack| stack.has("burn")) > 0.5, "{folded}");
}

#[kernel_test]
fn nine_hundred_python_functions_are_whole_and_five_thousand_are_marked() {
    let python = require!(python());
    for (depth, is_whole) in [("900", true), ("5000", false)] {
        let workload = start(&python, "deep.py", &[depth]);
        let folded = record("-f -F 997 -d 1", workload.pid()).folded();
        let stack = folded.heaviest();
        let calls = stack
            .frames
            .iter()
            .filter(|frame| *frame == "descend")
            .count();
        assert_eq!(stack.has("[truncated]"), !is_whole, "{stack:?}");
        if is_whole {
            assert_eq!(calls, 901, "{stack:?}");
        } else {
            assert!((1000..=1024).contains(&calls), "{calls} in {stack:?}");
        }
    }
}

#[kernel_test]
fn python_that_runs_for_20_ms_has_its_names() {
    let python = require!(python());
    let script = source("python/short.py");
    let script = script.to_str().expect("the path is text");
    let folded = Invocation::new("-f -F 1997")
        .command(&python, &["-S", script])
        .run()
        .expect_no_panic()
        .expect_code(0)
        .folded();
    assert!(folded.any(|stack| stack.has("brief_work")), "{folded}");
}

#[kernel_test]
fn functions_that_are_made_and_dropped_never_have_each_other_s_names() {
    let python = require!(python());
    let workload = start(&python, "dropped.py", &[]);
    let folded = record("-f -F 1997 -d 3", workload.pid()).folded();
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
    let python = require!(python());
    let workload = start(&python, "lines.py", &[]);
    let folded = record("-f -F 997 -d 1 --lines", workload.pid()).folded();
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
    let python = require!(python());
    let workload = start(&python, "lines.py", &[]);
    let is_loop = |stack: &Stack| stack.has("_PyEval_EvalFrameDefault");
    let all = record("-f -F 997 -d 1 --interpreter-frames", workload.pid()).folded();
    assert!(all.share(is_loop) > NEARLY_ALL, "{all}");
    assert!(all.share(|stack| stack.has("burn")) > NEARLY_ALL, "{all}");
    let native = record("-f -F 997 -d 1 --no-runtimes", workload.pid()).folded();
    assert!(!native.any(|stack| stack.has("burn")), "{native}");
    assert!(native.any(is_loop), "{native}");
}

#[kernel_test]
fn python_s_functions_are_shown_behind_code_that_cannot_be_unwound() {
    let python = require!(python());
    let workload = start(&python, "broken.py", &[]);
    let folded = record("-f -F 997 -d 2", workload.pid()).folded();
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
    let python = require!(python());
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let raw = folder.path().join("python.fbpf");
    let workload = start(&python, "lines.py", &[]);
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
