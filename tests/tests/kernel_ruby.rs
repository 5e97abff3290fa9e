//! The functions that Ruby runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones, short-lived ones, and those that lie where others lay.

use std::process::Command;

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Interpreter, NEARLY_ALL, Stack, kernel_test, profile, require, tool,
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
        // Evaluated code has `(eval)` for a file.
        let end = frame.find(" ((eval)").or_else(|| frame.rfind(" ("));
        frame[..end.unwrap_or(frame.len())].to_owned()
    });
    names.collect()
}

#[kernel_test]
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
    RUBY.check_chains("chains.rb", 4.0, |stack| {
        let functions = functions(stack);
        // Threads and fibers have stacks of their own, which begin and end without Ruby.
        if functions.is_empty() && !stack.has("ruby_run_node") {
            return vec![String::new()];
        }
        functions
    });
}

/// A function as Ruby's own account has it: without the class.
fn without_class(function: String) -> String {
    let (part, method) = match function.rsplit_once(" in ") {
        Some((part, method)) => (format!("{part} in "), method),
        None => (String::new(), &*function),
    };
    let method = method.rsplit(['#', '.']).next().unwrap_or(method);
    part + method
}

#[kernel_test]
fn fifty_random_stops_are_as_ruby_says() {
    require!(tool("ruby"));
    RUBY.check_chains("stops.rb", 5.0, |stack| {
        functions(stack).into_iter().map(without_class).collect()
    });
}

#[kernel_test]
fn ruby_that_runs_for_20_ms_has_its_names_and_its_child_too() {
    let ruby = require!(tool("ruby"));
    let folded = RUBY.run(&ruby, "-f -F 1997", "short.rb");
    for function in ["Object#child_work", "Object#parent_work"] {
        let has = |stack: &Stack| stack.has_chain(&[function, "Brief.work"]);
        assert!(folded.any(has), "{function} in {folded}");
    }
}

#[kernel_test]
fn ruby_classes_that_are_made_and_dropped_keep_their_names() {
    require!(tool("ruby"));
    let workload = RUBY.start("dropped.rb", &[]);
    let folded = profile("-f -F 1997 -d 3", &workload).folded();
    let number = |stack: &Stack, begin: &str, end: &str| -> Option<String> {
        let mut frames = stack.frames.iter();
        let number = frames.find_map(|frame| frame.strip_prefix(begin)?.strip_suffix(end));
        number.map(str::to_owned)
    };
    let (mut told, mut wrong) = (0, Vec::new());
    for stack in &folded.stacks {
        let made = number(stack, "Made", "#made");
        if let Some(tells) = number(stack, "Tell", ".tell") {
            told += stack.weight;
            if made != Some(tells) {
                wrong.push(stack);
            }
        }
    }
    assert!(told > folded.total() / 4, "{told} in {folded}");
    // A method whose code lies in all of its parts where that of another class's lay cannot be told from it: the check does
    // not cover the class. Of thousands of classes that are made in the same way it happens to one or two.
    let wrong_weight: u64 = wrong.iter().map(|stack| stack.weight).sum();
    assert!(wrong_weight * 500 <= told, "{wrong:?} of {told}");
}

#[kernel_test]
fn ruby_methods_that_are_made_and_dropped_never_have_each_other_s_names() {
    require!(tool("ruby"));
    for begin in [
        "",
        "a_quite_long_",
        "a_name_that_no_string_has_a_place_for_",
    ] {
        let workload = RUBY.start("redefined.rb", &[begin]);
        let folded = profile("-f -F 1997 -d 3", &workload).folded();
        let number = |stack: &Stack, method: &str| -> Option<String> {
            let begin = format!("Holder#{begin}{method}_");
            let mut frames = stack.frames.iter();
            let number = frames.find_map(|frame| frame.strip_prefix(&begin)?.get(..6));
            number.map(str::to_owned)
        };
        let mut told = 0;
        for stack in &folded.stacks {
            if let Some(tells) = number(stack, "tell") {
                assert_eq!(number(stack, "made"), Some(tells), "{stack:?}");
                told += stack.weight;
            }
        }
        assert!(told > folded.total() / 8, "{told} in {folded}");
    }
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
    let chain = [
        "<main>",
        "Object#outer",
        "block in Object#outer",
        "Object#inner",
    ];
    let shown = folded.share(|stack| functions(stack) == chain);
    assert!(shown > NEARLY_ALL, "{folded}");
}

#[kernel_test]
fn nine_hundred_ruby_functions_are_whole_and_five_thousand_are_marked() {
    require!(tool("ruby"));
    RUBY.check_depths("deep.rb", "Object#descend");
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
