//! Complete user stacks through code of every origin: signal trampolines, the vDSO, linkage tables, objects
//! whose unwind instructions are in unusual places or missing, frames that were moved.

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Folded, Invocation, NEARLY_ALL, Program, Recipe, Stack, TWELVE, file_contains,
    kernel_test, require,
};
use std::path::Path;

fn profile(program: &Program, arguments: &[&str]) -> Folded {
    let workload = program.start(arguments);
    Invocation::new("-f -U -F 997")
        .run_for_cpu_time(&workload, 1.0)
        .folded()
}

/// Panics unless each stack is complete: first along `below`, then, through one more frame, along `above`.
#[track_caller]
fn assert_through_a_signal(folded: &Folded, below: &[&str], above: &[&str]) {
    let (mut handled, mut torn) = (0, 0);
    for stack in &folded.stacks {
        let shown = || format!("{:?} in {folded}", stack.frames);
        assert_eq!(stack.mark(), None, "{}", shown());
        assert!(stack.begins_at_start(), "{}", shown());
        let main = stack.position("main").expect("it begins at the start");
        let frames = &stack.frames[main..];
        let common = frames.iter().zip(below).take_while(|(a, b)| a == b).count();
        assert!(common > 0, "{}", shown());
        match &frames[common..] {
            // Nothing but the trampoline: on the way back from the handler.
            [] | [_] => {}
            // On the way into the handler, the kernel sets the stack pointer two instructions before the address.
            [_, interrupted] if Some(interrupted) == frames[..common].last() => {
                torn += stack.weight
            }
            [_, handler @ ..] => {
                handled += stack.weight;
                let along = handler.iter().zip(above).all(|(a, b)| a == b);
                assert!(along && handler.len() <= above.len(), "{}", shown());
            }
        }
    }
    assert!(
        torn <= 1,
        "{torn} at two instructions of the kernel's, in {folded}"
    );
    let share = handled as f64 / folded.total() as f64;
    // Signals come often enough to be seen; how often depends on the machine.
    assert!(share > 0.1, "{share:.3} is in the handler, in {folded}");
}

#[kernel_test]
fn the_interrupted_function_stands_below_a_signal_handler() {
    let program = Recipe::c("signals").make();
    for stack in ["usual", "below", "above"] {
        assert_through_a_signal(
            &profile(&program, &[stack]),
            &["main", "outside", "interrupted", "burn"],
            &["on_alarm", "inside", "burn"],
        );
    }
}

#[kernel_test]
fn a_signal_handler_in_a_static_program_is_unwound() {
    assert_through_a_signal(
        &profile(&Recipe::c("signals").linked("-static").make(), &["usual"]),
        &["main", "outside", "interrupted", "burn"],
        &["on_alarm", "inside", "burn"],
    );
}

#[kernel_test]
fn a_function_interrupted_at_its_first_instruction_has_its_caller() {
    let folded = profile(&Recipe::c("edge").make(), &[]);
    assert_through_a_signal(&folded, &["main", "edge"], &["on_trap", "burn"]);
    let share = folded.share_among(|stack| stack.has("on_trap"), |stack| stack.has("edge"));
    assert!(
        share > ALL_BUT_A_FEW,
        "{share:.3} is called by edge in {folded}"
    );
}

#[kernel_test]
fn a_stack_of_makecontext_begins_at_what_it_returns_to() {
    let coroutine = Recipe::c("coroutine");
    for program in [coroutine.make(), coroutine.linked("-static").make()] {
        let folded = profile(&program, &[]);
        // From where swapcontext loads `rsp` to where it pushes the address it returns to, eight
        // instructions on, glibc's unwind information reads the return address one word too high.
        for stack in folded
            .stacks
            .iter()
            .filter(|stack| stack.leaf() != "swapcontext")
        {
            assert_eq!(stack.mark(), None, "{:?} in {folded}", stack.frames);
        }
        let above = |stack: &Stack| stack.leaf() == "burn";
        let whole = folded.share_among(above, |stack| {
            stack.frames[1..] == ["__start_context", "coroutine", "inside", "burn"]
        });
        assert!(whole > ALL_BUT_A_FEW, "{whole:.3} are whole in {folded}");
        let share = folded.share(above);
        assert!(share > 0.5, "the coroutine has {share:.3} of {folded}");
    }
}

