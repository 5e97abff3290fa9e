//! Names of processes that live for milliseconds, and have ended before their mappings could be read.

use std::fs;
use std::thread;
use std::time::Duration;

use flame_bpf_tests::{
    Folded, Invocation, NEARLY_ALL, Program, Run, Stack, kernel_test, require, tool,
};

/// Whether all frames of a stack lie in something that is known.
fn is_placed(stack: &Stack) -> bool {
    !stack.has("[unknown]")
}

/// Whether the program's own functions have their names in a stack.
fn is_named(stack: &Stack, module: &str) -> bool {
    is_placed(stack) && !stack.mentions(&format!("[{module}+0x"))
}

#[track_caller]
fn assert_named(folded: &Folded, comm: &str, module: &str) {
    let all: Vec<&Stack> = folded.only(|stack| stack.root() == comm).collect();
    assert!(all.len() > 20, "only {} stacks of {comm}", all.len());
    let named = folded.share_among(
        |stack| stack.root() == comm,
        |stack| is_named(stack, module),
    );
    let without: Vec<_> = all
        .iter()
        .filter(|stack| !is_named(stack, module))
        .take(20)
        .collect();
    // A program that runs for a millisecond has at most one sample from before it is known.
    assert!(
        named >= 0.99,
        "names in {named:.4} of {comm}'s samples; not in {without:?}"
    );
}

/// Three seconds of the whole machine.
fn record_all() -> Run {
    let run = Invocation::new("-v -f -a -F 997 -d 3").run();
    run.expect_code(0)
}

#[kernel_test]
fn programs_that_run_for_a_millisecond_have_names() {
    let _storm = Program::c("execstorm").start(&["300", "1000", "5"]);
    let run = record_all();
    run.lossless_balance();
    let folded = run.folded();
    // They were executed as `/proc/self/exe`. Part of their life is the dynamic loader's.
    assert_named(&folded, "exe", "execstorm");
    assert!(folded.any(|stack| stack.has("program_work")), "{folded}");
}

#[kernel_test]
fn children_that_run_for_less_than_a_millisecond_have_names() {
    let _storm = Program::c("forkstorm").start(&["2000", "300", "5"]);
    let run = record_all();
    run.lossless_balance();
    let folded = run.folded();
    assert_named(&folded, "forkstorm", "forkstorm");
    assert!(folded.any(|stack| stack.has("child_work")), "{folded}");
}

#[kernel_test]
fn short_programs_have_names_without_unwind_tables() {
    let _storm = Program::c("forkstorm").start(&["1000", "500", "5"]);
    let folded = Invocation::new("-f -a -F 997 -d 2 --call-graph fp")
        .run()
        .expect_code(0)
        .folded();
    // A frame pointer that holds something else leads nowhere, but not in the program's own code.
    let own = |stack: &Stack| stack.root() == "forkstorm" && stack.has("child_work");
    assert!(folded.any(own), "{folded}");
    let placed = folded.share_among(|stack| stack.root() == "forkstorm", is_placed);
    // A frame pointer that a function uses for something else leads to places that nothing is at.
    assert!(placed >= 0.97, "{placed:.4}: {folded}");
}

/// How often a process's first thread has waited so far.
fn waits(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .expect("the kernel counts them");
    line.trim().parse().expect("it is a number")
}

/// How many processes and threads the machine has begun so far.
fn begun() -> u64 {
    let numbers = fs::read_to_string("/proc/stat").expect("it is there");
    let number = numbers
        .lines()
        .find_map(|line| line.strip_prefix("processes "));
    number
        .and_then(|number| number.parse().ok())
        .expect("the kernel counts them")
}

#[kernel_test]
fn new_processes_do_not_wake_the_recorder_one_by_one() {
    const SECONDS: u64 = 1;
    // Ten times to look how full tables are, now and then to look again at who is young, and for new files.
    const WAITS: u64 = 100 * SECONDS;
    let _storm = Program::c("forkstorm").start(&["2000", "300", "5"]);
    // Without tables, which are loaded as soon as a program runs that has none yet.
    for flags in ["-K", "--call-graph fp"] {
        let mut running = Invocation::new("-v -f -a -F 997 -d 2.5")
            .args(flags)
            .start();
        running.wait_until_attached();
        thread::sleep(Duration::from_secs(1));
        let (waits_before, begun_before) = (waits(running.pid()), begun());
        thread::sleep(Duration::from_secs(SECONDS));
        let waits = waits(running.pid()) - waits_before;
        let storm = begun() - begun_before;
        let run = running.finish().expect_code(0);
        run.balance().assert_lossless();
        let own = |stack: &Stack| stack.root() == "forkstorm";
        assert!(run.folded().any(own), "{flags}");
        // On a machine so busy that it begins few, there is nothing to see.
        assert!(
            waits < WAITS.max(storm / 4),
            "{flags}: {waits} waits for {storm} processes"
        );
    }
}

#[kernel_test]
fn short_waits_of_short_programs_have_names() {
    let mut running = Invocation::new("-f -a --off-cpu -d 2").start();
    running.wait_until_attached();
    // Of what waited before that, user space reads what it still finds.
    let _storm = Program::c("execstorm").start(&["200", "1000", "5"]);
    let folded = running.finish().expect_code(0).folded();
    let theirs = |stack: &Stack| stack.root() == "exe";
    assert!(folded.any(theirs), "{folded}");
    let placed = folded.share_among(theirs, is_placed);
    assert!(placed >= 0.99, "{placed:.4}: {folded}");
}

#[kernel_test]
fn a_command_has_names_from_its_first_instruction_on() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("profile.folded");
    let run = Invocation::new("-F 19999 -U")
        .path("-o", &file)
        .command(Program::c("execstorm").path(), &["0", "3000", "5"])
        .run()
        .expect_code(0);
    let folded = run.folded_file(&file);
    assert!(folded.any(|stack| stack.has("program_work")), "{folded}");
    let placed = folded.share(is_placed);
    assert!(placed >= 0.99, "{placed:.4}: {folded}");
    // And of what comes before: exec and the dynamic loader.
    let first = |stack: &Stack| !stack.has("program_work");
    let placed = folded.share_among(first, is_placed);
    assert!(placed >= 0.99, "{placed:.4}: {folded}");
}

/// Copies a program to a path of its own, runs it from there for a few milliseconds, and deletes it: so many
/// times, as the tests of a build do.
const RUN_AND_DELETE: &str = "\
for number in $(seq 1 150); do cp \"$1\" \"$2/once$number\"; \"$2/once$number\" 0 20000 5; rm \"$2/once$number\"; done";

#[kernel_test]
fn programs_deleted_after_milliseconds_have_names() {
    let shell = require!(tool("sh"));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut running = Invocation::new("-f -a -F 997 -d 4").start();
    running.wait_until_attached();
    let mut script = std::process::Command::new(shell)
        .args(["-c", RUN_AND_DELETE, "sh"])
        .arg(Program::c("execstorm").path())
        .arg(folder.path())
        .spawn()
        .expect("a shell can be started");
    let folded = running.finish().expect_code(0).folded();
    script.kill().ok();
    script.wait().ok();
    let theirs = |stack: &Stack| stack.root().starts_with("once");
    assert!(folded.any(theirs), "{folded}");
    let placed = folded.share_among(theirs, is_placed);
    assert!(placed >= 0.99, "{placed:.4}: {folded}");
    // A program whose file was not opened in time is shown by the file's name.
    let named = folded.share_among(theirs, |stack| is_placed(stack) && !stack.mentions("[once"));
    assert!(named > NEARLY_ALL, "{named:.4}: {folded}");
}
