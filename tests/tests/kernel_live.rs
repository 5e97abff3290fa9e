//! The live view in a terminal: what it shows is what is saved, and the terminal is as before when it ends.

use flame_bpf_tests::tmux::{AS_BEFORE, TAKEN, Tmux};
use flame_bpf_tests::{Folded, Program, Workload, binary, kernel_test, python, require};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

const SMALL: (u16, u16) = (80, 24);

/// A script that runs flame-bpf, and says how the terminal was before and after.
fn script(flags: &str) -> String {
    let flame_bpf = binary();
    let flame_bpf = flame_bpf.display();
    format!(
        "stty -a > before\n\
         bash -c 'echo $$ > pid.part; mv pid.part pid; exec {flame_bpf} {flags}' 2> said\n\
         echo $? > code\n\
         stty -a > after\n\
         sleep 1000\n"
    )
}

fn start(workload: &Workload, variables: &[(&str, &str)]) -> Result<Tmux, String> {
    let flags = format!("top -F 997 -p {}", workload.pid());
    let tmux = Tmux::start(SMALL, variables, &script(&flags))?;
    tmux.wait_for_flags(TAKEN);
    // The second window.
    tmux.wait_for_text("all 2 s");
    Ok(tmux)
}

fn signal(tmux: &Tmux, signal: Signal) {
    let pid = tmux.wait_for_file(&tmux.path("pid"));
    let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process ID"), signal).expect("it runs");
}

/// That it has ended with such a code, and the terminal is as it was. Returns what it said.
#[track_caller]
fn assert_clean(tmux: &Tmux, codes: &[&str], how: &str) -> String {
    let code = tmux.wait_for_file(&tmux.path("code"));
    let said = fs::read_to_string(tmux.path("said")).expect("stderr is a file");
    assert!(codes.contains(&code.trim()), "{how}: {code}{said}");
    assert!(!said.contains("panicked"), "{how}: {said}");
    let after = tmux.wait_for_file(&tmux.path("after"));
    let before = fs::read_to_string(tmux.path("before")).expect("it is there");
    assert_eq!(before, after, "{how}");
    assert_eq!(tmux.flags(), AS_BEFORE, "{how}");
    said
}

#[kernel_test]
fn the_terminal_is_as_before_however_the_live_view_ends() {
    let workload = Program::c("shares").start(&[]);
    for keys in ["q", "C-c"] {
        let tmux = require!(start(&workload, &[]));
        tmux.keys(&[keys]);
        let said = assert_clean(&tmux, &["0"], keys);
        assert!(said.contains("recorded") && said.contains("lost"), "{said}");
    }
    for ends in [Signal::TERM, Signal::HUP, Signal::INT] {
        let tmux = require!(start(&workload, &[]));
        signal(&tmux, ends);
        assert_clean(&tmux, &["0"], &format!("{ends:?}"));
    }
}

#[kernel_test]
fn the_terminal_is_as_before_when_the_target_ends() {
    let workload = Program::c("shares").start(&[]);
    let tmux = require!(start(&workload, &[]));
    drop(workload.stop());
    let said = assert_clean(&tmux, &["0"], "the target ended");
    assert!(said.contains("recorded"), "{said}");
}

#[kernel_test]
fn a_command_that_ends_gives_its_code_and_the_terminal_back() {
    let flags = "top -- sh -c \"echo never seen; i=0; while [ \\$i -lt 2000000 ]; do i=\\$((i+1)); done; exit 7\"";
    let tmux = require!(Tmux::start(SMALL, &[], &script(flags)));
    assert_clean(&tmux, &["7"], "the command ended");
    assert!(!tmux.screen().join("\n").contains("never seen"));
}

#[kernel_test]
fn a_stopped_live_view_leaves_the_terminal_until_it_goes_on() {
    let workload = Program::c("shares").start(&[]);
    let tmux = require!(start(&workload, &[]));
    signal(&tmux, Signal::TSTP);
    tmux.wait_for_flags(AS_BEFORE);
    signal(&tmux, Signal::CONT);
    tmux.wait_for_flags(TAKEN);
    tmux.wait_for_text("recorded");
    tmux.keys(&["q"]);
    assert_clean(&tmux, &["0"], "stopped and continued");
}