/// Panics unless the coroutine of `fcontext.c` stands alone, and its stacks are complete. `names`: whether functions have them.
#[track_caller]
fn assert_begins_at_the_trampoline(program: &Program, names: bool) {
    let folded = profile(program, &[]);
    // Code that hands over has no unwind information, and is a coroutine's or `main`'s.
    let above = |stack: &Stack| {
        let hands_over = stack.leaf().starts_with("jump_fcontext");
        !stack.begins_at_start() && !hands_over && stack.frames.len() > 3
    };
    for stack in folded.stacks.iter().filter(|stack| above(stack)) {
        let shown = || format!("{:?} in {folded}", stack.frames);
        assert_eq!(stack.mark(), None, "{}", shown());
        assert!(stack.frames.len() <= 5, "{}", shown());
        let expected = ["coroutine", "inside", "burn"];
        let is_named = stack.frames[2..]
            .iter()
            .eq(&expected[..stack.frames.len() - 2]);
        assert!(is_named || !names, "{}", shown());
    }
    let share = folded.share(|stack| above(stack) && stack.frames.len() == 5);
    assert!(share > 0.5, "the coroutine has {share:.3} of {folded}");
}

#[kernel_test]
fn a_stack_in_the_manner_of_boost_begins_at_the_trampoline() {
    for protection in ["-fcf-protection=none", "-fcf-protection=full"] {
        let recipe = Recipe::c("fcontext").compiled(protection);
        assert_begins_at_the_trampoline(&recipe.make(), true);
        assert_begins_at_the_trampoline(&recipe.clone().linked("-s").make(), false);
        assert_begins_at_the_trampoline(&recipe.linked("-static").make(), true);
    }
}

#[kernel_test]
fn a_stack_in_the_manner_of_libco_begins_at_what_it_returns_to() {
    let folded = profile(&Recipe::c("cothread").make(), &[]);
    let above = |stack: &Stack| stack.leaf() == "burn";
    let chain = ["crash", "entry", "inside", "burn"];
    let is_whole = |stack: &Stack| stack.mark().is_none() && stack.frames[1..] == chain;
    // The end is read when the first walk comes to it.
    let whole = folded.share_among(above, is_whole);
    assert!(whole > 0.7, "{whole:.3} are whole in {folded}");
    for stack in folded.stacks.iter().filter(|stack| above(stack)) {
        let below = stack.frames.len() - 3;
        let frames = &stack.frames[below..];
        assert_eq!(frames, ["entry", "inside", "burn"], "{folded}");
    }
    let share = folded.share(above);
    assert!(share > 0.5, "the coroutine has {share:.3} of {folded}");
}

/// Whether programs can be linked with Boost.Context.
fn has_boost() -> Result<(), String> {
    let header = "/usr/include/boost/context/detail/fcontext.hpp";
    match Path::new(header).exists() {
        true => Ok(()),
        false => Err("libboost-context-dev is not installed".to_owned()),
    }
}

#[kernel_test]
fn a_stack_of_boost_begins_at_the_trampoline() {
    require!(has_boost());
    let recipe = Recipe::c("fcontext").compiled("-DBOOST");
    assert_begins_at_the_trampoline(&recipe.clone().linked("-lboost_context").make(), true);
    let inside = "-Wl,-Bstatic -lboost_context -Wl,-Bdynamic";
    assert_begins_at_the_trampoline(&recipe.linked(inside).make(), true);
}

#[kernel_test]
fn the_caller_of_the_vdso_is_found() {
    require!(file_contains(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        // The others are read by a system call, and the vDSO only passes the question on.
        &["tsc", "kvm-clock", "arch_sys_counter"]
    ));
    let folded = profile(&Recipe::c("clock").make(), &[]);
    for stack in &folded.stacks {
        assert_eq!(stack.mark(), None, "{:?} in {folded}", stack.frames);
        assert!(stack.begins_at_start(), "{:?} in {folded}", stack.frames);
        if stack.leaf() != "main" {
            assert!(
                stack.has_chain(&["main", "ask_the_time"]),
                "{:?} in {folded}",
                stack.frames
            );
        }
    }
    let inside = folded.share(|stack| stack.mentions("vdso"));
    // It asks for the time and does nothing else; the caller takes some of it.
    assert!(inside > 0.2, "the vDSO has {inside:.3} of {folded}");
}

