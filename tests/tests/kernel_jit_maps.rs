//! Code that runtimes make: named by their own maps, in other namespaces too, and beyond their end.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use flame_bpf_tests::{
    Folded, Invocation, NEARLY_ALL, Program, Run, Stack, Workload, kernel_test, require, tool,
};
use tempfile::tempdir;

/// Whether the workload has machine code for this processor.
fn has_machine_code() -> Result<(), String> {
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        Ok(())
    } else {
        Err("the workload has no machine code for this architecture".to_owned())
    }
}

fn record(pid: u32) -> Run {
    record_with("", pid)
}

/// By what the runtime writes alone, not by what its memory tells.
fn record_by_map(pid: u32) -> Run {
    record_with("--no-runtimes", pid)
}

fn record_with(flags: &str, pid: u32) -> Run {
    Invocation::new(&format!("-f -F 997 -d 1 --annotate {flags}"))
        .flag("-p", pid)
        .run()
        .expect_code(0)
}

/// The share of stacks in which `call_the_unnamed` calls `name`.
fn called(folded: &Folded, name: &str) -> f64 {
    folded.share(|stack| stack.has_chain(&["call_the_unnamed", name]))
}

/// A file of a runtime's, which nobody else will remove.
struct Left(PathBuf);

impl Drop for Left {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

fn map_of(pid: u32) -> Left {
    Left(format!("/tmp/perf-{pid}.map").into())
}

#[kernel_test]
fn a_perf_map_names_jit_code() {
    require!(has_machine_code());
    let workload = Program::c("anonymous").start(&["map"]);
    let _map = map_of(workload.pid());
    let run = record(workload.pid());
    let folded = run.folded();
    assert!(
        called(&folded, "told_in_a_map_[j]") > NEARLY_ALL,
        "{folded}"
    );
    assert!(!run.stderr.contains("unnamed: "), "{}", run.stderr);
}

#[kernel_test]
fn a_jitdump_names_jit_code() {
    require!(has_machine_code());
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().display().to_string();
    let workload = Program::c("anonymous").start(&["dump", &path]);
    let folded = record(workload.pid()).folded();
    assert!(
        called(&folded, "told_in_a_dump_[j]") > NEARLY_ALL,
        "{folded}"
    );
}

#[kernel_test]
fn the_summary_reports_nameless_jit_code_without_a_map() {
    require!(has_machine_code());
    let workload = Program::c("anonymous").start(&[]);
    let missing = format!("/tmp/perf-{}.map", workload.pid());
    record(workload.pid())
        .expect_stderr("of leaves, in code that")
        .expect_stderr(&missing);
}

#[kernel_test]
fn jit_names_outlive_their_process() {
    require!(has_machine_code());
    let mortal = Program::c("anonymous").named("mortal");
    let mut running = Invocation::new("-f -a -F 997 -d 4 --annotate").start();
    running.wait_until_attached();
    let mortal = mortal.start(&["map", "1000"]);
    let _map = map_of(mortal.pid());
    mortal.stop_by_itself();
    let folded = running.finish().expect_code(0).folded();
    let named = folded.share_among(
        |stack| stack.root() == "mortal",
        |stack| stack.has("told_in_a_map_[j]"),
    );
    let all: Vec<&Stack> = folded.only(|stack| stack.root() == "mortal").collect();
    assert!(named > NEARLY_ALL, "names in {named:.3}: {all:?}");
}

#[kernel_test]
fn a_perf_map_in_a_pid_namespace_is_found_by_its_inner_pid() {
    require!(has_machine_code());
    require!(tool("unshare"));
    let program = Program::c("anonymous").named("inmate");
    // The inner PID is 1, and /tmp is one that nobody outside sees.
    let script = format!(
        "mount -t tmpfs none /tmp && exec {} map",
        program.path().display()
    );
    let copy = tempdir().expect("a temporary folder can be made");
    // The program itself lies in /tmp, so it is reached through a folder that stays.
    let script = script.replace(
        "mount",
        &format!(
            "mkdir -p {0}/bin && mount --bind {1} {0}/bin && cd {0}/bin && mount",
            copy.path().display(),
            program
                .path()
                .parent()
                .expect("a program is in a folder")
                .display()
        ),
    );
    let script = script.replace(&program.path().display().to_string(), "./inmate");
    let workload = Workload::start(Command::new("unshare").args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        &script,
    ]));
    let folded = Invocation::new("-f -a -F 997 -d 1 --annotate")
        .run()
        .expect_code(0)
        .folded();
    drop(workload);
    let named = folded.share_among(
        |stack| stack.root() == "inmate",
        |stack| stack.has_chain(&["call_the_unnamed", "told_in_a_map_[j]"]),
    );
    assert!(named > NEARLY_ALL, "names in {named:.3}: {folded}");
}

#[kernel_test]
fn a_perf_map_owned_by_another_user_is_ignored() {
    require!(has_machine_code());
    let workload = Program::c("anonymous").start(&[]);
    let map = map_of(workload.pid());
    fs::write(&map.0, "0 ffffffffffffffff forged\n").expect("/tmp can be written");
    std::os::unix::fs::chown(&map.0, Some(65534), None).expect("root may give files away");
    let folded = record(workload.pid()).folded();
    assert!(!folded.any(|stack| stack.mentions("forged")), "{folded}");
}

