//! Complete user stacks of programs without frame pointers, however they are built.
//!
//! A stack counts as complete if it begins at `_start`, goes on along the chain that the program's source
//! tells of, and ends somewhere on it. One frame more or less anywhere is a failure.

use flame_bpf_tests::{
    Folded, Invocation, Program, Recipe, Stack, TWELVE, compiles_32_bit, kernel_test, require, tool,
};

/// Profiles a program that does its work under `arguments`.
fn profile(program: &Program, flags: &str, arguments: &[&str]) -> Folded {
    let workload = program.start(arguments);
    Invocation::new("-f -U -F 997 -d 1")
        .flag("-p", workload.pid())
        .args(flags)
        .run()
        .expect_code(0)
        .folded()
}

/// Once with the time at the end of the chain, and once with most of it in calls and returns.
fn assert_twelve(recipe: Recipe) {
    let program = recipe.make();
    for turns in ["100000", "40"] {
        profile(&program, "", &[turns]).assert_complete(&TWELVE);
    }
}

#[kernel_test]
fn a_position_independent_program_is_walked_to_its_root() {
    assert_twelve(Recipe::c("chain").compiled("-fPIE").linked("-pie"));
}

#[kernel_test]
fn a_program_at_a_fixed_address_is_walked_to_its_root() {
    assert_twelve(Recipe::c("chain").compiled("-fno-pie").linked("-no-pie"));
}

#[kernel_test]
fn a_static_program_is_walked_to_its_root() {
    assert_twelve(Recipe::c("chain").linked("-static"));
}

#[kernel_test]
fn a_static_position_independent_program_is_walked_to_its_root() {
    let recipe = Recipe::c("chain").compiled("-fPIE");
    assert_twelve(recipe.linked("-static-pie"));
}

#[kernel_test]
fn a_program_optimized_for_size_is_walked_to_its_root() {
    assert_twelve(Recipe::c("chain").compiled("-Os -fcf-protection=none"));
}

#[kernel_test]
fn an_unoptimized_program_is_walked_to_its_root() {
    assert_twelve(Recipe::c("chain").compiled("-O0 -fomit-frame-pointer"));
}

#[kernel_test]
fn a_program_with_frame_pointers_is_walked_to_its_root() {
    assert_twelve(Recipe::c("chain").compiled("-fno-omit-frame-pointer"));
}

#[kernel_test]
fn a_program_linked_by_lld_is_walked_to_its_root() {
    require!(tool("ld.lld"));
    assert_twelve(Recipe::c("chain").linked("-fuse-ld=lld"));
}

#[kernel_test]
fn frames_of_a_hundred_kilobytes_are_walked() {
    assert_twelve(Recipe::c("chain").compiled("-DROOM=100000"));
}

/// The library of musl says next to nothing about its own functions, so the chain's callers may be unknown.
fn assert_twelve_above_musl(recipe: Recipe) {
    let program = recipe.by("musl-gcc").make();
    for turns in ["100000", "40"] {
        let folded = profile(&program, "", &[turns]);
        let inside = |stack: &Stack| stack.ends_along(&TWELVE);
        assert!(
            folded.stacks.iter().all(inside),
            "not the chain alone in {folded}"
        );
        assert!(folded.any(|stack| stack.has_chain(&TWELVE)), "{folded}");
        let honest = |stack: &Stack| {
            matches!(
                stack.mark(),
                None | Some("[no unwind info]" | "[no frame pointer]")
            )
        };
        assert!(folded.stacks.iter().all(honest), "{folded}");
    }
}

#[kernel_test]
fn a_program_with_musl_is_walked_to_its_root() {
    require!(tool("musl-gcc"));
    assert_twelve_above_musl(Recipe::c("chain"));
}

#[kernel_test]
fn a_static_program_with_musl_is_walked_to_its_root() {
    require!(tool("musl-gcc"));
    assert_twelve_above_musl(Recipe::c("chain").linked("-static"));
}

#[kernel_test]
fn stripped_programs_are_walked_and_named_by_their_debug_files() {
    for link in ["-pie", "-static", "-static-pie"] {
        let program = Recipe::c("chain").compiled("-fPIE").linked(link).make();
        let split = program.with_debug_file();
        profile(&split, "", &["40"]).assert_complete(&TWELVE);
    }
}

/// The depths of the stacks of `chain` below its process, and each depth's share.
fn depths(program: &Program) -> Vec<f64> {
    let folded = profile(program, "", &["100000"]);
    assert!(
        folded.stacks.iter().all(|stack| stack.mark().is_none()),
        "{folded}"
    );
    let share = |depth| folded.share(|stack| stack.frames.len() == depth);
    (0..32).map(share).collect()
}

