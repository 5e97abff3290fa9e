//! Wall time: what the kernel's own accounts say of each thread, whatever the thread does, and however many threads there
//! are for each CPU.

use flame_bpf_tests::{
    Account, Folded, Invocation, Program, Run, Stack, assert_near, kernel_test, profile,
};

/// How long the workload keeps its accounts for.
const SECONDS: f64 = 4.0;

/// How far a thread's times may add up to something else than the time that passed, as a share of that.
const WHOLE_TOLERANCE: f64 = 0.01;

/// How far each of a thread's times may be from what the kernel's accounts say, as a share of the time that passed: they are
/// read a little after the recording begins and before it ends, and do not have a wait that is not over.
const TOLERANCE: f64 = 0.05;

const RUNNABLE: &str = "[runnable]";
const BLOCKED: &str = "[blocked]";

/// Seconds on a CPU, waiting for one, and blocked.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    ran: f64,
    runnable: f64,
    blocked: f64,
}

impl Times {
    fn sum(self) -> f64 {
        self.ran + self.runnable + self.blocked
    }
}

fn times(folded: &Folded, wanted: impl Fn(&Stack) -> bool) -> Times {
    let seconds =
        |leaf: &dyn Fn(&str) -> bool| folded.seconds(|stack| wanted(stack) && leaf(stack.leaf()));
    Times {
        ran: seconds(&|leaf| leaf != RUNNABLE && leaf != BLOCKED),
        runnable: seconds(&|leaf| leaf == RUNNABLE),
        blocked: seconds(&|leaf| leaf == BLOCKED),
    }
}

/// A run, the kernel's accounts of its threads, and the seconds that these leave out.
fn record(flags: &str, arguments: &[&str]) -> (Run, Vec<Account>, f64) {
    let workload = Program::c("wall").start(arguments);
    let before = stolen();
    let (run, said) = Invocation::new(flags).run_accounted(workload, SECONDS);
    let stolen = stolen() - before;
    run.lossless_balance();
    run.balance_of("wall").assert_lossless();
    (run, said.accounts(), stolen)
}

/// How long other virtual machines have had our CPUs while these had work, in seconds: the eighth number of `/proc/stat`. A
/// thread has its CPU meanwhile, as far as switches tell, and the kernel's account of its time does not have it.
fn stolen() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/stat").expect("/proc is there");
    let ticks = text.split_whitespace().nth(8).expect("a line of all CPUs");
    ticks.parse::<f64>().expect("a number") / TICKS_PER_SECOND
}

/// As [`assert_near`], where the account lacks between none and all of the seconds that were `stolen`; if they are negative, has
/// so many too much.
#[track_caller]
fn assert_accounted(
    what: &str,
    shown: f64,
    account: f64,
    stolen: f64,
    tolerance: f64,
    folded: &Folded,
) {
    let half = stolen / 2.0;
    assert_near(what, shown, account + half, tolerance + half.abs(), folded);
}

#[track_caller]
fn assert_times(spinners: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("written");
    let file = file.to_str().expect("a path of text");
    let (run, truth, stolen) = record("-v -f --wall --per-thread -F 499", &[spinners, file]);
    let folded = run.folded();
    let first = truth.first().expect("there are threads");
    let passed = first.ran + first.runnable + first.blocked;
    // One sleeps throughout, and so says how long the recording was.
    let whole = times(&folded, |stack| stack.has("sleep_through")).sum();
    assert_near("all", whole, passed, TOLERANCE * passed, &folded);
    for account in &truth {
        let function = &account.function;
        let tid = format!("[tid {}]", account.tid);
        let seen = times(&folded, |stack| stack.has(&tid));
        assert_near(
            function,
            seen.sum(),
            whole,
            WHOLE_TOLERANCE * whole,
            &folded,
        );
        for (what, seen, expected, stolen) in [
            ("on a CPU", seen.ran, account.ran, stolen),
            ("without a CPU", seen.runnable, account.runnable, 0.0),
            // The rest of the time that passed.
            ("blocked", seen.blocked, account.blocked, -stolen),
        ] {
            let what = format!("{function} {what}");
            let tolerance = TOLERANCE * passed;
            assert_accounted(&what, seen, expected, stolen, tolerance, &folded);
        }
    }
    // Time goes to the function that spends it.
    for function in ["spin_only", "sleep_only", "contend", "write_out"] {
        let threads = truth.iter().filter(|thread| thread.function == function);
        let blocked: Vec<f64> = threads.map(|thread| thread.blocked).collect();
        let seen = times(&folded, |stack| stack.has(function));
        let tolerance = TOLERANCE * passed * blocked.len() as f64;
        assert_accounted(
            function,
            seen.blocked,
            blocked.iter().sum(),
            -stolen,
            tolerance,
            &folded,
        );
    }
}