#[kernel_test]
fn the_caller_of_a_plt_entry_is_found() {
    let library = Recipe::c("tiny").named("libtiny.so").shared().make();
    for (compile, link) in [
        ("-fcf-protection=full", "-Wl,-z,lazy"),
        ("-fcf-protection=none", "-Wl,-z,lazy"),
        ("-fcf-protection=full", "-Wl,-z,now"),
        ("-fno-plt", "-Wl,-z,now"),
    ] {
        let recipe = Recipe::c("linkage").compiled(compile).linked(link);
        let folded = profile(&recipe.with_library(&library).make(), &[]);
        for stack in &folded.stacks {
            let shown = || format!("{compile} {link}: {:?} in {folded}", stack.frames);
            assert_eq!(stack.mark(), None, "{}", shown());
            assert!(stack.begins_at_start(), "{}", shown());
            assert!(
                stack.ends_along(&["main"]) || stack.has_chain(&["main", "call_often"]),
                "{}",
                shown()
            );
            let main = stack.position("main").expect("it begins at the start");
            assert!(stack.frames.len() - main <= 3, "{}", shown());
        }
        let in_table = |stack: &Stack| !["call_often", "tiny"].contains(&stack.leaf());
        let share = folded.share(in_table);
        assert_eq!(
            share > 0.02,
            compile != "-fno-plt",
            "{compile} {link}: {share:.3} is in the table, in {folded}"
        );
    }
}

#[track_caller]
fn assert_twelve(recipe: Recipe) {
    let program = recipe.make();
    for turns in ["100000", "40"] {
        profile(&program, &[turns]).assert_complete(&TWELVE);
    }
}

#[kernel_test]
fn code_in_several_segments_is_unwound() {
    for address in ["0x10000000", "0x70000000"] {
        let recipe = Recipe::c("chain").compiled("-DAPART -fno-pie");
        let place = format!("-no-pie -Wl,--section-start=.text_apart={address}");
        assert_twelve(recipe.linked(&place));
    }
}

#[kernel_test]
fn eh_frame_without_an_index_is_used() {
    assert_twelve(Recipe::c("chain").linked("-Wl,--no-eh-frame-hdr"));
}

#[kernel_test]
fn debug_frame_alone_is_used() {
    let recipe = Recipe::c("chain").compiled("-g -fno-asynchronous-unwind-tables");
    assert_twelve(recipe.clone());
    assert_twelve(recipe.linked("-Wl,--compress-debug-sections=zlib"));
}

/// The chain through `middle`, which `part` holds and which has no unwind instructions.
fn gap(part: &str, flags: &str) -> Program {
    let without = "-fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions";
    let middle = Recipe::c("gap").part(part).compiled(without);
    middle.compiled(flags).make()
}

const GAP: [&str; 5] = ["main", "outer", "middle", "inner", "burn"];

#[kernel_test]
fn a_stack_ends_at_a_function_whose_code_cannot_be_followed() {
    let folded = profile(&gap("gap_moved", ""), &[]);
    folded.assert_honest(&GAP);
    let above = |stack: &Stack| stack.leaf() == "burn";
    let chain = folded.share_among(above, |stack| stack.has_chain(&["middle", "inner", "burn"]));
    assert!(
        chain > ALL_BUT_A_FEW,
        "{chain:.3} reach the middle in {folded}"
    );
    let said = folded.share_among(above, |stack| {
        matches!(
            stack.mark(),
            Some("[no unwind info]" | "[no frame pointer]")
        )
    });
    assert!(said > NEARLY_ALL, "{said:.3} say why in {folded}");
}

#[kernel_test]
fn the_caller_of_a_leaf_whose_code_cannot_be_followed_is_looked_for() {
    let folded = profile(&gap("gap_leaf", ""), &[]);
    let inside = |stack: &Stack| stack.leaf() == "middle";
    let chain = ["main", "outer", "[guessed caller]", "middle"];
    let whole = folded.share_among(inside, |stack| {
        stack.has("_start") && stack.has_chain(&chain)
    });
    assert!(whole > NEARLY_ALL, "{whole:.3} are whole in {folded}");
}

#[kernel_test]
fn a_function_without_unwind_info_is_passed_by_its_code() {
    for flags in ["", "-fno-omit-frame-pointer"] {
        let workload = gap("gap_middle", flags).start(&[]);
        let folded = flame_bpf_tests::profile("-f -U -F 997 -d 1", &workload)
            .expect_stderr("pass code without unwind instructions by what its instructions do")
            .folded();
        folded.assert_honest(&GAP);
        let whole = folded.share_among(
            |stack| stack.leaf() == "burn",
            |stack| stack.begins_at_start() && stack.has_chain(&GAP),
        );
        assert!(
            whole > ALL_BUT_A_FEW,
            "{flags}: {whole:.3} are whole in {folded}"
        );
    }
}