#[kernel_test]
fn stripped_programs_have_stacks_as_deep_as_named_ones() {
    for link in ["-pie", "-static"] {
        let program = Recipe::c("chain").linked(link).make();
        for (depth, (named, nameless)) in depths(&program)
            .into_iter()
            .zip(depths(&program.stripped()))
            .enumerate()
        {
            // Two recordings, each with the chance of some thousand samples.
            assert!(
                (named - nameless).abs() < 0.05,
                "{link}: {nameless:.3} of the stacks are {depth} deep instead of {named:.3}"
            );
        }
    }
}

#[kernel_test]
fn a_recursion_of_a_thousand_frames_is_complete() {
    let program = Recipe::c("deep").make();
    let steps: Vec<String> = (0..1000)
        .map(|step| format!("step_{}", step % 16))
        .collect();
    let chain: Vec<&str> = ["main"]
        .into_iter()
        .chain(steps.iter().map(String::as_str))
        .chain(["bottom", "burn"])
        .collect();
    profile(&program, "", &["1000"]).assert_complete(&chain);
}

#[kernel_test]
fn a_recursion_beyond_the_limit_is_marked_and_keeps_its_leaves() {
    let folded = profile(&Recipe::c("deep").make(), "", &["2000"]);
    let stack = folded.heaviest();
    assert_eq!(stack.mark(), Some("[truncated]"), "{:?}", stack.frames);
    // Process, mark, and all that is kept of a stack.
    assert_eq!(stack.frames.len(), 2 + 1024);
    assert!(stack.has_chain(&["bottom", "burn"]));
    let first = stack.frames[2]
        .strip_prefix("step_")
        .map(str::parse::<usize>);
    let Some(Ok(first)) = first else {
        panic!("{:?} is the outermost frame", stack.frames[2]);
    };
    let kept = &stack.frames[2..stack.frames.len() - 2];
    for (place, frame) in kept.iter().enumerate() {
        assert_eq!(*frame, format!("step_{}", (first + place) % 16));
    }
}

/// Both with frame pointers, where a walker that knows nothing else loses the caller, and without.
#[kernel_test]
fn callers_of_leaf_functions_and_of_the_c_library_are_found() {
    for flags in [
        "-fno-builtin",
        "-fno-builtin -fno-omit-frame-pointer -momit-leaf-frame-pointer",
    ] {
        let folded = profile(&Recipe::c("leaves").compiled(flags).make(), "", &[]);
        for stack in &folded.stacks {
            assert!(stack.begins_at_start(), "{:?} in {folded}", stack.frames);
            let main = stack.position("main").expect("it begins at the start");
            match &stack.frames[main..] {
                [_] => {}
                [_, caller] | [_, caller, _] => assert!(
                    ["call_leaf", "count_letters", "copy_letters"].contains(&caller.as_str()),
                    "{flags}: nobody calls {:?} in {folded}",
                    stack.frames
                ),
                _ => panic!("{flags}: {:?} is too deep, in {folded}", stack.frames),
            }
        }
        for caller in ["call_leaf", "count_letters", "copy_letters"] {
            let has_callee = |stack: &Stack| stack.has(caller) && stack.leaf() != caller;
            // That there are any is the point: a caller whose callee is never seen would prove nothing.
            assert!(
                folded.share(has_callee) > 0.02,
                "{flags}: {caller} calls nothing in {folded}"
            );
        }
    }
}

#[kernel_test]
fn stacks_cut_by_forced_frame_pointers_are_marked() {
    let folded = profile(&Recipe::c("chain").make(), "--call-graph fp", &["100000"]);
    let marked = folded.marked("[no frame pointer]");
    // Most of the chain's functions have no frame pointer; some are crossed by luck.
    assert!(marked > 0.5, "{marked:.3} is marked in {folded}");
    folded.assert_honest(&TWELVE);
}

#[kernel_test]
fn stacks_by_forced_tables_are_complete() {
    let program = Recipe::c("chain").make();
    profile(&program, "--call-graph dwarf", &["40"]).assert_complete(&TWELVE);
    profile(&program, "--call-graph auto", &["40"]).assert_complete(&TWELVE);
}

#[kernel_test]
fn the_first_samples_of_a_process_are_complete() {
    let program = Recipe::c("chain").make();
    for _ in 0..5 {
        let workload = program.start(&[]);
        let folded = flame_bpf_tests::profile("-f -U -F 2999 -d 0.2", &workload).folded();
        folded.assert_complete(&TWELVE);
    }
}

#[kernel_test]
fn a_32_bit_program_is_refused_cleanly() {
    require!(compiles_32_bit());
    let program = Recipe::c("chain").compiled("-m32").linked("-m32").make();
    let folded = profile(&program, "", &["100000"]);
    let marked = folded.marked("[32-bit program]");
    // All but the start, of which the kernel does not know yet that it is of 32 bits.
    assert!(marked > 0.95, "{marked:.3} is marked in {folded}");
    folded.assert_honest(&TWELVE);
}
