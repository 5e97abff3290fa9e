//! Complete stacks of Go programs without symbols, by each toolchain of this machine: goroutines, the runtime's own stacks,
//! and calls between Go and C in both directions.

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Folded, NEARLY_ALL, Program, Stack, go_toolchains, kernel_test, require,
};

/// The functions that stacks of Go begin with. Whoever leaves its goroutine for good has none.
const ROOTS: [&str; 4] = [
    "runtime.goexit",
    "runtime.mstart",
    "runtime.mcall",
    "runtime.morestack",
];

fn profile(program: &Program) -> Folded {
    let workload = program.start(&[]);
    flame_bpf_tests::profile("-f -U -F 997 -d 3", &workload).folded()
}

/// The outermost function; the process is below it.
fn outermost(stack: &Stack) -> &str {
    stack.frames.get(1).map_or("", String::as_str)
}

/// Panics unless all stacks with `function` have a chain that leads to it.
#[track_caller]
fn assert_called_along(folded: &Folded, function: &str, chain: &[&str]) {
    let among = |stack: &Stack| stack.has(function);
    assert!(folded.any(among), "no {function} in {folded}");
    let share = folded.share_among(|stack| stack.has_chain(chain), among);
    assert!(
        share > NEARLY_ALL,
        "{share:.4} of {function} along {chain:?} in {folded}"
    );
}

#[kernel_test]
fn stacks_of_stripped_go_programs_go_down_to_their_roots() {
    for toolchain in require!(go_toolchains()) {
        for flags in ["", "-buildmode=pie"] {
            let folded = profile(&Program::go(&toolchain, "stacks", flags));
            let shown = || format!("{} {flags}", toolchain.display());
            let complete = folded.share(|stack| ROOTS.contains(&outermost(stack)));
            assert!(complete > 0.995, "{}: {complete:.4} of {folded}", shown());
            let named = folded.share(|stack| !stack.leaf().starts_with('['));
            assert!(named > ALL_BUT_A_FEW, "{}: {named:.4} of {folded}", shown());
            let along = ["main.work", "main.outer", "main.inner"];
            assert_called_along(&folded, "main.inner", &along);
            assert_called_along(&folded, "main.ask", &["main.work", "main.ask"]);
            assert_called_along(&folded, "main.grow", &["main.work.func1", "main.grow"]);
        }
    }
}

#[kernel_test]
fn work_on_the_system_stack_stands_on_the_goroutine_that_asked_for_it() {
    for toolchain in require!(go_toolchains()) {
        let folded = profile(&Program::go(&toolchain, "stacks", ""));
        let on_system = |stack: &Stack| stack.has("runtime.systemstack");
        let share = folded.share(on_system);
        assert!(share > 0.01, "{share:.4} is on the system stack: {folded}");
        let asked = |stack: &Stack| {
            let below = stack.position("runtime.systemstack");
            outermost(stack) == "runtime.goexit" && below.is_some_and(|below| below > 2)
        };
        let share = folded.share_among(asked, on_system);
        assert!(
            share > NEARLY_ALL,
            "{}: {share:.4} in {folded}",
            toolchain.display()
        );
    }
}

#[kernel_test]
fn calls_between_go_and_c_are_seen_in_both_directions() {
    // From goroutine to C, back, and on.
    const ALONG: [&str; 6] = [
        "main.work",
        "main._Cfunc_c_outer",
        "runtime.asmcgocall",
        "crosscall2",
        "runtime.cgocallback",
        "main.backInGo",
    ];
    for toolchain in require!(go_toolchains()) {
        for flags in ["", "-buildmode=pie"] {
            let folded = profile(&Program::go(&toolchain, "crossing", flags));
            let shown = || format!("{} {flags}", toolchain.display());
            // Threads of C begin where all programs do.
            let complete = folded.share(|stack| stack.mark().is_none());
            assert!(complete > 0.995, "{}: {complete:.4} of {folded}", shown());
            let of_go = |stack: &Stack| outermost(stack) == "runtime.goexit";
            let share = folded.share(of_go);
            assert!(share > 0.3, "{}: {share:.4} of {folded}", shown());
            let back = |stack: &Stack| of_go(stack) && stack.has("main.backInGo");
            let crossed = |stack: &Stack| {
                let places = ALONG.map(|name| stack.position(name));
                places.is_sorted() && places.iter().all(Option::is_some)
            };
            let share = folded.share_among(crossed, back);
            assert!(share > NEARLY_ALL, "{}: {share:.4} in {folded}", shown());
            let threads = folded.share(|stack| !of_go(stack) && stack.has("main.backInGo"));
            assert!(threads > 0.05, "{}: {threads:.4} of {folded}", shown());
        }
    }
}
