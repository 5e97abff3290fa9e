//! The functions that LuaJIT runs, in its interpreter and in machine code: whose truth is known, in every way in which they come to
//! run, deep ones.

use std::fs;

use flame_bpf_tests::{
    Interpreter, NEARLY_ALL, Stack, Workload, defined_functions, is_of, kernel_test, profile,
    require, source, tool,
};

/// Without its compiler.
const LUAJIT: Interpreter = Interpreter {
    command: "luajit",
    arguments: &["-joff"],
    folder: "lua",
    suffix: "_[luajit]",
};

/// With it.
const COMPILING: Interpreter = Interpreter {
    arguments: &["-jon"],
    ..LUAJIT
};

/// The line on which `chains.lua` defines what all of its functions run.
fn burn_line() -> String {
    let text = fs::read_to_string(source("lua/chains.lua")).expect("it is there");
    let line = text.lines().position(|line| line == "function burn()");
    (line.expect("it is defined") + 1).to_string()
}

/// The functions of LuaJIT's in a stack, from the root, without where they are defined; those without a name with their line.
/// One that is first seen behind a tail call has the name of the function that made the call, and a line of its own.
fn functions(stack: &Stack) -> Vec<String> {
    let burn = burn_line();
    let names = LUAJIT.functions(stack).map(|frame| {
        let (name, place) = frame.rsplit_once(" (").unwrap_or((frame, ""));
        match place.rsplit_once(':') {
            Some((_, line)) if name == "<anonymous>" => {
                format!("{name}:{}", line.trim_end_matches(')'))
            }
            Some((_, line)) if name == "tail_called" && line.trim_end_matches(')') == burn => {
                "burn".to_owned()
            }
            _ => name.to_owned(),
        }
    });
    names.collect()
}

#[kernel_test]
fn shares_of_interpreted_luajit_functions_are_as_measured() {
    require!(tool("luajit"));
    LUAJIT.check_shares_of("shares.lua", &["5"], Workload::stop_by_itself);
}

#[kernel_test]
fn shares_of_compiled_luajit_functions_are_as_measured() {
    require!(tool("luajit"));
    COMPILING.check_shares_of("shares.lua", &["5"], Workload::stop_by_itself);
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_luajit_program_allows() {
    require!(tool("luajit"));
    LUAJIT.check_chains("chains.lua", 4.0, functions);
}

#[kernel_test]
fn fifty_random_stops_are_as_luajit_says() {
    require!(tool("luajit"));
    // The places are said before anything has run often enough to be compiled.
    for luajit in [LUAJIT, COMPILING] {
        luajit.check_chains("stops.lua", 4.0, |stack| {
            defined_functions(stack, luajit.suffix)
        });
    }
}

#[kernel_test]
fn nine_hundred_luajit_functions_are_whole_and_five_thousand_are_marked() {
    require!(tool("luajit"));
    LUAJIT.check_depths("deep.lua", "descend");
}

#[kernel_test]
fn lines_are_those_that_run_in_luajit() {
    require!(tool("luajit"));
    LUAJIT.check_lines("lines.lua", &["lines.lua:6", "lines.lua:12"]);
}

#[kernel_test]
fn machine_code_of_luajit_has_the_functions_that_it_runs() {
    require!(tool("luajit"));
    let workload = COMPILING.start("lines.lua", &[]);
    let folded = profile("-f -F 997 -d 1", &workload).folded();
    let share = folded.share(|stack| {
        let has = |function| stack.frames.iter().any(|frame| is_of(frame, function));
        has("<main>") && has("burn") && stack.has("main")
    });
    assert!(share > NEARLY_ALL, "{share} in {folded}");
}
