//! The doctor in environments where something is broken on purpose: it names what, and the command that it prints mends it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use flame_bpf_tests::{
    Invocation, PrivateCopy, Program, Sysctl, binary, kernel_test, require, tool, walks_by_tables,
};
use tempfile::{TempDir, tempdir};

/// Runs what follows as a user without any rights of its own.
const NOBODY: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";

/// All capabilities that are of use.
const CAPABILITIES: &str =
    "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore=ep";

/// An environment in which something is broken.
struct Broken {
    /// Wrapper of the shell: namespaces, limits.
    around: String,
    /// Commands by which that shell breaks something.
    breaks: String,
    /// Wrapper of the doctor.
    through: String,
    /// The folder that it runs in.
    within: Option<String>,
    doctor: PrivateCopy,
    reports: TempDir,
}

/// Texts of the doctor, at first and after each round of the commands that it printed.
struct Said {
    /// Exit codes and texts, the first examination's first.
    rounds: Vec<(i32, String)>,
}

impl Broken {
    fn new() -> Self {
        let reports = tempdir().expect("a temporary folder can be made");
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(reports.path(), open).expect("it is ours");
        Self {
            around: String::new(),
            breaks: "true".to_owned(),
            through: String::new(),
            within: None,
            doctor: PrivateCopy::of(&binary()),
            reports,
        }
    }

    fn around(mut self, wrapper: &str) -> Self {
        self.around = wrapper.to_owned();
        self
    }

    fn breaking(mut self, commands: &str) -> Self {
        self.breaks = commands.to_owned();
        self
    }

    fn through(mut self, wrapper: &str) -> Self {
        self.through = wrapper.to_owned();
        self
    }

    fn within(mut self, folder: &str) -> Self {
        self.within = Some(folder.to_owned());
        self
    }

    /// The doctor's file.
    fn file(&self) -> String {
        self.doctor.path().display().to_string()
    }

    /// Runs the doctor, obeys it, and so on until all works or there is no command.
    fn examine(self) -> Result<Said, String> {
        let reports = self.reports.path().display();
        let within = self.within.clone().unwrap_or(reports.to_string());
        let doctor = Invocation::new("doctor")
            .with_binary(self.doctor.path())
            .wrapped(&self.through)
            .shell();
        let script = format!(
            "sudo() {{ \"$@\"; }}
             {{ {}; }} >&2 || exit 99
             for round in 1 2 3; do
                 (cd {within} && {doctor}) >{reports}/$round.text
                 code=$?
                 echo $code >{reports}/$round.code
                 [ $code = 0 ] && exit
                 sed -n 's/^  mend: //p' {reports}/$round.text | sort -u >{reports}/mends
                 [ -s {reports}/mends ] || exit 0
                 . {reports}/mends >&2
             done",
            self.breaks
        );
        let mut words = self.around.split_whitespace();
        let mut command = match words.next() {
            Some(first) => Command::new(first),
            None => Command::new("env"),
        };
        let output = command
            .args(words)
            .args(["sh", "-c", &script])
            .output()
            .map_err(|error| format!("{}: {error}", self.around))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(99) {
            return Err(format!("this cannot be broken here: {}", stderr.trim()));
        }
        let read = |name: String| fs::read_to_string(self.reports.path().join(name)).ok();
        let rounds = (1..).map_while(|round| {
            let code = read(format!("{round}.code"))?.trim().parse().ok()?;
            Some((code, read(format!("{round}.text"))?))
        });
        let rounds: Vec<(i32, String)> = rounds.collect();
        assert!(!rounds.is_empty(), "{stderr}");
        Ok(Said { rounds })
    }
}

impl Said {
    /// The first examination ended so, and its lines about `subject` say all of these words.
    #[track_caller]
    fn names(self, code: i32, subject: &str, words: &[&str]) -> Self {
        let (first, text) = &self.rounds[0];
        assert_eq!(*first, code, "{text}");
        let about = format!("  {subject}");
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(&about)).collect();
        for word in words {
            assert!(
                lines.iter().any(|line| line.contains(word)),
                "{word}: {text}"
            );
        }
        self
    }

    /// The commands mended it.
    #[track_caller]
    fn expect_mended(self) {
        self.expect_mended_but_for(&[]);
    }

    /// The commands mended all but these.
    #[track_caller]
    fn expect_mended_but_for(self, subjects: &[&str]) {
        let (_, text) = self.rounds.last().expect("there is a first");
        assert!(self.rounds.len() > 1, "no command: {text}");
        let broken = text
            .lines()
            .filter(|line| line.starts_with("lacks ") || line.starts_with("FAILS "));
        let broken: Vec<&str> = broken
            .filter_map(|line| Some(line.get(7..)?.split_once(':')?.0))
            .collect();
        assert_eq!(broken, subjects, "{text}");
    }

    /// It takes more than a command, and the text says what.
    #[track_caller]
    fn expect_advice(self, advice: &str) {
        let (_, text) = &self.rounds[0];
        assert_eq!(self.rounds.len(), 1, "{text}");
        let mut lines = text.lines();
        assert!(
            lines.any(|line| line.starts_with("  mend by hand: ") && line.contains(advice)),
            "{text}"
        );
    }
}

