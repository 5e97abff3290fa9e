//! Names: demangled, of stripped programs, of processes that ended, and hostile ones.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

use flame_bpf_tests::{
    Folded, Invocation, NEARLY_ALL, Program, Stack, Workload, kernel_test, profile, require,
    svg_titles,
};
use tempfile::tempdir;

#[kernel_test]
fn cpp_names_are_demangled() {
    let workload = Program::cpp("templates").start(&[]);
    let folded = workload.profiled();
    for name in ["furnace::Stove<int>::heat", "furnace::Stove<double>::heat"] {
        let named = |frame: &String| frame.starts_with(name);
        assert!(
            folded.any(|stack| stack.frames.iter().any(named)),
            "no {name} in {folded}"
        );
    }
    let lambda = |stack: &Stack| {
        stack
            .frames
            .iter()
            .any(|frame| frame.contains("{lambda(double)#1}"))
    };
    assert!(folded.any(lambda), "{folded}");
    assert!(!folded.any(|stack| stack.mentions("_ZN")), "{folded}");
}

#[kernel_test]
fn names_are_simplified_or_left_mangled_when_asked_for() {
    let workload = Program::cpp("templates").start(&[]);
    let folded = |flag: &str| {
        Invocation::new("-f -F 997 -d 1")
            .arg(flag)
            .flag("-p", workload.pid())
            .run()
            .expect_code(0)
            .folded()
    };
    let simple = folded("--simplify");
    assert!(
        simple.any(|stack| stack.has("furnace::Stove::heat")),
        "{simple}"
    );
    let mangled = folded("--no-demangle");
    assert!(
        mangled.any(|stack| stack.mentions("_ZN7furnace")),
        "{mangled}"
    );
}

#[kernel_test]
fn inlined_functions_and_lines_are_shown_when_asked_for() {
    let workload = Program::c_with_debug_information("inlined").start(&[]);
    let folded = |flags: &str| profile(flags, &workload).folded();
    let plain = folded("-f -F 997 -d 1");
    assert!(
        plain.share(|stack| stack.leaf() == "outermost") > NEARLY_ALL,
        "{plain}"
    );
    let inlined = folded("-f -F 997 -d 1 --inline");
    let chain = ["main", "outermost", "middle_[i]", "innermost_[i]"];
    assert!(
        inlined.share(|stack| stack.has_chain(&chain)) > NEARLY_ALL,
        "{inlined}"
    );
    let lines = folded("-f -F 997 -d 1 --inline --lines");
    let has_line = |stack: &Stack| {
        let innermost = |frame: &String| frame.starts_with("innermost (inlined.c:");
        stack.frames.iter().any(innermost)
    };
    assert!(lines.share(has_line) > NEARLY_ALL, "{lines}");
}

/// A frame of an object whose functions have no names.
fn nameless(frame: &str, module: &str) -> bool {
    frame
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .and_then(|rest| rest.strip_prefix(module))
        .and_then(|rest| rest.strip_prefix("+0x"))
        .is_some_and(|offset| u64::from_str_radix(offset, 16).is_ok())
}

#[kernel_test]
fn a_stripped_program_shows_its_module_and_offsets() {
    let workload = Program::c("shares").stripped().start(&[]);
    let folded = workload.profiled();
    // Below main, which what calls it gives away: work_round, a chain of one to three functions, burn.
    let whole = |stack: &Stack| {
        stack.position("main").is_some_and(|main| {
            let below = &stack.frames[main + 1..];
            below.len() >= 3 && below.iter().all(|frame| nameless(frame, "shares"))
        })
    };
    assert!(folded.share(whole) > NEARLY_ALL, "{folded}");
    let mut functions: Vec<&String> = folded
        .stacks
        .iter()
        .filter(|stack| whole(stack))
        .flat_map(|stack| &stack.frames)
        .filter(|frame| nameless(frame, "shares"))
        .collect();
    functions.sort_unstable();
    functions.dedup();
    assert!(
        functions.len() <= 9,
        "one name for each of nine functions: {functions:?}"
    );
    assert!(!folded.any(|stack| stack.has("alpha")), "{folded}");
}

