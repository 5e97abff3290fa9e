//! `flame-bpf -- COMMAND`: from its first instruction to its exit code.

use std::fs;

use flame_bpf_tests::{Invocation, NEARLY_ALL, Program, Said, Stack, kernel_test};
use rustix::process::Signal;
use tempfile::tempdir;

/// A folder and the name of a folded file in it: stdout belongs to the command.
struct Output {
    folder: tempfile::TempDir,
}

impl Output {
    fn new() -> Self {
        Self {
            folder: tempdir().expect("a temporary folder can be made"),
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("profile.folded")
    }

    fn invocation(&self, flags: &str) -> Invocation {
        Invocation::new(flags).path("-o", &self.path())
    }
}

#[kernel_test]
fn the_exit_code_is_passed_on() {
    let output = Output::new();
    for code in [0, 1, 7, 255] {
        output
            .invocation("-F 997")
            .command(Program::c("exit_code").path(), &[&code.to_string()])
            .run()
            .expect_code(code);
    }
}

#[kernel_test]
fn a_fatal_signal_is_passed_on_as_128_plus_its_number() {
    let output = Output::new();
    output
        .invocation("-F 997")
        .command("/bin/sh".as_ref(), &["-c", "kill -SEGV $$"])
        .run()
        .expect_code(128 + 11);
}

#[kernel_test]
fn a_command_of_50_ms_is_sampled_from_before_main_to_its_exit() {
    let output = Output::new();
    let run = output
        .invocation("-F 997")
        .command(Program::c("exit_code").path(), &["0"])
        .run()
        .expect_code(0);
    let folded = run.folded_file(&output.path());
    let command = |stack: &Stack| stack.root() == "exit_code";
    for function in ["early", "late"] {
        let share = folded.share_among(command, |stack| stack.has(function));
        // Each takes about half of the time; of 50 ms there are some fifty samples.
        assert!(share > 0.2, "{function} has {share:.3} of {folded}");
    }
    assert!(folded.share(command) > 0.9999, "{folded}");
}

#[kernel_test]
fn a_command_runs_as_the_user_that_is_asked_for() {
    let output = Output::new();
    let script = "id -un; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo $USER";
    let run = output
        .invocation("-F 997 --as-user=nobody")
        .command("/bin/sh".as_ref(), &["-c", script])
        .run()
        .expect_code(0);
    assert_eq!(String::from_utf8_lossy(&run.stdout), "nobody\nnobody\n");
    assert!(run.folded_file(&output.path()).total() > 0);
    output
        .invocation("--as-user=no-such-user")
        .command("/bin/true".as_ref(), &[])
        .run()
        .expect_code(1)
        .expect_stderr("there is no user no-such-user");
}

/// Events that are counted one by one would show how we start the command: its copy of our memory, a read of a pipe, an
/// `exec`.
#[kernel_test]
fn counting_begins_when_the_command_runs_its_own_program() {
    for flags in ["-e page-faults", "--syscalls", "-F 4999"] {
        let output = Output::new();
        let run = output
            .invocation(flags)
            .command(Program::c("exit_code").path(), &["0"])
            .run()
            .expect_code(0);
        let folded = run.folded_file(&output.path());
        assert!(folded.total() > 5, "{flags}: {folded}");
        let ours =
            folded.weight(|stack| stack.root() != "exit_code" || stack.has("__execvpe_common"));
        assert_eq!(ours, 0, "{flags}: {folded}");
    }
}

#[kernel_test(timing)]
fn the_shares_of_a_command_are_as_measured() {
    let output = Output::new();
    let run = output
        .invocation("-F 997")
        .command(Program::c("shares").path(), &["6000"])
        .run()
        .expect_code(0);
    let folded = run.folded_file(&output.path());
    // Chance alone stays well within this, with the thousands of samples taken here.
    folded.assert_shares(&Said::read(&run.stdout).shares(), 0.02);
    let own = folded.share(|stack| stack.root() == "shares");
    // In six seconds, the moment before it has become the command is less than this.
    assert!(own > 0.98, "the command has {own:.3} of {folded}");
}

#[kernel_test]
fn descendants_of_a_command_are_sampled_and_no_other_process() {
    let shares = Program::c("shares");
    let bystander = shares.named("bystander").start(&[]);
    let (child, orphan) = (shares.named("grandchild"), shares.named("orphan"));
    let output = Output::new();
    // The inner shell ends at once, so its child is adopted by another process; a last command would
    // be executed in place of the shell.
    let script = format!(
        "sh -c '{} 700 >/dev/null &'; sh -c '{} 700; true'; sleep 1; true",
        orphan.path().display(),
        child.path().display()
    );
    let run = output
        .invocation("-F 997")
        .command("/bin/sh".as_ref(), &["-c", &script])
        .run()
        .expect_code(0);
    let folded = run.folded_file(&output.path());
    for name in ["grandchild", "orphan"] {
        let named = folded.share_among(
            |stack| stack.root() == name,
            |stack| stack.has("work_round"),
        );
        assert!(
            named > NEARLY_ALL,
            "{name} is named in {named:.3} of {folded}"
        );
    }
    assert!(!folded.any(|stack| stack.root() == "bystander"), "{folded}");
    drop(bystander);
}

#[kernel_test]
fn a_process_that_the_command_only_signals_is_not_its_descendant() {
    let older = Program::c("shares").named("older").start(&[]);
    let output = Output::new();
    let run = output
        .invocation("-F 997")
        .command(Program::c("exit_code").path(), &["0", "200", "200"])
        .run()
        .expect_code(0);
    assert!(
        !run.folded_file(&output.path())
            .any(|stack| stack.root() == "older")
    );
    drop(older);
}

#[kernel_test]
fn an_interrupt_reaches_the_command_and_its_exit_code_is_passed_on() {
    let output = Output::new();
    let mut running = output
        .invocation("-F 997")
        .command(Program::c("exit_code").path(), &["0", "60000", "60000"])
        .start();
    running.wait_until_attached();
    // The command must have had time to say what it does with the signal.
    running.wait_for(|pid| {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children
            .unwrap_or_default()
            .split_whitespace()
            .any(|child| {
                let comm = fs::read_to_string(format!("/proc/{child}/comm"));
                let used = flame_bpf_tests::thread_cpu_ns(child);
                comm.is_ok_and(|comm| comm == "exit_code\n") && used > 200_000_000
            })
    });
    running.signal(Signal::INT);
    let run = running.finish().expect_code(42);
    let folded = run.folded_file(&output.path());
    assert!(folded.any(|stack| stack.has("early")), "{folded}");
}

#[kernel_test]
fn a_command_that_does_not_exist_is_named_and_nothing_is_written() {
    let output = Output::new();
    let run = output
        .invocation("-F 997")
        .command("/no/such/command".as_ref(), &[])
        .run()
        .expect_no_panic()
        .expect_stderr("/no/such/command");
    assert_ne!(run.code(), 0, "{}", run.stderr);
    assert_eq!(
        fs::read_dir(output.folder.path())
            .expect("the folder is there")
            .count(),
        0
    );
}

#[kernel_test]
fn the_command_keeps_its_streams_and_folder() {
    let output = Output::new();
    let run = output
        .invocation("-F 997")
        .within(output.folder.path())
        .command("/bin/sh".as_ref(), &["-c", "pwd; echo heard >&2"])
        .run()
        .expect_stderr("heard");
    let folder = output
        .folder
        .path()
        .canonicalize()
        .expect("the folder is there");
    assert_eq!(
        String::from_utf8_lossy(&run.stdout).trim(),
        folder.display().to_string()
    );
}

#[kernel_test]
fn the_whole_machine_can_be_sampled_for_as_long_as_a_command_runs() {
    let bystander = Program::c("shares").named("bystander").start(&[]);
    let output = Output::new();
    let run = output
        .invocation("-a -F 997")
        .command("/bin/sleep".as_ref(), &["1"])
        .run()
        .expect_code(0);
    let folded = run.folded_file(&output.path());
    assert!(
        folded.any(|stack| stack.root() == "bystander" && stack.has("alpha")),
        "{folded}"
    );
    drop(bystander);
}
