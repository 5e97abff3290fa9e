//! The balance: each firing is recorded, filtered, or lost under a name, and what is recorded is in
//! the output.

use std::fs;

use flame_bpf_tests::{Balance, Invocation, NEARLY_ALL, Program, Run, Stack, kernel_test};

/// Makes one sample weigh one on every machine, so that weights can be compared with counters.
const EVENT: &str = "-v -f -e cpu-clock -F 997";

/// Checks that nothing went missing between the first firing and the last line of output.
#[track_caller]
fn assert_conserved(run: &Run) -> Balance {
    let balance = run.balance();
    balance.assert_even();
    assert_eq!(
        run.folded().total(),
        balance.recorded,
        "the folded weight is not what was recorded; stderr:\n{}",
        run.stderr
    );
    balance
}

#[kernel_test]
fn nothing_is_lost_under_a_storm_of_short_lived_processes_with_deep_stacks() {
    let _storms = [
        Program::c("forkstorm").start(&["300", "1500", "200"]),
        Program::c("forkstorm")
            .named("second_storm")
            .start(&["50", "10000", "900"]),
    ];
    let _deep = Program::c("deep").start(&["2000"]);
    let _threads = Program::c("spin").start(&["a=500/500", "b=700/300", "c=100/100"]);
    let _pipe = Program::c("pipe").start(&[]);
    let run = Invocation::new(EVENT)
        .arg("-a")
        .flag("-d", 3)
        .run()
        .expect_code(0);
    let balance = assert_conserved(&run);
    balance.assert_lossless();
    assert!(balance.recorded > 0, "{balance:?}");
    let folded = run.folded();
    for name in ["forkstorm", "second_storm", "deep", "pipe"] {
        assert!(
            folded.any(|stack| stack.root() == name),
            "{name} is not in {folded}"
        );
    }
}

#[kernel_test]
fn nothing_is_lost_when_every_process_has_its_own_deep_stacks() {
    let _storm = Program::c("execstorm").start(&["200", "5000", "900"]);
    let run = Invocation::new(EVENT)
        .arg("-a")
        .flag("-d", 3)
        .run()
        .expect_code(0);
    let balance = assert_conserved(&run);
    balance.assert_lossless();
    let folded = run.folded();
    // `/proc/self/exe` is what was executed, so `exe` is the name.
    let deep = |stack: &Stack| stack.has_chain(&["descend"; 890]);
    assert!(folded.any(deep), "{folded}");
}

#[kernel_test]
fn labels_split_stacks_without_losing_samples() {
    let _storm = Program::c("forkstorm").start(&["200", "2000", "50"]);
    let _threads = Program::c("spin").start(&["a=500/500", "b=700/300"]);
    let run = Invocation::new(EVENT)
        .arg("-a")
        .arg("--per-thread")
        .arg("--per-cpu")
        .flag("-d", 3)
        .run()
        .expect_code(0);
    let balance = assert_conserved(&run);
    balance.assert_lossless();
}

#[kernel_test]
fn every_target_and_filter_flag_filters_without_losing_samples() {
    let pipe = Program::c("pipe").start(&[]);
    let _other = Program::c("shares").start(&[]);
    let pid = pipe.pid();
    for flags in [
        &format!("-p {pid}"),
        &format!("-t {pid}"),
        &format!("-p {pid} -U"),
        &format!("-p {pid} -K"),
        "-a -C 0",
        "-a -U",
        "-a -K",
        "-a -I",
    ] {
        let run = Invocation::new(&format!("{EVENT} -d 1 {flags}"))
            .run()
            .expect_code(0);
        let balance = assert_conserved(&run);
        balance.assert_lossless();
        // `shares` is nearly always in user mode, and is not asked for.
        if flags == "-a -K" {
            assert!(balance.filtered_total() > 0, "{flags}: {balance:?}");
        }
    }
}

#[kernel_test]
fn the_counters_of_a_launched_command_balance() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("profile.folded");
    let run = Invocation::new("-v -e cpu-clock -F 997")
        .path("-o", &file)
        .command(Program::c("forkstorm").path(), &["100", "2000", "20", "3"])
        .run()
        .expect_code(0);
    let balance = run.balance();
    balance.assert_lossless();
    assert_eq!(run.folded_file(&file).total(), balance.recorded);
}

#[kernel_test]
fn two_recordings_at_once_do_not_disturb_each_other() {
    let (one, two) = (
        Program::c("shares").start(&[]),
        Program::c("deep").start(&["300"]),
    );
    let runs = [one.pid(), two.pid()]
        .map(|pid| Invocation::new(EVENT).flag("-p", pid).flag("-d", 1).start());
    for (running, function) in runs.into_iter().zip(["work_round", "bottom"]) {
        let run = running.finish().expect_code(0);
        let balance = assert_conserved(&run);
        balance.assert_lossless();
        let folded = run.folded();
        assert!(
            folded.share(|stack| stack.has(function)) > NEARLY_ALL,
            "{folded}"
        );
    }
}

#[kernel_test]
fn the_summary_names_samples_stacks_losses_and_memory() {
    let workload = Program::c("shares").start(&[]);
    Invocation::new("-f -F 997 -d 1")
        .flag("-p", workload.pid())
        .run()
        .expect_stderr("samples")
        .expect_stderr("stacks")
        .expect_any_stderr(&["lost", "none were lost", "nothing lost"])
        .expect_any_stderr(&["MiB", "MB", "KiB"]);
}

/// The memory that the kernel accounts to the BPF maps that a process holds.
fn map_bytes(pid: u32) -> u64 {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return 0;
    };
    let maps = files.flatten().filter(|file| {
        fs::read_link(file.path()).is_ok_and(|target| target.to_string_lossy().contains("bpf-map"))
    });
    let mut bytes = std::collections::BTreeMap::new();
    for map in maps {
        let number = map.file_name().to_string_lossy().into_owned();
        let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap_or_default();
        let field = |name: &str| {
            about.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key == name).then(|| value.trim().parse::<u64>().ok())?
            })
        };
        if let (Some(id), Some(size)) = (field("map_id"), field("memlock")) {
            // Two descriptors may lead to one map.
            bytes.insert(id, size);
        }
    }
    bytes.values().sum()
}

#[kernel_test]
fn bpf_memory_stays_within_its_budget() {
    let mut running = Invocation::new("-v -f -a -F 997 -d 1").start();
    running.wait_until_attached();
    let bytes = map_bytes(running.pid());
    let run = running.finish().expect_code(0);
    assert!(bytes > 0, "no BPF map was seen; stderr:\n{}", run.stderr);
    assert!(bytes <= 32 << 20, "{bytes} bytes of BPF maps");
    run.expect_any_stderr(&["MiB", "MB"]);
}