/// A mount namespace of its own, whose mounts nobody else sees.
const MOUNTS: &str = "unshare --mount --propagation private";

#[kernel_test]
fn a_machine_in_order_passes() {
    require!(walks_by_tables());
    let workload = Program::c("sleeper").start(&[]);
    let said = require!(Broken::new().examine());
    assert_eq!(said.rounds[0].0, 0, "{}", said.rounds[0].1);
    let run = Invocation::new("doctor --json")
        .flag("-p", workload.pid())
        .run()
        .expect_no_panic();
    let json: serde_json::Value = serde_json::from_slice(&run.stdout).expect("it is JSON");
    assert_eq!(json["exit_code"], run.code());
    let checks = json["checks"].as_array().expect("checks are a list");
    let state = |subject: &str| {
        let mut found = checks.iter().filter(|check| check["subject"] == subject);
        found.next().map(|check| check["state"].clone())
    };
    for subject in ["processes", "on-CPU", "waits", "I/O", "functions", "files"] {
        assert_eq!(state(subject), Some("works".into()), "{subject}: {json:#}");
    }
    // The C library that Debian installs is stripped.
    assert!(state("symbols").is_some(), "{json:#}");
}

#[kernel_test]
fn a_process_that_is_not_there_is_named() {
    let mut child = Command::new("true").spawn().expect("true can be started");
    child.wait().expect("a child can be waited for");
    let run = Invocation::new("doctor").flag("-p", child.id()).run();
    let run = run.expect_code(2);
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.contains(&format!("PID {}", child.id())), "{text}");
}

#[kernel_test]
fn missing_capabilities_are_granted_by_the_printed_commands() {
    require!(tool("setcap"));
    let broken = Broken::new().through(&format!("{NOBODY} --inh-caps=-all"));
    require!(broken.examine())
        .names(2, "on-CPU", &["has not CAP_BPF and CAP_PERFMON", "sudo"])
        .expect_mended_but_for(&["functions"]);
}

#[kernel_test]
fn capabilities_that_a_container_took_away_are_named() {
    let bound = "setpriv --bounding-set=-bpf,-sys_admin --inh-caps=-bpf,-sys_admin";
    require!(Broken::new().through(bound).examine())
        .names(2, "on-CPU", &["has not CAP_BPF", "nor may it ever"])
        .expect_advice("--cap-add BPF");
}

#[kernel_test]
fn capabilities_of_a_file_that_do_not_count_are_named() {
    require!(tool("setcap"));
    let broken = Broken::new();
    let breaks = format!("setcap {CAPABILITIES} {}", broken.file());
    let nobody = format!("{NOBODY} --inh-caps=-all setpriv --no-new-privs");
    require!(broken.breaking(&breaks).through(&nobody).examine())
        .names(2, "on-CPU", &["no_new_privs"])
        .expect_advice("NoNewPrivileges=no");
}

#[kernel_test]
fn a_mount_without_setuid_is_mounted_again_with_it() {
    require!(tool("setcap"));
    let broken = Broken::new().around(MOUNTS);
    let (folder, file) = (broken.doctor.folder().display().to_string(), broken.file());
    let breaks = format!(
        "cp {file} {folder}.copy && mount -t tmpfs -o nosuid,mode=755 tmpfs {folder} &&
         mv {folder}.copy {file} && setcap {CAPABILITIES} {file}"
    );
    let nobody = format!("{NOBODY} --inh-caps=-all");
    require!(broken.breaking(&breaks).through(&nobody).examine())
        .names(2, "on-CPU", &["mounted nosuid", &folder])
        .expect_mended_but_for(&["functions"]);
}

#[kernel_test]
fn a_user_namespace_is_named() {
    require!(
        Broken::new()
            .through("unshare --user --map-root-user")
            .examine()
    )
    .names(2, "on-CPU", &["user namespace"])
    .expect_advice("outside");
}

#[kernel_test]
fn a_seccomp_filter_is_named() {
    let refuse = Program::c("refuse");
    for (call, number) in [("BPF", "321"), ("perf event", "298")] {
        let through = format!("{} {number}", refuse.path().display());
        require!(Broken::new().through(&through).examine())
            .names(2, "on-CPU", &["seccomp filter", call])
            .expect_advice("seccomp=unconfined");
    }
}

