//! Page-ins of mapped files: as many and as long as a program counts and measures itself.

use flame_bpf_tests::{Folded, Invocation, Program, Said, allowed_cpus, kernel_test, require};

/// Share that is shown of the time in faults that read one page each, as the program measured it:
/// with its own way into the kernel, and the walking of its stack.
const SHOWN: std::ops::RangeInclusive<f64> = 0.7..=1.01;

/// As [`SHOWN`], where the kernel reads on: there are as many faults again that find their page.
const SHOWN_READING_ON: std::ops::RangeInclusive<f64> = 0.3..=1.01;

const FILE_NAME: &str = "known";

/// A recording of the workload `mapped`.
struct Recorded {
    folded: Folded,
    said: Said,
}

#[track_caller]
fn record(program: &Program, flags: &str) -> Recorded {
    // Where there is a disk behind files, as there may not be behind temporary ones.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
    let file = folder.path().join(FILE_NAME);
    let workload = program.start(&[file.to_str().expect("a plain path")]);
    let invocation = Invocation::new("-v -f").args(flags);
    let (run, said) = invocation.run_while_working(workload);
    run.lossless_balance();
    Recorded {
        folded: run.folded(),
        said,
    }
}

impl Recorded {
    /// The weight of the stacks that lead through a function to a frame.
    fn weight(&self, function: &str, frame: &str) -> u64 {
        self.folded
            .weight(|stack| stack.has_chain(&["main", function]) && stack.has(frame))
    }

    #[track_caller]
    fn assert_time(&self, function: &str, share: &std::ops::RangeInclusive<f64>) {
        let measured = self.said.number("truth", function) as f64 / 1e3;
        let shown = self.weight(function, "[page-in]") as f64;
        assert!(
            share.contains(&(shown / measured)),
            "{function} took {measured} µs, and is shown with {shown}: {}",
            self.folded
        );
    }
}

/// Whether files are read from a disk here: whether the program had to wait.
fn reads(recorded: &Recorded) -> Result<(), String> {
    if recorded.said.number("faults", "reads_pages") > 100 {
        Ok(())
    } else {
        Err("files are not read from a disk here".to_owned())
    }
}

#[kernel_test]
fn every_page_in_is_counted_at_the_access() {
    for program in [
        Program::c_without_frame_pointers("mapped"),
        Program::c("mapped"),
    ] {
        let recorded = record(&program, "--io=count --io-files");
        require!(reads(&recorded));
        for function in ["reads_pages", "asks_by_pages"] {
            assert_eq!(
                recorded.weight(function, "[page-in]"),
                recorded.said.number("faults", function),
                "{function}: {}",
                recorded.folded
            );
        }
        // The kernel reads on: not every wait is for a page that this thread had read.
        assert!(
            recorded.weight("reads_on", "[page-in]") >= recorded.said.number("faults", "reads_on"),
            "{}",
            recorded.folded
        );
        // No page-ins: pages in memory or of no file, and waits of a call, which is counted itself.
        for function in ["touches_again", "takes_memory", "writes_pages"] {
            assert_eq!(
                recorded.weight(function, "[page-in]"),
                0,
                "{}",
                recorded.folded
            );
        }
        assert_eq!(
            recorded.weight("writes_pages", "[pwrite64]"),
            20,
            "{}",
            recorded.folded
        );
        let named = format!("[file: {FILE_NAME}]");
        let page_ins = |leaf: &str| {
            recorded
                .folded
                .weight(|stack| stack.has_chain(&["touch", "[page-in]"]) && stack.leaf() == leaf)
        };
        assert!(page_ins(&named) > 0, "{}", recorded.folded);
        assert_eq!(page_ins("[page-in]"), 0, "{}", recorded.folded);
    }
}

#[kernel_test(timing)]
fn page_ins_are_shown_with_their_measured_time() {
    let program = Program::c_without_frame_pointers("mapped");
    let recorded = record(&program, "--io");
    require!(reads(&recorded));
    recorded.assert_time("reads_pages", &SHOWN);
    recorded.assert_time("asks_by_pages", &SHOWN);
    // Most of it is spent waiting for pages that are being read already.
    recorded.assert_time("reads_on", &SHOWN_READING_ON);
}

#[kernel_test]
fn a_page_in_weighs_4096_bytes() {
    let program = Program::c_without_frame_pointers("mapped");
    let recorded = record(&program, "--io=bytes -K");
    require!(reads(&recorded));
    let page_ins = recorded
        .folded
        .weight(|stack| stack.frames == ["mapped", "[page-in]"]);
    let least = recorded.said.number("faults", "reads_pages")
        + recorded.said.number("faults", "asks_by_pages");
    assert_eq!(page_ins % 4096, 0, "{}", recorded.folded);
    assert!(page_ins / 4096 >= least, "{}", recorded.folded);
}

#[kernel_test]
fn a_filter_for_pipes_drops_page_ins() {
    let program = Program::c_without_frame_pointers("mapped");
    let recorded = record(&program, "--io=count --io-kind files,pipes");
    require!(reads(&recorded));
    assert!(recorded.weight("reads_pages", "[page-in]") > 0);
    let without = record(&program, "--io=count --io-kind pipes");
    assert_eq!(without.weight("reads_pages", "[page-in]"), 0);
    // It says what it knows into one.
    assert!(without.folded.any(|stack| stack.leaf() == "[write]"));
}

#[kernel_test]
fn waiting_for_the_mmap_lock_is_not_a_page_in() {
    require!(allowed_cpus(2));
    let program = Program::c_without_frame_pointers("contended");
    // The workload's lines go into a pipe: these calls alone need be recorded.
    let recorded = record(&program, "--io=count --io-kind files,pipes");
    assert!(
        recorded.said.number("switches", "touches") > 0,
        "{:?}",
        recorded.said
    );
    assert_eq!(
        recorded.weight("touches", "[page-in]"),
        recorded.said.number("faults", "touches"),
        "{}",
        recorded.folded
    );
}
