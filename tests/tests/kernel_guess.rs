//! Code that nothing explains and that keeps no frame pointer: its caller is found in the words of the stack, and marked.

use flame_bpf_tests::{Invocation, NEARLY_ALL, Recipe, Run, Stack, kernel_test, require};

const MARK: &str = "[guessed caller]";

/// Whether the workload has machine code for this processor.
fn has_machine_code() -> Result<(), String> {
    if cfg!(target_arch = "x86_64") {
        Ok(())
    } else {
        Err("the workload has no machine code for this architecture".to_owned())
    }
}

fn profile(arguments: &[&str], flags: &str) -> Run {
    let workload = Recipe::c("unnamed").make().start(arguments);
    Invocation::new("-f -U -F 997 -d 1")
        .flag("-p", workload.pid())
        .args(flags)
        .run()
        .expect_code(0)
}

/// The share of stacks that begin at `_start` and in which these functions call each other, a nameless one where it says "*".
fn share_of(run: &Run, chain: &[&str]) -> f64 {
    let is_as = |(frame, wanted): (&String, &&str)| match *wanted {
        "*" => frame.starts_with("[anon"),
        name => frame == name,
    };
    run.folded().share(|stack| {
        let from_root = stack.has("_start")
            && stack
                .frames
                .windows(chain.len())
                .any(|frames| frames.iter().zip(chain).all(is_as));
        // None that is not there: the decoy's call is over.
        from_root && !stack.has("decoy")
    })
}

#[kernel_test]
fn the_caller_of_nameless_code_is_found_in_the_stack() {
    require!(has_machine_code());
    for arguments in [&[][..], &["shared"]] {
        let run = profile(arguments, "");
        let share = share_of(&run, &["main", "keep_calling", MARK, "*"]);
        assert!(share > NEARLY_ALL, "{}", run.folded());
        assert!(run.stderr.contains(MARK), "{}", run.stderr);
    }
}

#[kernel_test]
fn callers_are_found_on_both_sides_of_what_nameless_code_calls() {
    require!(has_machine_code());
    let run = profile(&["back"], "");
    let chain = ["keep_calling", MARK, "*", "called_back"];
    assert!(share_of(&run, &chain) > NEARLY_ALL, "{}", run.folded());
    let run = profile(&["nested"], "");
    let chain = [
        "keep_calling",
        MARK,
        "*",
        "run_again",
        MARK,
        "*",
        "called_back",
    ];
    assert!(share_of(&run, &chain) > NEARLY_ALL, "{}", run.folded());
}

#[kernel_test]
fn no_caller_is_looked_for_where_that_is_not_wanted() {
    require!(has_machine_code());
    for flags in ["--no-guess", "--call-graph dwarf"] {
        let run = profile(&[], flags);
        let folded = run.folded();
        // Between two calls the caller itself runs.
        let is_nameless = |stack: &Stack| stack.mentions("[anon");
        assert!(folded.share(is_nameless) > NEARLY_ALL, "{folded}");
        let has_caller = |stack: &Stack| stack.has(MARK) || stack.has("main");
        assert!(
            !folded.any(|stack| is_nameless(stack) && has_caller(stack)),
            "{folded}"
        );
    }
}