#[kernel_test(timing)]
fn the_times_of_each_thread_equal_the_kernels_accounts() {
    assert_times("1");
}

#[kernel_test(timing)]
fn the_times_of_threads_are_right_with_more_threads_than_cpus() {
    assert_times("6");
}

#[kernel_test(timing)]
fn running_time_is_attributed_by_samples() {
    let (run, truth, stolen) = record("-v -f --wall -F 997", &["1"]);
    let folded = run.folded();
    assert!(!folded.any(|stack| stack.mentions("[tid ")), "{folded}");
    let ran: f64 = truth.iter().map(|thread| thread.ran).sum();
    let seen = times(&folded, |_| true).ran;
    let tolerance = TOLERANCE * ran + 0.05;
    assert_accounted("all", seen, ran, stolen, tolerance, &folded);
    for function in ["spin_only", "spin_half", "contend"] {
        assert!(
            folded.any(|stack| stack.has(function) && stack.has("burn")),
            "{function} in {folded}"
        );
    }
    run.expect_stderr("attributed by")
        .expect_stderr("waited for a CPU for");
}

#[kernel_test]
fn threads_that_sleep_throughout_can_be_left_out() {
    let workload = Program::c("wall").start(&["1"]);
    let run = profile("-f --wall --no-idle-threads -d 2", &workload)
        // The first thread, and the one that waits for what never comes.
        .expect_stderr("2 threads that slept throughout");
    let folded = run.folded();
    assert!(!folded.any(|stack| stack.has("sleep_through")), "{folded}");
    assert!(folded.any(|stack| stack.has("sleep_only")), "{folded}");
}

#[kernel_test]
fn blocked_time_has_its_reason() {
    let workload = Program::c("wall").start(&["1"]);
    let folded = profile("-f -U --wall --reasons -d 2", &workload).folded();
    for (function, reason) in [("sleep_only", "[sleep]"), ("sleep_through", "[read: pipe]")] {
        assert!(
            folded.any(|stack| stack.has(function) && stack.leaf() == reason),
            "{function}, {reason} in {folded}"
        );
    }
    assert!(
        !folded.any(|stack| stack.mentions("entry_SYSCALL")),
        "{folded}"
    );
}

#[kernel_test]
fn the_wall_time_of_a_command_runs_from_its_start_to_its_exit() {
    // Runs for a second as `sh` measures it, and is held before.
    let folder = tempfile::tempdir().expect("a folder");
    let graph = folder.path().join("wall.folded");
    let run = Invocation::new("-v --wall")
        .path("-o", &graph)
        .command(std::path::Path::new("/bin/sleep"), &["1"])
        .run()
        .expect_code(0);
    for balance in [run.balance(), run.balance_of("wall")] {
        balance.assert_even();
    }
    let folded = run.folded_file(&graph);
    let seconds = folded.total() as f64 / 1e6;
    assert!((1.0..1.5).contains(&seconds), "{seconds} s in {folded}");
}

#[kernel_test]
fn a_wall_time_graph_has_a_legend() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = folder.path().join("wall.svg");
    let workload = Program::c("wall").start(&["1"]);
    Invocation::new("--wall -d 1")
        .flag("-p", workload.pid())
        .path("-o", &graph)
        .run()
        .expect_code(0);
    let svg = std::fs::read_to_string(graph).expect("the graph is there");
    assert!(
        svg.contains("wall: wall (PID") && svg.contains("cold: blocked"),
        "{svg}"
    );
}
