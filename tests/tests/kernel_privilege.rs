//! Privileges: users without any, users with just enough, and limits set low.

use std::fs;
use std::path::Path;

use flame_bpf_tests::{
    Folded, Invocation, NEARLY_ALL, PrivateCopy, Program, Sysctl, binary, kernel_test, require,
    tool,
};
use tempfile::tempdir;

const NOBODY: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";

#[kernel_test]
fn an_unprivileged_user_is_told_the_missing_capability() {
    require!(tool("setpriv"));
    let copy = PrivateCopy::of(&binary());
    Invocation::new("-f -a -d 1")
        .with_binary(copy.path())
        .wrapped(&format!("{NOBODY} --inh-caps=-all"))
        .run()
        .expect_code(1)
        .expect_stderr("CAP_BPF")
        .expect_stderr("CAP_PERFMON")
        .expect_any_stderr(&["sudo", "setcap"]);
}

#[kernel_test]
fn two_capabilities_suffice_for_an_own_command() {
    require!(tool("setpriv"));
    let copy = PrivateCopy::of(&binary());
    let folder = tempdir().expect("a temporary folder can be made");
    open_to_all(folder.path());
    let file = folder.path().join("x.folded");
    let run = Invocation::new("-F 997")
        .path("-o", &file)
        .with_binary(copy.path())
        .wrapped(&format!(
            "{NOBODY} --inh-caps=-all,+bpf,+perfmon --ambient-caps=-all,+bpf,+perfmon"
        ))
        .command(Program::c("shares").path(), &["1000"])
        .run()
        .expect_code(0);
    let folded = run.folded_file(&file);
    assert!(
        folded.share(|stack| stack.has("work_round")) > NEARLY_ALL,
        "{folded}"
    );
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777))
        .expect("a folder just made can be opened to all");
}

/// Records the pipe's two ends under a wrapper, and checks that the profile is there.
fn record_pipe(wrapper: &str) -> Folded {
    let workload = Program::c("pipe").start(&[]);
    let folded = Invocation::new("-f -F 997 -d 1")
        .wrapped(wrapper)
        .flag("-p", format!("{},{}", workload.pid(), workload.words()[0]))
        .run()
        .expect_code(0)
        .folded();
    assert!(folded.any(|stack| stack.has("write_messages")), "{folded}");
    folded
}

#[kernel_test]
fn a_refused_limit_of_locked_memory_is_not_fatal() {
    require!(tool("prlimit"));
    require!(tool("setpriv"));
    record_pipe("prlimit --memlock=0:0");
    record_pipe(
        "prlimit --memlock=0:0 setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource",
    );
}

#[kernel_test(alone)]
fn hidden_kernel_addresses_are_not_fatal() {
    for value in ["1", "2"] {
        let _hidden = require!(Sysctl::set("kernel/kptr_restrict", value));
        let folded = record_pipe("");
        // Root may read the symbols' addresses at 1, and nobody may at 2.
        if value == "1" {
            assert!(folded.any(|stack| stack.mentions("pipe_write")), "{folded}");
        }
    }
}

#[kernel_test]
fn few_file_descriptors_are_enough() {
    require!(tool("prlimit"));
    record_pipe("prlimit --nofile=64:64");
}
