//! Outputs of perf and bpftrace on this machine, read by `render`; and a recording shown in part.

use std::path::Path;
use std::process::{Command, Stdio};

use flame_bpf_tests::{Folded, Invocation, Program, kernel_test, profile, require};

/// Whether a program is installed, and what to do if it is not.
fn has(program: &str, package: &str) -> Result<(), String> {
    let run = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match run {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("no {program}; apt install {package}")),
    }
}

/// Saves a shell command's stdout in a file.
fn saved(command: &str, to: &Path) {
    let line = format!("{command} > {}", to.display());
    let run = Command::new("sh").args(["-c", &line]).output();
    let run = run.expect("a shell can be started");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{line}: {said}");
}

/// A file's profile, in which the chains of `shares` have their shares.
#[track_caller]
fn rendered(file: &Path, kind: &str) -> Folded {
    let run = Invocation::new("render")
        .arg(file.display())
        .arg("-f")
        .run()
        .expect_code(0)
        .expect_stderr(&format!("input: {kind}: "));
    let folded = run.folded();
    let alpha = folded.share(|stack| stack.has("alpha"));
    assert!((0.3..0.7).contains(&alpha), "{alpha}: {folded}");
    assert!(
        folded.any(|stack| stack.has_chain(&["alpha", "alpha_inner"])),
        "{folded}"
    );
    folded
}

#[kernel_test]
fn perf_script_text_of_this_machine_is_read() {
    require!(has("perf", "linux-perf"));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let workload = Program::c("shares").start(&[]);
    let [data, text] = ["perf.data", "perf.txt"].map(|name| folder.path().join(name));
    let record = format!(
        "perf record -q -e cpu-clock -c 1000000 -g -p {} -o {} -- sleep 1 2>/dev/null",
        workload.pid(),
        data.display()
    );
    saved(&record, &folder.path().join("said"));
    for fields in [
        "",
        "-F comm,pid,tid,time,period,event,ip,sym,dso",
        "-F +pid --no-inline",
    ] {
        saved(
            &format!("perf script -i {} {fields} 2>/dev/null", data.display()),
            &text,
        );
        let folded = rendered(&text, "perf script text");
        assert!(
            folded.stacks.iter().all(|stack| stack.root() == "shares"),
            "{folded}"
        );
        // Microseconds.
        let total = folded.total();
        assert!((100_000..1_200_000).contains(&total), "{fields}: {total}");
    }
}

#[kernel_test]
fn bpftrace_maps_of_this_machine_are_read() {
    require!(has("bpftrace", "bpftrace"));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let workload = Program::c("shares").start(&[]);
    let text = folder.path().join("bpftrace.txt");
    let pid = workload.pid();
    for keys in [
        "ustack",
        "comm, ustack, kstack",
        "kstack, ustack(perf), pid, comm",
    ] {
        let script = format!(
            "profile:hz:499 /pid == {pid}/ {{ @[{keys}] = count(); @all = count(); }} interval:s:1 {{ exit(); }}"
        );
        saved(&format!("bpftrace -e '{script}' 2>/dev/null"), &text);
        let folded = rendered(&text, "bpftrace maps");
        let has_comm = keys.contains("comm");
        assert!(
            folded
                .stacks
                .iter()
                .all(|stack| (stack.root() == "shares") == has_comm),
            "{folded}"
        );
        let dump = std::fs::read_to_string(&text).expect("it was just written");
        let all = dump.lines().find_map(|line| line.strip_prefix("@all: "));
        let all: u64 = all
            .and_then(|all| all.trim().parse().ok())
            .expect("bpftrace counts");
        assert_eq!(folded.total(), all, "{dump}");
    }
}

#[kernel_test]
fn a_recording_shows_what_is_selected_and_says_what_is_not() {
    let workload = Program::c("shares").start(&[]);
    let run = profile(
        "-f -v -F 997 -d 1 --focus ^alpha$ --ignore nothing_is_called_so --root-at ^alpha$",
        &workload,
    )
    .expect_stderr("not shown: ")
    .expect_stderr("no frame matches --focus ^alpha$");
    let folded = run.folded();
    assert!(
        folded.stacks.iter().all(|stack| stack.root() == "alpha"),
        "{folded}"
    );
    let recorded = run.balance().recorded;
    assert!(
        folded.total() > 0 && folded.total() < recorded,
        "{} of {recorded}",
        folded.total()
    );
    let says = format!("shown: {} samples", folded.total());
    run.expect_stderr(&says);
}