#[kernel_test]
fn code_that_keeps_frame_pointers_has_its_direct_callers_without_being_read() {
    let folded = profile(&Recipe::c("kept").make(), &[]);
    let in_hot = |stack: &Stack| stack.leaf() == "hot";
    let called = folded.share_among(in_hot, |stack| {
        stack.begins_at_start()
            && ["one_caller", "other_caller"]
                .iter()
                .any(|caller| stack.has_chain(&["main", caller, "hot"]))
    });
    assert!(called > ALL_BUT_A_FEW, "{called:.3} are whole in {folded}");
    let share = folded.share(in_hot);
    assert!(share > 0.3, "the short function has {share:.3} of {folded}");
    for stack in &folded.stacks {
        assert!(stack.begins_at_start(), "{:?} in {folded}", stack.frames);
    }
}

/// Profiles a program for three seconds. Also the number of its functions that were read from their code.
fn profile_and_functions(program: &Program, flags: &str) -> (Folded, usize) {
    let workload = program.start(&[]);
    let run = flame_bpf_tests::profile(&format!("-f -U -F 997 -d 3 -v {flags}"), &workload);
    let functions = run
        .stderr
        .split_once(" functions read from their code")
        .and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok())
        .unwrap_or(0);
    (run.folded(), functions)
}

/// Panics if a stack shows a call that the program does not make. Where a stack begins with a mark, what that hides may be missing.
#[track_caller]
fn assert_calls(folded: &Folded, calls: &[[&str; 2]]) {
    for stack in &folded.stacks {
        let main = stack.position("main");
        let frames = main.map_or(&stack.frames[1..], |main| &stack.frames[main..]);
        assert!(
            main.is_some() || stack.mark().is_some(),
            "{:?} in {folded}",
            stack.frames
        );
        for pair in frames.windows(2).filter(|pair| !pair[0].starts_with('[')) {
            let is_made = calls
                .iter()
                .any(|call| pair[0] == call[0] && pair[1] == call[1]);
            assert!(is_made, "{pair:?} of {:?} in {folded}", stack.frames);
        }
    }
}

#[kernel_test]
fn functions_without_a_frame_among_others_are_read_once_samples_come_to_them() {
    let (folded, functions) = profile_and_functions(&Recipe::c("kept").make(), "");
    let in_bare = |stack: &Stack| stack.leaf() == "bare";
    let called = folded.share_among(in_bare, |stack| {
        stack.begins_at_start() && stack.has_chain(&["main", "bare_caller", "bare"])
    });
    // Until it was read, its caller is missing.
    assert!(called > 0.5, "{called:.3} are whole in {folded}");
    assert!(
        (1..50).contains(&functions),
        "of 100,000 functions only those with samples are read, not {functions}"
    );
}

#[kernel_test]
fn fifty_megabytes_that_nothing_describes_are_read_where_samples_are() {
    const KINDS: [&str; 3] = ["late", "pointed", "general"];
    for flags in ["", "-DWITHOUT_FRAMES"] {
        let program = Recipe::c("undescribed").compiled(flags).make();
        let (folded, functions) = profile_and_functions(&program, "");
        for kind in KINDS {
            let chain = ["main", "spread", kind, "leaf"];
            let whole = folded.share_among(
                |stack| stack.leaf() == "leaf" && stack.has(kind),
                |stack| stack.begins_at_start() && stack.has_chain(&chain),
            );
            assert!(
                whole > NEARLY_ALL,
                "{flags}: {whole:.3} of {kind} in {folded}"
            );
        }
        let called = folded.share_among(
            |stack| stack.leaf() == "leaf",
            |stack| KINDS.iter().any(|kind| stack.has_chain(&[*kind, "leaf"])),
        );
        assert!(called > ALL_BUT_A_FEW, "{flags}: {called:.3} in {folded}");
        assert!(
            (3..50).contains(&functions),
            "{flags}: {functions} functions are read"
        );
    }
}

