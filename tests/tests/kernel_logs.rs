//! Log lines of the kernel half: there with `-vvv`, and free otherwise.

use std::fs;

use flame_bpf::kernel::{Kernel, Support};
use flame_bpf_tests::{BOTH, Invocation, Recipe, kernel_test, load};
use profiler_common::abi::{Switches, TargetKind};

/// A program without frame pointers, whose stacks cannot be walked by them.
fn run(verbosity: &str) -> (u32, flame_bpf_tests::Run) {
    let program = Recipe::c("chain").make();
    let workload = program.start(&["100000"]);
    let pid = workload.pid();
    let run = Invocation::new("-f -U -F 997 -d 1.5 --call-graph fp")
        .flag("-p", pid)
        .args(verbosity)
        .run();
    (pid, run.expect_code(0))
}

#[kernel_test]
fn three_times_verbose_says_why_walks_ended() {
    let (pid, run) = run("-vvv");
    let line = format!("kernel half: [DEBUG] process {pid}, ");
    let run = run.expect_stderr(&line);
    let walks = run.stderr.lines().filter(|text| text.contains(&line));
    let walks: Vec<&str> = walks.collect();
    assert!(walks.len() > 100, "{} lines", walks.len());
    for walk in walks {
        assert!(walk.contains(" frames, at 0x"), "{walk}");
        assert!(walk.ends_with(": no frame pointer"), "{walk}");
    }
}

#[kernel_test]
fn twice_verbose_says_nothing_of_single_walks() {
    let (_, run) = run("-vv");
    assert!(!run.stderr.contains("kernel half:"), "{}", run.stderr);
}

/// How many instructions of the program that samples the verifier looked at.
fn verified(kernel: &Kernel) -> Option<u32> {
    let programs = kernel.verified();
    let sampling = programs
        .iter()
        .find(|loaded| loaded.program.name() == "on_cpu");
    sampling.expect("it is loaded").instructions
}

/// The sizes of the ring buffers that this process holds, in bytes.
fn ring_buffers() -> Vec<u64> {
    /// `BPF_MAP_TYPE_RINGBUF`.
    const RING_BUFFER: u64 = 27;
    let files = fs::read_dir("/proc/self/fdinfo").expect("procfs is mounted");
    let texts = files
        .flatten()
        .filter_map(|file| fs::read_to_string(file.path()).ok());
    let field = |text: &str, name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().parse().ok()
    };
    texts
        .filter(|text| field(text, "map_type:") == Some(RING_BUFFER))
        .filter_map(|text| field(&text, "max_entries:"))
        .collect()
}

#[kernel_test]
fn without_log_lines_the_verifier_drops_their_code_and_their_buffer_is_a_page() {
    let support = Support::detect();
    let quiet = load("without log lines", BOTH, TargetKind::All, &support);
    let page = ring_buffers().into_iter().filter(|bytes| *bytes == 4096);
    assert_eq!(page.count(), 1);
    let without = verified(&quiet);
    drop(quiet);
    let switches = BOTH.with(Switches::LOG);
    let mut talkative = load("with log lines", switches, TargetKind::All, &support);
    assert!(!ring_buffers().contains(&4096));
    assert_eq!(talkative.log_lines(), (Vec::new(), 0));
    // Linux 5.16 and later tell.
    if let (Some(without), Some(with)) = (without, verified(&talkative)) {
        assert!(
            with > without + 500,
            "{with} instructions with log lines, {without} without"
        );
    }
}