/// A script that a runtime runs until it is killed, once it has said `ready`.
fn script(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a temporary folder can be written");
    path.display().to_string()
}

const BUSY_JAVASCRIPT: &str = "\
function leaf_work(n) { let x = n; for (let i = 0; i < 2000; i++) x = (x * 31 + i) % 1000003; return x; }
function caller_work(n) { let x = 0; for (let i = 0; i < 50; i++) x += leaf_work(n + i); return x; }
let total = 0;
for (let i = 0; i < 2000; i++) total += caller_work(i);
console.log('ready');
const end = Date.now() + 60000;
while (Date.now() < end) total += caller_work(total % 7);
";

#[kernel_test]
fn node_functions_have_names_with_its_flag_and_a_hint_without() {
    let node = require!(tool("node"));
    let folder = tempdir().expect("a temporary folder can be made");
    let script = script(&folder, "busy.js", BUSY_JAVASCRIPT);
    let listed = Workload::start(
        // It leaves a log where it runs.
        Command::new(&node)
            .args(["--perf-basic-prof", &script])
            .current_dir(folder.path()),
    );
    let _map = map_of(listed.pid());
    let folded = record_by_map(listed.pid()).folded();
    drop(listed);
    let function = |stack: &Stack| {
        let made = |frame: &String| frame.contains("caller_work") && frame.ends_with("_[j]");
        stack.frames.iter().any(made)
    };
    // The rest is the runtime itself: its start, and what compiles.
    assert!(folded.share(function) > 0.8, "{folded}");
    let silent = Workload::start(Command::new(&node).arg(&script));
    record_by_map(silent.pid()).expect_stderr("--perf-basic-prof");
}

const BUSY_JAVA: &str = "\
public class Busy {
    static long leafWork(long n) { long x = n; for (int i = 0; i < 20000; i++) x = x * 31 + i ^ (x >> 3); return x; }
    static long callerWork(long n) { long x = 0; for (int i = 0; i < 50; i++) x += leafWork(n + i); return x; }
    public static void main(String[] words) {
        long total = 0;
        for (int i = 0; i < 200; i++) total += callerWork(i);
        System.out.println(\"ready\");
        long end = System.currentTimeMillis() + 60000;
        while (System.currentTimeMillis() < end) total += callerWork(total % 7);
        System.out.println(total);
    }
}
";

#[kernel_test]
fn java_methods_are_named_by_the_map_that_jcmd_writes() {
    let java = require!(tool("java"));
    let jcmd = require!(tool("jcmd"));
    let folder = tempdir().expect("a temporary folder can be made");
    let source = script(&folder, "Busy.java", BUSY_JAVA);
    let mut command = Command::new(&java);
    command.args(["-XX:+PreserveFramePointer", &source]);
    let workload = Workload::start(&mut command);
    let _map = map_of(workload.pid());
    record_by_map(workload.pid())
        .expect_stderr(&format!("jcmd {} Compiler.perfmap", workload.pid()));
    let function = |stack: &Stack| {
        let made = |frame: &String| frame.contains("Work") && frame.ends_with("_[j]");
        stack.frames.iter().any(made)
    };
    // A busy machine compiles late, and what comes after a map is only in the next.
    let mut last = None;
    for _ in 0..5 {
        let written = Command::new(&jcmd)
            .args([&workload.pid().to_string(), "Compiler.perfmap"])
            .output()
            .expect("jcmd can be started");
        assert!(written.status.success(), "{written:?}");
        let folded = record_by_map(workload.pid()).folded();
        // The virtual machine has threads of its own that compile and collect meanwhile.
        if folded.share(function) > 0.6 {
            return;
        }
        last = Some(folded);
    }
    panic!("{last:?}");
}

const BUSY_PYTHON: &str = "\
import time
def leaf_work(n):
    x = n
    for i in range(2000):
        x = (x * 31 + i) % 1000003
    return x
print('ready', flush=True)
end = time.time() + 60
while time.time() < end:
    leaf_work(3)
";

/// A Python that can tell of its functions: 3.12 or later, and built so.
fn telling_python() -> Result<PathBuf, String> {
    let asks = "import sys; sys.activate_stack_trampoline('perf')";
    ["python3.14", "python3.13", "python3.12", "python3"]
        .iter()
        .filter_map(|name| tool(name).ok())
        .find(|python| {
            Command::new(python)
                .args(["-c", asks])
                .output()
                .is_ok_and(|output| output.status.success())
        })
        .ok_or_else(|| "no Python here has trampolines for profilers".to_owned())
}

#[kernel_test]
fn python_functions_are_named_by_its_trampolines() {
    let python = require!(telling_python());
    let folder = tempdir().expect("a temporary folder can be made");
    let script = script(&folder, "busy.py", BUSY_PYTHON);
    let workload = Workload::start(Command::new(&python).args(["-X", "perf", &script]));
    let _map = map_of(workload.pid());
    let folded = record(workload.pid()).folded();
    let function = |stack: &Stack| {
        let made = |frame: &String| frame.contains("leaf_work") && frame.ends_with("_[j]");
        stack.frames.iter().any(made)
    };
    assert!(folded.share(function) > 0.8, "{folded}");
}