#[kernel_test]
fn frames_that_lead_astray_show_no_calls_that_were_not_made() {
    let program = Recipe::c("false_frames").make();
    let from_main = ["circle", "decoy", "nowhere"];
    let mut calls: Vec<[&str; 2]> = from_main.iter().map(|from| ["main", *from]).collect();
    calls.extend(from_main.iter().map(|from| [*from, "hot"]));
    let (folded, _) = profile_and_functions(&program, "");
    assert_calls(&folded, &calls);
    let whole = folded.share_among(
        |stack| stack.leaf() == "hot",
        |stack| stack.begins_at_start(),
    );
    assert!(whole > NEARLY_ALL, "{whole:.3} are whole in {folded}");
    // A frame that is not set up yet, or not any more, hides the direct caller from frame pointers.
    calls.push(["main", "hot"]);
    let (folded, _) = profile_and_functions(&program, "--call-graph fp");
    assert_calls(&folded, &calls);
    let marked = folded.share(|stack| stack.mark().is_some());
    assert!(marked > NEARLY_ALL, "{marked:.3} are marked in {folded}");
}

#[kernel_test]
fn a_large_file_is_unwound_by_what_it_describes_where_samples_are() {
    let program = Recipe::c("described").make();
    let workload = program.start(&[]);
    let run = flame_bpf_tests::profile("-f -U -F 997 -d 3 -v", &workload);
    let folded = run.folded();
    let chain = ["main", "outer", "inner", "hot"];
    let in_hot = |stack: &Stack| stack.leaf() == "hot";
    let whole = folded.share_among(in_hot, |stack| {
        stack.begins_at_start() && stack.has_chain(&chain)
    });
    assert!(whole > ALL_BUT_A_FEW, "{whole:.3} are whole in {folded}");
    let rows = run
        .stderr
        .split_once(" rows, ")
        .and_then(|(before, _)| before.rsplit(' ').next())
        .and_then(|rows| rows.replace(',', "").parse::<usize>().ok());
    assert!(
        rows.is_some_and(|rows| rows < 100_000),
        "of 180,000 rows only those of the code with samples are made: {}",
        run.stderr
    );
}

/// Descriptions are read for stretches of the file's own addresses, which begin elsewhere than
/// those of a process's. A walk asks once a second, so that what one recording misses is chance.
#[kernel_test]
fn descriptions_of_neighbours_that_are_not_read_together_are_both_read() {
    let program = Recipe::c("parts").make();
    for _ in 0..6 {
        let folded = profile(&program, &[]);
        for function in ["before", "behind"] {
            let chain = ["main", "both", function];
            let whole = folded.share_among(
                |stack| stack.leaf() == function,
                |stack| stack.begins_at_start() && stack.has_chain(&chain),
            );
            assert!(
                whole > ALL_BUT_A_FEW,
                "{whole:.3} of {function} in {folded}"
            );
        }
    }
}

/// GCC does not say that such a function's last three instructions have given the frame pointer back, so
/// whoever believes it misses callers there, or finds none.
#[kernel_test]
fn realigned_and_moved_frames_are_unwound() {
    let chain = ["main", "forced", "with_room", "with_vectors", "burn"];
    for flags in ["", "-fno-omit-frame-pointer", "-O0 -fomit-frame-pointer"] {
        let folded = profile(&Recipe::c("realigned").compiled(flags).make(), &[]);
        folded.assert_honest(&chain);
        let in_burn = |stack: &Stack| stack.leaf() == "burn";
        for stack in folded.only(in_burn) {
            assert!(stack.begins_at_start(), "{:?} in {folded}", stack.frames);
            assert!(stack.has_chain(&chain), "{:?} in {folded}", stack.frames);
        }
        let whole = folded.share(|stack| stack.begins_at_start() && stack.ends_along(&chain));
        // Recorded three times for a moment each, so the start and the end weigh more.
        assert!(whole > 0.98, "{whole:.3} are whole in {folded}");
    }
}

#[kernel_test]
fn jit_code_between_functions_without_frame_pointers_is_unwound() {
    let folded = profile(&Recipe::c("anonymous").make(), &[]);
    // `push`, the `mov` behind it, and `ret`: before the code has made its frame, and after it has given it back, nothing says
    // where its caller is.
    let frameless = ["[anon+0x0]", "[anon+0x1]", "[anon+0xa]"];
    for stack in &folded.stacks {
        let is_sound = stack.begins_at_start() || frameless.contains(&stack.leaf());
        assert!(is_sound, "{:?} in {folded}", stack.frames);
    }
    let whole = folded.share(Stack::begins_at_start);
    assert!(whole > ALL_BUT_A_FEW, "{whole:.3} are whole in {folded}");
    let called = folded.share(|stack| stack.has_chain(&["main", "call_the_unnamed"]));
    // All but the start and the end.
    assert!(called > 0.95, "{called:.3} has its caller in {folded}");
}