#[kernel_test]
fn control_z_suspends_and_fg_goes_on() {
    let workload = Program::c("shares").start(&[]);
    let line = format!("{} top -F 997 -p {}", binary().display(), workload.pid());
    let tmux = require!(Tmux::start(SMALL, &[], "exec bash --norc --noprofile -i\n"));
    tmux.wait_for_text("#");
    tmux.keys(&[&line, "Enter"]);
    tmux.wait_for_flags(TAKEN);
    tmux.wait_for_text("all 2 s");
    tmux.keys(&["C-z"]);
    tmux.wait_for_flags(AS_BEFORE);
    tmux.wait_for_text("Stopped");
    tmux.keys(&["fg", "Enter"]);
    tmux.wait_for_flags(TAKEN);
    tmux.wait_for_text("recorded");
    tmux.keys(&["q"]);
    tmux.wait_for_flags(AS_BEFORE);
    tmux.wait_for_text("lost");
    tmux.keys(&["stty -a > after; echo > done", "Enter"]);
    tmux.wait_for_file(&tmux.path("done"));
    let after = fs::read_to_string(tmux.path("after")).expect("it is there");
    assert!(
        after.contains(" icanon") && after.contains(" echo "),
        "{after}"
    );
}

#[kernel_test]
fn sums_on_the_screen_are_those_that_are_saved() {
    let workload = Program::c("shares").start(&[]);
    let tmux = require!(start(&workload, &[("NO_COLOR", "1"), ("LC_ALL", "C")]));
    tmux.keys(&["Space"]);
    tmux.wait_for_text("FROZEN");
    let screen = tmux.screen();
    assert_eq!(screen.len(), 24);
    // The root, and the only process: each fills its row.
    for row in [&screen[22], &screen[21]] {
        assert!(
            row.len() == 80 && row.ends_with('|'),
            "{}",
            screen.join("\n")
        );
        assert!(row.is_ascii());
    }
    assert!(screen[21].starts_with("shares"), "{}", screen.join("\n"));
    let last = &screen[23];
    let shown = last
        .strip_suffix(" samples")
        .and_then(|row| row.rsplit(' ').next());
    let shown: u64 = (shown.expect(last).replace(',', "").parse()).expect(last);
    tmux.keys(&["s", "seen.folded", "Enter"]);
    tmux.wait_for_text("wrote seen.folded");
    let saved = fs::read(tmux.path("seen.folded")).expect("it was saved");
    let saved = Folded::parse(&saved).expect("it is folded text");
    assert_eq!(saved.total(), shown, "{last}");
    assert!(saved.any(|stack| stack.has("work_round")));
    tmux.keys(&["q"]);
    assert_clean(&tmux, &["0"], "after saving");
}

#[test]
fn the_terminal_is_as_before_after_a_panic() {
    let panicking = env!("CARGO_BIN_EXE_flame-bpf-panicking");
    let script = format!(
        "stty -a > before\n{panicking} 2> said\necho $? > code\nstty -a > after\nsleep 1000\n"
    );
    let tmux = require!(Tmux::start(SMALL, &[], &script));
    tmux.wait_for_flags(TAKEN);
    tmux.wait_for_text("taken");
    assert_eq!(tmux.wait_for_file(&tmux.path("code")).trim(), "0");
    let read = |name: &str| fs::read_to_string(tmux.path(name)).expect("it is there");
    assert!(
        read("said").contains("broken on purpose"),
        "{}",
        read("said")
    );
    assert_eq!(read("before"), tmux.wait_for_file(&tmux.path("after")));
    assert_eq!(tmux.flags(), AS_BEFORE);
}

#[kernel_test]
fn interpreters_own_frames_are_left_out_as_they_are_in_files_and_native_ones_on_request() {
    let python = require!(python());
    let flags = format!(
        "top -F 997 -- {} -c \"while True: sum([i * i for i in range(999)])\"",
        python.display()
    );
    let tmux = require!(Tmux::start(SMALL, &[], &script(&flags)));
    tmux.wait_for_flags(TAKEN);
    tmux.wait_for_text("all 3 s");
    tmux.keys(&["2"]);
    tmux.wait_for_text("[py]");
    let screen = tmux.screen().join("\n");
    assert!(!screen.contains("_PyEval_EvalFrame"), "{screen}");
    tmux.keys(&["I"]);
    tmux.wait_for_text("[runtime only]");
    let screen = tmux.screen();
    let rows = screen.iter().skip(2).filter(|row| row.contains('%'));
    assert!(rows.clone().all(|row| row.contains("[py]")), "{screen:?}");
    assert!(rows.count() > 0, "{screen:?}");
    tmux.keys(&["q"]);
    // The command goes on; Ctrl-C ends both.
    tmux.wait_for_flags(AS_BEFORE);
    tmux.keys(&["C-c"]);
    assert_clean(&tmux, &["0", "130", "143"], "ended");
}