#[kernel_test]
fn hidden_type_information_is_uncovered() {
    require!(walks_by_tables());
    let breaks = "mount --bind /dev/null /sys/kernel/btf/vmlinux";
    let said = require!(Broken::new().around(MOUNTS).breaking(breaks).examine());
    said.names(1, "on-CPU", &["frame pointers only", "mounted over"])
        .names(1, "waits", &["type information", "mounted over"])
        .expect_mended();
}

#[kernel_test]
fn a_hidden_sys_is_mounted() {
    require!(walks_by_tables());
    let breaks = "mount -t tmpfs tmpfs /sys";
    require!(Broken::new().around(MOUNTS).breaking(breaks).examine())
        .names(2, "CPUs", &["/sys is not mounted"])
        .expect_mended();
}

#[kernel_test]
fn a_proc_of_another_namespace_or_none_is_mounted() {
    require!(walks_by_tables());
    let inside = format!("{MOUNTS} --pid --fork");
    require!(Broken::new().around(&inside).examine())
        .names(2, "processes", &["another PID namespace"])
        .expect_mended();
    let breaks = "mount -t tmpfs tmpfs /proc";
    require!(Broken::new().around(MOUNTS).breaking(breaks).examine())
        .names(2, "processes", &["/proc is not mounted"])
        .expect_mended();
}

#[kernel_test]
fn missing_cgroups_are_mounted() {
    let breaks = "umount -R -l /sys/fs/cgroup";
    require!(Broken::new().around(MOUNTS).breaking(breaks).examine())
        .names(1, "cgroups", &["no cgroup file system"])
        .expect_mended();
}

#[kernel_test]
fn too_few_descriptors_are_raised() {
    let limits = "setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource";
    for (files, code, words) in [
        ("20:20", 2, "may not open more files"),
        ("100:100", 1, "no more than 100 files"),
    ] {
        let around = format!("prlimit --nofile={files}");
        let said = require!(Broken::new().around(&around).through(limits).examine());
        let said = said.names(code, "on-CPU", &[words]);
        // Where this very test may not raise it either, the command cannot.
        if said.rounds.last().expect("there is a first").0 == 0 {
            said.expect_mended();
        } else {
            let (_, text) = &said.rounds[0];
            assert!(text.contains("mend: prlimit --pid $$"), "{text}");
        }
    }
}

#[kernel_test]
fn locked_memory_is_not_needed_any_more() {
    require!(walks_by_tables());
    let drop = "setpriv --bounding-set=-sys_resource,-ipc_lock --inh-caps=-sys_resource,-ipc_lock";
    let said = Broken::new().around("prlimit --memlock=0:0").through(drop);
    let said = require!(said.examine());
    assert_eq!(said.rounds[0].0, 0, "{}", said.rounds[0].1);
}

#[kernel_test]
fn a_full_disk_and_one_that_is_not_written_to_are_named() {
    let folder = tempdir().expect("a temporary folder can be made");
    let mount = folder.path().display().to_string();
    for (breaks, word) in [
        (
            format!("mount -t tmpfs -o size=4k tmpfs {mount} && head -c 4096 /dev/zero >{mount}/x"),
            "No space left",
        ),
        (
            format!("mount -t tmpfs -o ro tmpfs {mount}"),
            "Read-only file system",
        ),
    ] {
        let broken = Broken::new().around(MOUNTS).breaking(&breaks);
        require!(broken.within(&mount).examine()).names(
            1,
            "output",
            &[word, "another file system"],
        );
    }
}

#[kernel_test(alone)]
fn lowered_limits_of_the_kernel_are_raised() {
    require!(walks_by_tables());
    for (name, value, code, words) in [
        ("kernel/perf_event_max_sample_rate", "50", 2, "50"),
        ("kernel/perf_event_max_stack", "20", 1, "after 20 frames"),
        ("net/core/bpf_jit_enable", "0", 1, "interpreted"),
    ] {
        let Ok(_changed) = Sysctl::set(name, value) else {
            continue;
        };
        let said = require!(Broken::new().examine());
        said.names(code, "on-CPU", &[words]).expect_mended();
    }
}

#[kernel_test(alone)]
fn a_paranoid_setting_means_nothing_to_those_with_capabilities() {
    require!(tool("setcap"));
    let _paranoid = require!(Sysctl::set("kernel/perf_event_paranoid", "4"));
    let broken = Broken::new();
    let breaks = format!("setcap {CAPABILITIES} {}", broken.file());
    let nobody = format!("{NOBODY} --inh-caps=-all");
    let said = require!(broken.breaking(&breaks).through(&nobody).examine());
    let said = said.names(1, "functions", &["CAP_SYS_ADMIN"]);
    said.expect_advice("as root");
}

#[kernel_test]
fn a_refusal_refers_to_the_doctor() {
    let run = Invocation::new("-f -a -d 1")
        .wrapped("unshare --user --map-root-user")
        .run()
        .expect_code(1)
        .expect_stderr("user namespace");
    run.expect_stderr("`flame-bpf doctor`");
}
