//! The functions that perl runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones, short-lived ones, and those that are made and dropped.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Interpreter, Recipe, Stack, kernel_test, profile, require, tool,
};

const PERL: Interpreter = Interpreter {
    command: "perl",
    arguments: &[],
    folder: "perl",
    suffix: "_[perl]",
};

/// Those of perlbrew, which are without ithreads unless they were asked for.
fn other_perls() -> Result<Vec<Interpreter>, String> {
    let root = ("PERLBREW_ROOT", "perl5/perlbrew");
    PERL.others(root, ("perls", "bin/perl"), |name| {
        let version = name.strip_prefix("perl-5.").unwrap_or_default();
        ["36.", "38.", "40.", "42."]
            .iter()
            .any(|minor| version.starts_with(minor))
    })
}

/// The functions of perl's in a stack, from the root, without where those without a name are defined, and without the
/// numbers of evals.
fn functions(stack: &Stack) -> Vec<String> {
    let names = PERL.functions(stack).map(|frame| {
        if frame.starts_with("(eval ") {
            return "(eval)";
        }
        frame.split_once(" (").map_or(frame, |(name, _)| name)
    });
    names.map(str::to_owned).collect()
}

#[kernel_test]
fn shares_of_perl_subs_are_as_measured() {
    require!(tool("perl"));
    let folded = PERL.check_shares("shares.pl");
    // The interpreter's loop is shown only if it is asked for, or runs nothing but a block of `sort`, which has no name.
    let without =
        folded.share(|stack| !(stack.has("main::long_phase") && stack.has("Perl_runops_standard")));
    assert!(without > ALL_BUT_A_FEW, "{without} in {folded}");
}

#[kernel_test]
fn every_stack_of_perl_is_a_chain_that_the_program_allows() {
    require!(tool("perl"));
    check_chains(&PERL, "chains.pl");
}

#[kernel_test]
fn fifty_random_stops_are_as_perl_says_in_a_signal_handler() {
    require!(tool("perl"));
    check_chains(&PERL, "stops.pl");
}

#[kernel_test]
fn perl_that_exports_nothing_is_recognized_in_programs_that_are_stripped() {
    for perl in require!(embedded_perls()) {
        check_chains(&perl, "recorded.pl");
        perl.check_depths("deep.pl", "main::descend");
    }
}

/// Programs that the distribution's `libperl.a` is linked into, without exports and symbols: with shared libraries, and without.
fn embedded_perls() -> Result<Vec<Interpreter>, String> {
    let perl = tool("perl")?;
    let tell = "use Config; print qq($Config{archlibexp}/CORE $Config{ccflags})";
    let told = Command::new(perl).args(["-e", tell]).output();
    let told = told.map_err(|error| format!("perl: {error}"))?;
    let flags = String::from_utf8_lossy(&told.stdout).into_owned();
    let archive = Path::new("/usr/lib/x86_64-linux-gnu/libperl.a");
    if !archive.is_file() {
        return Err("libperl-dev is not installed".to_owned());
    }
    let link = format!("{} -lm -lcrypt -ldl -s", archive.display());
    let programs = [("perl-dynamic", ""), ("perl-static", "-static")];
    let programs = programs.map(|(name, how)| {
        let recipe = Recipe::c("perl").compiled(&format!("-I{flags}"));
        let program = recipe.named(name).linked(&format!("{link} {how}")).make();
        PERL.at(program.path().to_owned())
    });
    Ok(programs.into())
}

#[kernel_test]
fn each_thread_of_perl_has_its_own_chain() {
    require!(tool("perl"));
    require!(has_ithreads());
    check_chains(&PERL, "threads.pl");
}

/// Checks that every stack of a program is a chain that it allows.
#[track_caller]
fn check_chains(perl: &Interpreter, program: &str) {
    perl.check_chains(program, 4.0, functions);
}

fn has_ithreads() -> Result<(), String> {
    let loads = Command::new(PERL.command)
        .args(["-Mthreads", "-e", "1"])
        .output();
    match loads {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err("perl has no ithreads".to_owned()),
    }
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_program_allows_with_every_perl_of_perlbrew() {
    for perl in require!(other_perls()) {
        check_chains(&perl, "chains.pl");
        check_chains(&perl, "stops.pl");
        perl.check_depths("deep.pl", "main::descend");
    }
}

#[kernel_test]
fn shares_and_lines_are_as_measured_with_every_perl_of_perlbrew() {
    for perl in require!(other_perls()) {
        perl.check_shares("shares.pl");
        perl.check_lines("lines.pl", &["lines.pl:6"]);
    }
}

#[kernel_test]
fn nine_hundred_perl_subs_are_whole_and_five_thousand_are_marked() {
    require!(tool("perl"));
    PERL.check_depths("deep.pl", "main::descend");
}

#[kernel_test]
fn perl_that_runs_for_20_ms_has_its_names() {
    let perl = require!(tool("perl"));
    let folded = PERL.run(&perl, "-f -F 1997", "short.pl");
    assert!(
        folded.any(|stack| stack.has("main::brief_work")),
        "{folded}"
    );
}

#[kernel_test]
fn children_that_perl_forks_for_20_ms_have_their_names() {
    let perl = require!(tool("perl"));
    let folded = PERL.run(&perl, "-f -F 1997", "forks.pl");
    let called = |stack: &Stack| stack.has("main::spawn") && stack.has("main::in_child");
    assert!(folded.any(called), "{folded}");
}

#[kernel_test]
fn perl_subs_that_are_made_and_dropped_do_not_have_each_other_s_names() {
    require!(tool("perl"));
    let workload = PERL.start("dropped.pl", &[]);
    let folded = profile("-f -F 1997 -d 3", &workload).folded();
    let number = |stack: &Stack, prefix: &str| -> Option<u64> {
        let mut frames = stack.frames.iter();
        let name = frames.find_map(|frame| frame.strip_prefix(prefix))?;
        name.trim_end_matches(')').parse().ok()
    };
    let (mut told, mut wrong, mut strings) = (0, Vec::new(), HashSet::new());
    for stack in &folded.stacks {
        let Some(tells) = number(stack, "Made::tell_") else {
            continue;
        };
        let (made, string) = (number(stack, "Made::made_"), number(stack, "(eval "));
        told += stack.weight;
        strings.insert(tells);
        // perl numbers strings as they are run.
        if (made, string) != (Some(tells), Some(tells + 1)) {
            wrong.push(stack);
        }
    }
    assert!(told > folded.total() / 2, "{told} in {folded}");
    assert!(strings.len() > 500, "{}", strings.len());
    assert!(wrong.is_empty(), "{wrong:?} have wrong names in {folded}");
}

#[kernel_test]
fn lines_are_those_that_run_in_perl() {
    require!(tool("perl"));
    PERL.check_lines("lines.pl", &["lines.pl:6", "lines.pl:14"]);
}
