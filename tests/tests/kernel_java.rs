//! The methods that HotSpot runs, without any flag of its: whose truth is known, in every way in which they come to run,
//! interpreted, compiled by each compiler and compiled into one another, and in virtual threads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Grammar, Invocation, NEARLY_ALL, Stack, Workload, annotated, java_classes,
    javas, kernel_test, profile, require, source, tool,
};

/// Suffix of the names of methods with `--annotate`.
const SUFFIX: &str = "_[java]";

/// Classes of a program. The compiler may be newer than the machine that runs them.
fn classes(program: &str) -> PathBuf {
    java_classes("javac".as_ref(), 17, program)
}

fn start(java: &Path, flags: &[&str], classes: &Path, program: &str) -> Workload {
    let mut command = Command::new(java);
    let command = command.args(flags).arg("-cp").arg(classes).arg(program);
    Workload::start(command)
}

fn machines() -> Result<Vec<PathBuf>, String> {
    tool("javac").and_then(|_| javas())
}

/// The program's methods in a stack, from the root, without classes that are made at run time.
fn methods(stack: &Stack) -> Vec<String> {
    let frames = stack.frames.iter();
    let names = frames.filter_map(|frame| frame.strip_suffix(SUFFIX));
    let own = names.filter(|name| name.starts_with("Stops") && !name.contains("$$"));
    own.skip_while(|name| *name != "Stops.main")
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn check_stops(flags: &[&str]) {
    let classes = classes("Stops");
    for java in javas().expect("there is one") {
        let workload = start(&java, flags, &classes, "Stops");
        let mut folded = annotated(&workload, 6.0);
        folded.stacks.retain(|stack| !methods(stack).is_empty());
        Grammar::of(&workload.stop()).check(&folded, methods);
    }
}

#[kernel_test]
fn sixty_random_stops_are_as_java_says() {
    require!(machines());
    check_stops(&[]);
}

#[kernel_test]
fn random_stops_in_the_interpreter_are_as_java_says() {
    require!(machines());
    check_stops(&["-Xint"]);
}

#[kernel_test]
fn random_stops_in_code_of_the_first_compiler_are_as_java_says() {
    require!(machines());
    check_stops(&["-XX:TieredStopAtLevel=1"]);
}

#[kernel_test]
fn random_stops_beside_a_concurrent_collector_are_as_java_says() {
    require!(machines());
    check_stops(&["-XX:+UseZGC"]);
}

#[kernel_test]
fn shares_of_java_methods_are_as_measured() {
    require!(machines());
    let classes = classes("Shares");
    for java in javas().expect("there is one") {
        let workload = start(&java, &[], &classes, "Shares");
        let folded = Invocation::new("-f -F 1997")
            .run_for_cpu_time(&workload, 3.0)
            .folded();
        let shares = workload.stop().shares();
        for (phase, truth) in &shares {
            let shown = folded.share_among(
                |stack| shares.iter().any(|(phase, _)| stack.has(phase)),
                |stack| stack.has(phase),
            );
            assert!(
                (shown - truth).abs() < 0.02,
                "{phase}: {shown}, {truth} in {folded}"
            );
        }
        let chain = ["java.util.Arrays.sort", "Shares.burn"];
        assert!(folded.any(|stack| follow(stack, &chain)), "{folded}");
    }
}

#[kernel_test]
fn lines_are_those_that_run_in_java() {
    require!(machines());
    let classes = classes("Shares");
    let text = fs::read_to_string(source("java/Shares.java")).expect("it is there");
    let place = text
        .lines()
        .position(|line| line.contains("burn(turns) + 1"));
    let wanted = format!(
        "Shares.step (Shares.java:{})",
        place.expect("it is there") + 1
    );
    for java in javas().expect("there is one") {
        for flags in [&[][..], &["-Xint"]] {
            let workload = start(&java, flags, &classes, "Shares");
            let folded = profile("-f -F 997 -d 2 --lines", &workload).folded();
            let shown = folded.share_among(
                |stack| stack.mentions("Shares.burn"),
                |stack| stack.has(&wanted),
            );
            assert!(shown > NEARLY_ALL, "{wanted}: {shown} in {folded}");
        }
    }
}

/// Whether a stack has these frames, one somewhere above the other.
fn follow(stack: &Stack, chain: &[&str]) -> bool {
    let mut frames = stack.frames.iter();
    chain
        .iter()
        .all(|wanted| frames.any(|frame| frame == wanted))
}

// The compilers come to ever new parts of a large library, whose unwind information is read within a millisecond or two: where there is
// a CPU for it.
#[kernel_test(timing)]
fn stacks_of_java_are_whole_and_named() {
    require!(machines());
    let classes = classes("Stops");
    for java in javas().expect("there is one") {
        for flags in [&[][..], &["-Xint"], &["-XX:TieredStopAtLevel=1"]] {
            let workload = start(&java, flags, &classes, "Stops");
            let folded = profile("-f -F 997 -d 6", &workload).folded();
            folded.assert_all_but_a_few(Stack::begins_a_thread);
            folded.assert_all_but_a_few(|stack| !stack.mentions("[anon"));
        }
    }
}

#[kernel_test]
fn methods_are_left_where_they_compare_strings() {
    require!(machines());
    let classes = classes("Compare");
    for java in javas().expect("there is one") {
        let workload = start(&java, &[], &classes, "Compare");
        let folded = profile("-f -F 997 -d 3", &workload).folded();
        let sorts = |stack: &Stack| stack.mentions("ComparableTimSort");
        let whole = folded.share_among(sorts, Stack::begins_a_thread);
        assert!(whole > ALL_BUT_A_FEW, "{whole} in {folded}");
        assert!(folded.share(sorts) > 0.5, "{folded}");
    }
}

#[kernel_test]
fn virtual_threads_stand_on_their_carriers() {
    require!(machines());
    for java in javas().expect("there is one") {
        let compiler = java.with_file_name("javac");
        if !compiler.is_file() || !has_virtual_threads(&java) {
            continue;
        }
        let classes = java_classes(&compiler, 21, "Virtual");
        // Of a loop that is compiled into its caller, only the caller is known.
        let flags = ["quiet", "dontinline,Virtual::burn"];
        let flags = flags.map(|flag| format!("-XX:CompileCommand={flag}"));
        let flags = flags.each_ref().map(String::as_str);
        let workload = start(&java, &flags, &classes, "Virtual");
        let folded = profile("-f -F 997 -d 2", &workload).folded();
        let chain = [
            "start_thread",
            "jdk.internal.vm.Continuation.run",
            "Virtual.work",
            "Virtual.burn",
        ];
        let burns = |stack: &Stack| stack.mentions("Virtual.burn");
        let shown = folded.share_among(burns, |stack| follow(stack, &chain));
        assert!(shown > NEARLY_ALL, "{shown} in {folded}");
        assert!(folded.share(burns) > 0.8, "{folded}");
    }
}

#[kernel_test]
fn threads_of_java_have_their_whole_names() {
    require!(machines());
    let classes = classes("Named");
    let cut = format!("{}…", "a".repeat(256));
    // The kernel's name of the last is not the beginning of Java's.
    let wanted = [
        "short",
        "http-nio-8080-exec-1",
        "http-nio-8080-exec-2",
        "Überträger 漢字 7",
        &cut,
        "name-at-the-beg",
    ];
    // Each has references or arrays of its own.
    let ways = [
        &[][..],
        &["-XX:-UseCompressedOops"],
        &["-Xlog:disable", "-XX:-UseCompressedClassPointers"],
        &[
            "-XX:+IgnoreUnrecognizedVMOptions",
            "-XX:+UseCompactObjectHeaders",
        ],
    ];
    for java in javas().expect("there is one") {
        for flags in ways {
            let workload = start(&java, flags, &classes, "Named");
            let folded = profile("-f -F 997 -d 2 --per-thread", &workload).folded();
            let burns = |stack: &Stack| stack.mentions("Named.burn");
            let named = |stack: &Stack| wanted.contains(&stack.thread());
            let shown = folded.share_among(burns, named);
            assert!(shown > NEARLY_ALL, "{flags:?}: {shown} in {folded}");
            for name in wanted {
                assert!(
                    folded.any(|stack| burns(stack) && stack.thread() == name),
                    "{flags:?}: {name} in {folded}"
                );
            }
        }
    }
}

fn has_virtual_threads(java: &Path) -> bool {
    let said = Command::new(java).arg("-version").output();
    let said = said.expect("java runs").stderr;
    let text = String::from_utf8_lossy(&said);
    let version = text
        .split('"')
        .nth(1)
        .and_then(|version| version.split('.').next()?.parse().ok());
    version.is_some_and(|version: u32| version >= 21)
}
