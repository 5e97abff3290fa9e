//! On-CPU and off-CPU in one run: both profiles are right, and each has a balance of its own.

use flame_bpf_tests::{Invocation, PageData, Program, assert_near, kernel_test, svg_titles};

/// How long the workload keeps its accounts for.
const SECONDS: f64 = 4.0;

/// How far a function's time off the CPU may be from what the kernel's accounts say.
const OFF_TOLERANCE: f64 = 0.03;

/// How far a function's share of samples may be from its share of CPU time: many times the spread of so few samples.
const ON_TOLERANCE: f64 = 0.06;

#[kernel_test]
fn one_page_holds_what_a_run_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("x.html");
    let workload = Program::c("wall").start(&[]);
    Invocation::new("-F 499 -d 1 -e cpu-clock -e context-switches")
        .flag("-p", workload.pid())
        .path("-o", &page)
        .path("--off-cpu-output", &page)
        .run()
        .expect_code(0);
    let data = PageData::read(&std::fs::read_to_string(&page).expect("it was written"));
    let names = data.header["profiles"].as_array().expect("profiles").iter();
    let names: Vec<&str> = names
        .filter_map(|profile| profile["name"].as_str())
        .collect();
    assert_eq!(names, ["cpu-clock", "context-switches", "off-CPU"]);
    for columns in &data.columns {
        assert!(columns["sample_weight"].iter().sum::<u64>() > 0);
    }
}

#[kernel_test(timing)]
fn one_run_records_on_cpu_and_off_cpu_time_correctly() {
    let folder = tempfile::tempdir().expect("a folder");
    let (on, off) = (
        folder.path().join("on.folded"),
        folder.path().join("off.folded"),
    );
    let workload = Program::c("wall").start(&[]);
    let (run, said) = Invocation::new("-v -F 997")
        .path("-o", &on)
        .path("--off-cpu-output", &off)
        .run_accounted(workload, SECONDS);
    for balance in [run.balance(), run.balance_of("off-CPU")] {
        balance.assert_lossless();
        assert!(balance.recorded > 50, "{balance:?}");
    }
    let (on, off) = (run.folded_file(&on), run.folded_file(&off));
    let truth = said.accounts();
    let ran_together: f64 = truth.iter().map(|thread| thread.ran).sum();
    for function in [
        "spin_only",
        "half_and_half",
        "contend",
        "sleep_only",
        "sleep_through",
    ] {
        let (mut ran, mut waited) = (0.0, 0.0);
        for thread in truth.iter().filter(|thread| thread.function == function) {
            ran += thread.ran;
            waited += thread.runnable + thread.blocked;
        }
        // The workload accounts for its whole life, but for the moments around the two signals.
        assert!(
            waited + ran > 0.9 * SECONDS,
            "{function}: {ran} s and {waited} s"
        );
        let share = on.share(|stack| stack.has(function));
        assert_near(function, share, ran / ran_together, ON_TOLERANCE, &on);
        let seen = off.seconds(|stack| stack.has(function));
        assert_near(function, seen, waited, OFF_TOLERANCE * waited + 0.02, &off);
    }
    assert!(
        !off.any(|stack| stack.has("spin_half") && stack.leaf() != "[runnable]"),
        "{off}"
    );
}

#[kernel_test]
fn each_graph_of_a_combined_run_has_its_own_title_and_unit() {
    let folder = tempfile::tempdir().expect("a folder");
    let (on, off) = (folder.path().join("on.svg"), folder.path().join("off.svg"));
    let workload = Program::c("wall").start(&[]);
    Invocation::new("-d 1 -F 499")
        .flag("-p", workload.pid())
        .path("-o", &on)
        .path("--off-cpu-output", &off)
        .run()
        .expect_code(0)
        .expect_stderr("off-CPU: ")
        .expect_stderr("on-CPU: ")
        .expect_stderr("on.svg\n");
    for (path, subject, unit, strange) in [
        (&on, "on-CPU: wall", "samples", "sleep_through"),
        (&off, "off-CPU: wall", "µs", "no such function"),
    ] {
        let svg = std::fs::read_to_string(path).expect("the graph is there");
        assert!(
            svg.contains(subject) && svg.contains(unit),
            "{}",
            path.display()
        );
        let is_there = svg_titles(path).iter().any(|name| name.contains(strange));
        assert!(!is_there, "{strange} in {}", path.display());
    }
}