#[kernel_test]
fn a_separate_debug_file_names_a_stripped_program() {
    let workload = Program::c("shares").with_debug_file().start(&[]);
    let folded = workload.profiled();
    let chain = ["main", "work_round", "alpha", "alpha_inner", "burn"];
    assert!(folded.any(|stack| stack.has_chain(&chain)), "{folded}");
    assert!(
        folded.share(|stack| stack.has("work_round")) > NEARLY_ALL,
        "{folded}"
    );
}

#[kernel_test]
fn code_outside_any_file_is_shown_without_a_name() {
    require!(
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            Ok(())
        } else {
            Err("the workload has no machine code for this architecture".to_owned())
        }
    );
    let workload = Program::c("anonymous").start(&[]);
    let folded = workload.profiled();
    let unnamed = |stack: &Stack| {
        stack.position("call_the_unnamed").is_some_and(|caller| {
            stack
                .frames
                .get(caller + 1)
                .is_some_and(|frame| frame.starts_with('['))
        })
    };
    assert!(folded.share(unnamed) > NEARLY_ALL, "{folded}");
}

#[kernel_test]
fn a_process_that_exits_during_the_run_keeps_its_names() {
    let mut running = Invocation::new("-f -a -F 997 -d 4").start();
    running.wait_until_attached();
    let mortal = Program::c("shares").named("mortal").start(&["1000"]);
    mortal.stop_by_itself();
    let folded = running.finish().expect_code(0).folded();
    let named = folded.share_among(
        |stack| stack.root() == "mortal",
        |stack| stack.has_chain(&["main", "work_round"]),
    );
    assert!(
        named > NEARLY_ALL,
        "names in {named:.3} of the dead process's samples: {folded}"
    );
}

#[kernel_test]
fn a_storm_of_short_programs_keeps_its_names_over_many_drains() {
    // Deep stacks at addresses of their own fill the little memory again and again: what has ended by then
    // is let go.
    let storm = Program::c("execstorm").start(&["100", "5000", "300"]);
    let run = Invocation::new("-f -v -a -F 997 -d 3 --map-memory 4").run();
    let run = run.expect_code(0);
    run.balance().assert_even();
    let folded = run.folded();
    let programs = |stack: &Stack| stack.root() == "exe";
    let deep = |stack: &Stack| stack.has_chain(&["descend", "descend", "program_work"]);
    let named = folded.share_among(programs, deep);
    // Part of so short a life is spent in the kernel and in the dynamic loader.
    assert!(
        named > 0.5,
        "names in {named:.3} of the programs' samples: {}",
        run.stderr
    );
    drop(storm);
}

#[kernel_test]
fn one_pid_has_the_names_from_before_and_after_exec() {
    let shares = Program::c("shares");
    let next = shares.path().display().to_string();
    // CPU time goes on counting through exec: each program burns as much as the other.
    let workload = Program::c("relay").start(&["800", &next, "1600"]);
    // It ends with the process, which a busy machine delays.
    let folded = Invocation::new("-f -F 997 -d 60")
        .flag("-p", workload.pid())
        .run()
        .expect_no_panic()
        .folded();
    for (comm, function) in [("relay", "before_exec"), ("shares", "work_round")] {
        let named = folded.share_among(|stack| stack.root() == comm, |stack| stack.has(function));
        assert!(
            named > NEARLY_ALL,
            "{function} has {named:.3} of {comm}'s samples: {folded}"
        );
    }
}

/// Middles of hostile names, between `a<number>` and `z`, so that each can be found again however
/// an output writes the middle.
const HOSTILE: [&[u8]; 10] = [
    b";",
    b"\n",
    b"\"",
    b"'",
    b"<x>",
    b"&",
    b"\xff\xfe",
    b"\x1b[1m",
    b" 7 ",
    b"\t\r",
];

