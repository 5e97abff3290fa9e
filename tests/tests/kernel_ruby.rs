//! The functions that Ruby runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones.

use std::process::Command;

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Grammar, Interpreter, NEARLY_ALL, Stack, kernel_test, profile, require, tool,
};

/// Without the machine's own packages.
const RUBY: Interpreter = Interpreter {
    command: "ruby",
    arguments: &["--disable=gems"],
    folder: "ruby",
    suffix: "_[rb]",
};

/// The functions of Ruby's in a stack, from the root, without where they are defined: `block (2 levels) in <main>`.
fn functions(stack: &Stack) -> Vec<String> {
    let names = RUBY.functions(stack).map(|frame| {
        // What is evaluated has `(eval)` for a file.
        let end = frame.find(" ((eval)").or_else(|| frame.rfind(" ("));
        frame[..end.unwrap_or(frame.len())].to_owned()
    });
    names.collect()
}

#[kernel_test(timing)]
fn shares_of_ruby_functions_are_as_measured() {
    require!(tool("ruby"));
    let folded = RUBY.check_shares("shares.rb");
    // The interpreter's loop is shown only if it is asked for, or runs nothing: when it is about to return.
    let without = folded.share(|stack| !stack.has("rb_vm_exec"));
    assert!(without > ALL_BUT_A_FEW, "{without} in {folded}");
}

#[kernel_test]
fn every_stack_is_a_chain_that_a_ruby_program_allows() {
    require!(tool("ruby"));
    let workload = RUBY.start("chains.rb", &[]);
    let folded = profile("-f -F 1997 -d 4 --annotate", &workload).folded();
    Grammar::of(&workload.stop()).check(&folded, |stack| {
        let functions = functions(stack);
        // Threads and fibers have stacks of their own, which begin and end without Ruby.
        if functions.is_empty() && !stack.has("ruby_run_node") {
            return vec![String::new()];
        }
        functions
    });
}

/// Whether there is a Ruby with this compiler.
fn compiles(option: &str) -> Result<(), String> {
    let ruby = tool("ruby")?;
    let ran = Command::new(ruby).args([option, "-e", "1"]).output();
    match ran.is_ok_and(|output| output.status.success()) {
        true => Ok(()),
        false => Err(format!("this ruby does not understand {option}")),
    }
}

#[kernel_test]
fn functions_that_a_compiler_of_ruby_s_made_are_shown() {
    require!(compiles("--yjit"));
    const COMPILED: Interpreter = Interpreter {
        arguments: &["--disable=gems", "--yjit", "--yjit-call-threshold=2"],
        ..RUBY
    };
    let workload = COMPILED.start("compiled.rb", &[]);
    let folded = profile("-f -U -F 997 -d 1 --annotate", &workload).folded();
    assert!(folded.any(|stack| stack.mentions("[anon")), "{folded}");
    let chain = ["<main>", "outer", "block in outer", "inner"];
    let shown = folded.share(|stack| functions(stack) == chain);
    assert!(shown > NEARLY_ALL, "{folded}");
}

#[kernel_test]
fn nine_hundred_ruby_functions_are_whole_and_five_thousand_are_marked() {
    require!(tool("ruby"));
    RUBY.check_depths("deep.rb", "descend");
}

#[kernel_test]
fn lines_are_those_that_run_in_ruby() {
    require!(tool("ruby"));
    let workload = RUBY.start("lines.rb", &[]);
    let folded = profile("-f -F 997 -d 1 --lines", &workload).folded();
    let on_line = folded.share(|stack| stack.mentions("lines.rb:7"));
    assert!(on_line > NEARLY_ALL, "{on_line} in {folded}");
    assert!(
        folded.any(|stack| stack.mentions("lines.rb:13")),
        "{folded}"
    );
}
