//! The functions that PUC Lua runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones, and short-lived ones. Each with 5.4 and 5.3.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flame_bpf_tests::{
    Grammar, Invocation, NEARLY_ALL, Run, Stack, Workload, annotated, defined_functions,
    kernel_test, require, source, tool,
};

/// As in `kernel_on_cpu`: three standard deviations at 6,000 samples.
const TOLERANCE: f64 = 0.02;

/// Suffix of the names of Lua's functions with `--annotate`.
const SUFFIX: &str = "_[lua]";

/// Those of luaenv that are understood: what other compilers made of the interpreter's loop.
fn other_luas() -> Result<Vec<PathBuf>, String> {
    let home = env::var_os("HOME").unwrap_or_default();
    let root =
        env::var_os("LUAENV_ROOT").map_or_else(|| Path::new(&home).join(".luaenv"), PathBuf::from);
    let versions =
        fs::read_dir(root.join("versions")).map_err(|error| format!("luaenv: {error}"))?;
    let understood = |name: &str| name.starts_with("5.3.") || name.starts_with("5.4.");
    let found: Vec<PathBuf> = versions
        .flatten()
        .filter(|version| understood(&version.file_name().to_string_lossy()))
        .map(|version| version.path().join("bin/lua"))
        .collect();
    match found.is_empty() {
        true => Err("luaenv has no version of Lua that is understood".to_owned()),
        false => Ok(found),
    }
}

fn start(lua: impl AsRef<OsStr>, name: &str, arguments: &[&str]) -> Workload {
    let script = source(&format!("lua/{name}"));
    Workload::start(Command::new(lua).arg(script).args(arguments))
}

fn record(flags: &str, workload: &Workload) -> Run {
    Invocation::new(flags)
        .flag("-p", workload.pid())
        .run()
        .expect_no_panic()
        .expect_code(0)
}

/// Whether a frame is of a function, wherever that is defined.
fn is_of(frame: &str, function: &str) -> bool {
    frame
        .strip_prefix(function)
        .is_some_and(|rest| rest.starts_with(" ("))
}

/// The functions of Lua's in a stack, from the root, without where they are defined; those without a name with their line.
fn functions(stack: &Stack) -> Vec<String> {
    let functions = stack
        .frames
        .iter()
        .filter_map(|frame| frame.strip_suffix(SUFFIX));
    let names = functions.map(|frame| {
        let (name, place) = frame.rsplit_once(" (").unwrap_or((frame, ""));
        match place.rsplit_once(':') {
            Some((_, line)) if name == "<anonymous>" => {
                format!("{name}:{}", line.trim_end_matches(')'))
            }
            _ => name.to_owned(),
        }
    });
    names.collect()
}

fn check_shares(lua: impl AsRef<OsStr>) {
    let workload = start(lua, "shares.lua", &["8"]);
    let folded = record("-f -F 997 -d 6", &workload).folded();
    let shares = workload.stop_by_itself().shares();
    let has = |stack: &Stack, phase: &str| stack.frames.iter().any(|frame| is_of(frame, phase));
    for (phase, truth) in &shares {
        let shown = folded.share_among(
            |stack| shares.iter().any(|(phase, _)| has(stack, phase)),
            |stack| has(stack, phase),
        );
        assert!(
            (shown - truth).abs() < TOLERANCE,
            "{phase}: {shown}, {truth} in {folded}"
        );
    }
}

fn check_grammar(lua: impl AsRef<OsStr>) {
    let workload = start(lua, "chains.lua", &[]);
    let folded = annotated(&workload, 4.0);
    Grammar::of(&workload.stop()).check(&folded, functions);
}

fn check_stops(lua: &str) {
    let workload = start(lua, "stops.lua", &[]);
    let folded = annotated(&workload, 4.0);
    Grammar::of(&workload.stop()).check(&folded, |stack| defined_functions(stack, SUFFIX));
}

