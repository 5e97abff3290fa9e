//! The functions that PUC Lua runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones, and short-lived ones. Each with 5.4 and 5.3.

use flame_bpf_tests::{
    Interpreter, Stack, Workload, defined_functions, kernel_test, profile, require, tool,
};

/// Debian's.
const LUA: Interpreter = Interpreter {
    command: "lua5.4",
    arguments: &[],
    folder: "lua",
    suffix: "_[lua]",
};

/// Debian's of the version before.
const LUA_5_3: Interpreter = Interpreter {
    command: "lua5.3",
    ..LUA
};

/// Those of luaenv that are understood: what other compilers made of the interpreter's loop.
fn other_luas() -> Result<Vec<Interpreter>, String> {
    let understood = |name: &str| name.starts_with("5.3.") || name.starts_with("5.4.");
    LUA.others(
        ("LUAENV_ROOT", ".luaenv"),
        ("versions", "bin/lua"),
        understood,
    )
}

/// The functions of Lua's in a stack, from the root, without where they are defined; those without a name with their line.
fn functions(stack: &Stack) -> Vec<String> {
    let names = LUA.functions(stack).map(|frame| {
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

fn check_shares(lua: &Interpreter) {
    lua.check_shares_of("shares.lua", &["5"], Workload::stop_by_itself);
}

fn check_stops(lua: &Interpreter) {
    lua.check_chains("stops.lua", 4.0, |stack| {
        defined_functions(stack, lua.suffix)
    });
}

#[kernel_test]
fn shares_of_lua_5_4_functions_are_as_measured() {
    require!(tool("lua5.4"));
    check_shares(&LUA);
}

#[kernel_test]
fn shares_of_lua_5_3_functions_are_as_measured() {
    require!(tool("lua5.3"));
    check_shares(&LUA_5_3);
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_lua_5_4_program_allows() {
    require!(tool("lua5.4"));
    LUA.check_chains("chains.lua", 4.0, functions);
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_lua_5_3_program_allows() {
    require!(tool("lua5.3"));
    LUA_5_3.check_chains("chains.lua", 4.0, functions);
}

#[kernel_test]
fn fifty_random_stops_are_as_lua_5_4_says() {
    require!(tool("lua5.4"));
    check_stops(&LUA);
}

#[kernel_test]
fn fifty_random_stops_are_as_lua_5_3_says() {
    require!(tool("lua5.3"));
    check_stops(&LUA_5_3);
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_program_allows_with_every_lua_of_luaenv() {
    for lua in require!(other_luas()) {
        lua.check_chains("chains.lua", 4.0, functions);
    }
}

#[kernel_test]
fn shares_of_functions_are_as_measured_with_every_lua_of_luaenv() {
    for lua in require!(other_luas()) {
        check_shares(&lua);
    }
}

#[kernel_test]
fn nine_hundred_lua_functions_are_whole_and_five_thousand_are_marked() {
    for lua in [LUA, LUA_5_3] {
        require!(tool(lua.command));
        lua.check_depths("deep.lua", "descend");
    }
}

#[kernel_test]
fn lines_are_those_that_run_in_lua() {
    for lua in [LUA, LUA_5_3] {
        require!(tool(lua.command));
        lua.check_lines("lines.lua", &["lines.lua:6", "lines.lua:12"]);
    }
}

#[kernel_test]
fn lua_that_runs_for_20_ms_has_its_functions() {
    let lua = require!(tool("lua5.4"));
    let folded = LUA.run(&lua, "-f -F 1997", "short.lua");
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
    let workload = LUA.start("deep.lua", &["20"]);
    for (flags, is_shown) in [("", false), ("--interpreter-frames", true)] {
        let run = profile(&format!("-f -F 997 -d 1 {flags}"), &workload);
        let mut frames = run
            .folded()
            .stacks
            .into_iter()
            .flat_map(|stack| stack.frames);
        assert_eq!(frames.any(|frame| frame.starts_with("[lua")), is_shown);
        assert_eq!(run.stderr.contains("unnamed: "), is_shown, "{}", run.stderr);
    }
}