/// Whether `frame` is what became of the hostile name with this number.
fn survived(frame: &str, number: usize) -> bool {
    frame.starts_with(&format!("a{number}")) && frame.ends_with('z')
}

/// Records all workloads at once, into folded text and an SVG.
fn record_hostile(workloads: &[Workload]) -> (Folded, Vec<String>) {
    let folder = tempdir().expect("a temporary folder can be made");
    let (folded, svg) = (folder.path().join("x.folded"), folder.path().join("x.svg"));
    let pids: Vec<String> = workloads
        .iter()
        .map(|workload| workload.pid().to_string())
        .collect();
    let run = Invocation::new("-F 997 -d 2 --minwidth 0")
        .flag("-p", pids.join(","))
        .path("-o", &folded)
        .path("-o", &svg)
        .run()
        .expect_code(0);
    (run.folded_file(&folded), svg_titles(&svg))
}

#[kernel_test]
fn hostile_process_names_stay_one_frame_in_every_output() {
    let program = Program::c("comm");
    let workloads: Vec<Workload> = HOSTILE
        .iter()
        .enumerate()
        .map(|(number, middle)| {
            let mut hex = String::new();
            for byte in [format!("a{number}").as_bytes(), middle, b"z"].concat() {
                write!(hex, "{byte:02x}").expect("a string takes all");
            }
            program.start(&[&hex])
        })
        .collect();
    let (folded, titles) = record_hostile(&workloads);
    for (number, middle) in HOSTILE.iter().enumerate() {
        let whole = |stack: &Stack| survived(stack.root(), number) && stack.has("named_work");
        assert!(folded.any(whole), "{number} {middle:?} is not in {folded}");
        assert!(
            titles
                .iter()
                .any(|title| title.starts_with(&format!("a{number}"))),
            "{number} {middle:?} is not in {titles:?}"
        );
    }
    assert!(
        titles.iter().any(|title| title.contains("<x>")),
        "{titles:?}"
    );
    let orphan = folded
        .stacks
        .iter()
        .find(|stack| !stack.root().ends_with('z'));
    assert_eq!(orphan, None, "a name came apart");
}

#[kernel_test]
fn hostile_function_names_stay_one_frame_in_every_output() {
    let program = Program::c("comm");
    let workloads: Vec<Workload> = HOSTILE
        .iter()
        .enumerate()
        .map(|(number, middle)| {
            let name = [format!("a{number}").as_bytes(), middle, b"z"].concat();
            let hex = format!("{:02x}", b'A' + number as u8);
            program
                .with_symbol("named_work", OsStr::from_bytes(&name))
                .start(&[&hex])
        })
        .collect();
    let (folded, titles) = record_hostile(&workloads);
    for (number, middle) in HOSTILE.iter().enumerate() {
        let comm = char::from(b'A' + number as u8).to_string();
        let whole = |stack: &Stack| {
            stack.frames.windows(3).any(|frames| {
                frames[0] == "main" && survived(&frames[1], number) && frames[2] == "burn"
            })
        };
        let share = folded.share_among(|stack| stack.root() == comm, whole);
        assert!(
            share > NEARLY_ALL,
            "{number} {middle:?} has {share:.3} of {folded}"
        );
    }
    assert!(
        titles.iter().any(|title| title.contains("<x>")),
        "{titles:?}"
    );
}

#[kernel_test]
fn hostile_titles_are_escaped() {
    let workload = Program::c("shares").named("a<b>&\"c\"").start(&[]);
    let folder = tempdir().expect("a temporary folder can be made");
    let svg = folder.path().join("x.svg");
    for title in [None, Some("<script>&\"]]>")] {
        let mut invocation = Invocation::new("-d 1 -F 997")
            .flag("-p", workload.pid())
            .path("-o", &svg);
        if let Some(title) = title {
            invocation = invocation.flag("--title", title).flag("--subtitle", title);
        }
        invocation.run().expect_code(0);
        assert!(!svg_titles(&svg).is_empty());
    }
}