fn check_depth(lua: &str) {
    for (depth, is_whole) in [("900", true), ("5000", false)] {
        let workload = start(lua, "deep.lua", &[depth]);
        let folded = record("-f -F 997 -d 1", &workload).folded();
        let stack = folded.heaviest();
        let calls = stack
            .frames
            .iter()
            .filter(|frame| is_of(frame, "descend"))
            .count();
        assert_eq!(stack.has("[truncated]"), !is_whole, "{stack:?}");
        if is_whole {
            assert_eq!(calls, 901, "{stack:?}");
        } else {
            assert!((1000..=1024).contains(&calls), "{calls} in {stack:?}");
        }
    }
}

fn check_lines(lua: &str) {
    let workload = start(lua, "lines.lua", &[]);
    let folded = record("-f -F 997 -d 1 --lines", &workload).folded();
    for line in ["lines.lua:6", "lines.lua:12"] {
        let on_line = folded.share(|stack| stack.mentions(line));
        assert!(on_line > NEARLY_ALL, "{line}: {on_line} in {folded}");
    }
}

#[kernel_test(timing)]
fn shares_of_lua_5_4_functions_are_as_measured() {
    require!(tool("lua5.4"));
    check_shares("lua5.4");
}

#[kernel_test(timing)]
fn shares_of_lua_5_3_functions_are_as_measured() {
    require!(tool("lua5.3"));
    check_shares("lua5.3");
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_lua_5_4_program_allows() {
    require!(tool("lua5.4"));
    check_grammar("lua5.4");
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_lua_5_3_program_allows() {
    require!(tool("lua5.3"));
    check_grammar("lua5.3");
}

#[kernel_test]
fn fifty_random_stops_are_as_lua_5_4_says() {
    require!(tool("lua5.4"));
    check_stops("lua5.4");
}

#[kernel_test]
fn fifty_random_stops_are_as_lua_5_3_says() {
    require!(tool("lua5.3"));
    check_stops("lua5.3");
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_program_allows_with_every_lua_of_luaenv() {
    for lua in require!(other_luas()) {
        check_grammar(lua);
    }
}

#[kernel_test(timing)]
fn shares_of_functions_are_as_measured_with_every_lua_of_luaenv() {
    for lua in require!(other_luas()) {
        check_shares(lua);
    }
}

#[kernel_test]
fn nine_hundred_lua_functions_are_whole_and_five_thousand_are_marked() {
    for lua in ["lua5.4", "lua5.3"] {
        require!(tool(lua));
        check_depth(lua);
    }
}

#[kernel_test]
fn lines_are_those_that_run_in_lua() {
    for lua in ["lua5.4", "lua5.3"] {
        require!(tool(lua));
        check_lines(lua);
    }
}

#[kernel_test]
fn lua_that_runs_for_20_ms_has_its_functions() {
    let lua = require!(tool("lua5.4"));
    let script = source("lua/short.lua");
    let script = script.to_str().expect("the path is text");
    let folded = Invocation::new("-f -F 1997")
        .command(&lua, &[script])
        .run()
        .expect_no_panic()
        .expect_code(0)
        .folded();
    // Its name at the call is read from the process, which may be gone.
    assert!(
        folded.any(|stack| stack.mentions("short.lua:3")),
        "{folded}"
    );
}

#[kernel_test]
fn the_interpreter_s_own_frames_are_unnamed_only_where_they_are_shown() {
    require!(tool("lua5.4"));
    // Debian's has no symbols.
    let workload = start("lua5.4", "deep.lua", &["20"]);
    for (flags, is_shown) in [("", false), ("--interpreter-frames", true)] {
        let run = record(&format!("-f -F 997 -d 1 {flags}"), &workload);
        let mut frames = run
            .folded()
            .stacks
            .into_iter()
            .flat_map(|stack| stack.frames);
        assert_eq!(frames.any(|frame| frame.starts_with("[lua")), is_shown);
        assert_eq!(run.stderr.contains("unnamed: "), is_shown, "{}", run.stderr);
    }
}
