//! Cgroups as targets: nested, of both versions, made later, gone again, left and entered meanwhile, seen from a namespace.

use rustix::process::Signal;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use flame_bpf_tests::{
    Cgroup, Folded, Invocation, NEARLY_ALL, Program, Run, Version, Workload, kernel_test, require,
    tool,
};

/// The ID of a container that nobody runs.
const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn spin(name: &str) -> Workload {
    Program::c("spin").start(&[&format!("{name}=1000/0")])
}

/// One that runs in a cgroup.
fn spin_in(cgroup: &Cgroup, name: &str) -> Workload {
    let workload = spin(name);
    cgroup.take(workload.pid());
    workload
}

/// Runs, and has nothing lost.
fn record(invocation: Invocation) -> Folded {
    let run = invocation.run().expect_code(0);
    run.lossless_balance();
    run.folded()
}

fn roots(folded: &Folded) -> Vec<&str> {
    let mut roots: Vec<&str> = folded.stacks.iter().map(|stack| stack.root()).collect();
    roots.sort_unstable();
    roots.dedup();
    roots
}

#[kernel_test]
fn a_cgroup_is_recorded_with_all_below_it_and_nothing_else() {
    for version in [Version::One, Version::Two] {
        let outer = require!(Cgroup::new(version));
        let middle = outer.inside("middle");
        let inner = middle.inside("inner");
        let beside = outer.inside("middle-beside");
        let running = [
            spin_in(&outer, "outer"),
            spin_in(&middle, "middle"),
            spin_in(&inner, "inner"),
            spin_in(&beside, "beside"),
            spin("elsewhere"),
        ];
        let of = |path: &str| record(Invocation::new("-f -v -F 499 -d 1").flag("--cgroup", path));
        let middle_alone = of(middle.path());
        assert_eq!(roots(&middle_alone), ["inner", "middle"], "{version:?}");
        let by_directory = of(&outer.directory().display().to_string());
        assert_eq!(
            roots(&by_directory),
            ["beside", "inner", "middle", "outer"],
            "{version:?}"
        );
        let several = record(
            Invocation::new("-f -v -F 499 -d 1")
                .flag("--cgroup", inner.path())
                .flag("--cgroup", beside.path()),
        );
        assert_eq!(roots(&several), ["beside", "inner"], "{version:?}");
        drop(running);
    }
}

#[kernel_test]
fn every_probe_is_of_the_cgroup_alone() {
    let cgroup = require!(Cgroup::new(Version::Two));
    let inside = Program::c("spin").start(&["inside=3/7"]);
    cgroup.take(inside.pid());
    let outside = Program::c("spin").start(&["outside=3/7"]);
    for probe in [
        "--off-cpu",
        "--wall",
        "--off-wake",
        "-e sched:sched_switch",
        "-e context-switches",
        "--syscalls",
        "-F 499 -e cpu-clock -e sched:sched_switch -o /dev/null",
    ] {
        let flags = format!("-f -v -d 1 {probe}");
        if probe.contains("-o ") {
            let run = Invocation::new(&flags.replace("-f ", ""))
                .flag("--cgroup", cgroup.path())
                .run();
            run.expect_no_panic();
            continue;
        }
        let folded = record(Invocation::new(&flags).flag("--cgroup", cgroup.path()));
        assert_eq!(roots(&folded), ["inside"], "{probe}: {folded}");
    }
    drop((inside, outside));
}

/// Runs while `meanwhile` does something.
fn record_while(invocation: &Invocation, meanwhile: impl FnOnce()) -> Run {
    let mut running = invocation.start();
    running.wait_until_attached();
    meanwhile();
    running.signal(Signal::INT);
    running.finish().expect_code(0)
}

#[kernel_test]
fn cgroups_that_come_and_go_meanwhile_are_recorded_with_all_they_did() {
    let outer = require!(Cgroup::new(Version::Two));
    let first = outer.inside("first");
    let running = spin_in(&first, "first");
    let spin = Program::c("spin");
    let invocation =
        Invocation::new("-f -v -e sched:sched_process_exec").flag("--cgroup", outer.path());
    let run = record_while(&invocation, || {
        for number in 0..10 {
            // It is gone again within milliseconds, with all that could say what it was called.
            let later = outer.inside(&format!("later-{number}"));
            let script = format!(
                "{}; exec {} 1 5",
                later.enter(),
                spin.named("brief").path().display()
            );
            let status = Command::new("sh").args(["-c", &script]).status();
            assert!(status.is_ok());
            drop(later);
        }
    });
    let balance = run.lossless_balance();
    assert_eq!(balance.recorded, 10, "{balance:?}");
    drop(running);
}

#[kernel_test]
fn sixteen_thousand_cgroups_are_told_apart_and_firings_in_others_are_counted() {
    const CGROUPS: usize = 17_500;
    let outer = require!(Cgroup::new(Version::Two));
    let directory = outer.directory().display().to_string();
    let visitor = Program::c("visits").start(&[&directory, &CGROUPS.to_string()]);
    // So that this is the hierarchy that is looked at.
    outer.take(visitor.pid());
    let flags = "-f -v -e sched:sched_switch --root-per cgroup";
    let (run, _) = Invocation::new(flags).run_while_working(visitor);
    run.lossless_balance();
    let folded = run.folded();
    // Each move waits for the kernel, in the cgroup that is left.
    let met = roots(&folded).len();
    assert!((13_000..=16_385).contains(&met), "{met} cgroups");
    let unknown = folded.weight(|stack| stack.root() == "[unknown cgroup]");
    let notes = run
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("note: "));
    let said = notes.filter(|note| note.contains("16,384 that are told apart have no label"));
    let said: Vec<String> = said.map(|note| note.replace(',', "")).collect();
    let begin = format!("{unknown} firings in cgroups beyond");
    assert!(
        unknown > 0 && said.len() == 1 && said[0].starts_with(&begin),
        "{unknown}: {said:?}"
    );
}

#[kernel_test]
fn a_unit_that_is_started_anew_is_met_by_its_name() {
    let outer = require!(Cgroup::new(Version::Two));
    let unit = outer.inside("system.slice/worker.service");
    let before = spin_in(&unit, "before");
    let invocation = Invocation::new("-f -v -F 997").flag("--unit", "worker");
    let mut after = None;
    let run = record_while(&invocation, || {
        let again = outer.inside("other.slice/worker.service");
        let elsewhere = outer.inside("other.slice/worker-other.service");
        let spins = [spin_in(&again, "after"), spin_in(&elsewhere, "elsewhere")];
        sleep(Duration::from_secs(1));
        // A cgroup with processes in it cannot be removed.
        after = Some((spins, again, elsewhere));
    });
    run.lossless_balance();
    assert_eq!(roots(&run.folded()), ["after", "before"]);
    drop((before, after));
}

#[kernel_test]
fn a_process_is_recorded_while_it_is_inside() {
    let outer = require!(Cgroup::new(Version::Two));
    let (inside, outside) = (outer.inside("inside"), outer.inside("outside"));
    let running = spin_in(&outside, "mover");
    let resident = spin_in(&inside, "resident");
    let waits = Program::c("spin").start(&["waiter=1/9"]);
    outside.take(waits.pid());
    let invocation = Invocation::new("-f -v --wall").flag("--cgroup", inside.path());
    let run = record_while(&invocation, || {
        sleep(Duration::from_millis(500));
        for workload in [&running, &waits] {
            inside.take(workload.pid());
        }
        sleep(Duration::from_millis(500));
        for workload in [&running, &waits] {
            outside.take(workload.pid());
        }
        sleep(Duration::from_millis(500));
    });
    run.lossless_balance();
    let folded = run.folded();
    assert_eq!(roots(&folded), ["mover", "resident", "waiter"], "{folded}");
    let whole = folded.seconds(|stack| stack.root() == "resident");
    for name in ["mover", "waiter"] {
        let inside = folded.seconds(|stack| stack.root() == name);
        // A third, and not all that came after.
        assert!(
            inside > 0.1 * whole && inside < 0.8 * whole,
            "{name}: {inside} of {whole} s"
        );
    }
    drop((running, resident, waits));
}

#[kernel_test]
fn what_is_not_there_is_refused_with_what_is() {
    let cgroup = require!(Cgroup::new(Version::Two));
    let _unit = cgroup.inside("system.slice/worker.service");
    let _container = cgroup.inside(&format!("docker/{ID}"));
    let refused = |flag: &str, value: &str| {
        let run = Invocation::new("-d 1 -f").flag(flag, value).run();
        run.expect_code(1)
    };
    refused("--unit", "wroker").expect_stderr("worker.service");
    refused("--container", "feed").expect_stderr(&ID[..12]);
    refused("--cgroup", "/no/such/cgroup")
        .expect_stderr("there is no cgroup /no/such/cgroup; there are");
    refused("--pod", "web").expect_stderr("there is no pod web");
    let nothing = Invocation::new("-d 1 -f").flag("--container", "").run();
    nothing.expect_code(2);
}

#[kernel_test]
fn a_container_is_met_by_the_beginning_of_its_id() {
    let cgroup = require!(Cgroup::new(Version::Two));
    let container = cgroup.inside(&format!("docker/{ID}"));
    let nested = container.inside("init");
    let running = [spin_in(&nested, "contained"), spin_in(&cgroup, "outside")];
    let folded = record(Invocation::new("-f -v -F 499 -d 1").flag("--container", &ID[..12]));
    assert_eq!(roots(&folded), ["contained"]);
    drop(running);
}

#[kernel_test]
fn in_a_cgroup_namespace_paths_are_the_hosts_and_its_own() {
    require!(tool("unshare"));
    let outer = require!(Cgroup::new(Version::Two));
    let child = outer.inside("child");
    let running = [spin_in(&child, "child"), spin_in(&outer, "parent")];
    // The shell's namespace begins at its cgroup.
    let inside = |path: &str, mounts: &str| {
        let invocation = Invocation::new("-f -v -F 499 -d 1").flag("--cgroup", path);
        let script = format!(
            "{}; exec unshare -C -m sh -c '{mounts} exec {}'",
            outer.enter(),
            invocation.shell()
        );
        let output = Command::new("sh").args(["-c", &script]).output();
        let output = output.expect("a shell runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{path}: {text}");
        Folded::parse(&output.stdout).expect("folded text")
    };
    let mount = outer.directory();
    let mount = mount.parent().expect("a mount point").display().to_string();
    let own = format!("umount -l {mount}; mount -t cgroup2 none {mount};");
    assert_eq!(roots(&inside(child.path(), "")), ["child"]);
    assert_eq!(roots(&inside("/child", &own)), ["child"]);
    assert_eq!(roots(&inside(&format!("{mount}/child"), &own)), ["child"]);
    drop(running);
}

#[kernel_test]
fn a_container_of_podman_is_met_by_its_name() {
    require!(tool("podman"));
    require!(tool("runc"));
    let spin = Program::c("spin");
    let root = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::create_dir(root.path().join("bin")).expect("a folder can be made");
    let program = require!(static_copy(spin.path(), &root.path().join("bin/spin")));
    let name = format!("flame-bpf-test-{}", std::process::id());
    let podman = |arguments: &[&str]| {
        let usual = [
            "--cgroup-manager=cgroupfs",
            "--runtime=runc",
            "--storage-driver=vfs",
        ];
        let output = Command::new("podman").args(usual).args(arguments).output();
        output.expect("podman runs")
    };
    let rootfs = root.path().display().to_string();
    let limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000"];
    let started = podman(&[
        "run",
        "-d",
        "--rm",
        "--network=none",
        limits[0],
        limits[1],
        "--name",
        &name,
        "--rootfs",
        &rootfs,
        program,
        "contained=1000/0",
    ]);
    if !started.status.success() {
        let said = String::from_utf8_lossy(&started.stderr).into_owned();
        require!(Err::<(), String>(format!(
            "podman runs no container here: {said}"
        )));
    }
    let run = Invocation::new("-f -v -F 499 -d 1")
        .flag("--container", &name)
        .run();
    podman(&["rm", "-f", "-t", "0", &name]);
    let folded = run.expect_code(0).folded();
    assert!(
        folded.share(|stack| stack.root() == "contained") > NEARLY_ALL,
        "{folded}"
    );
}

/// A user of a mount namespace alone, where `podman` is what runs podman as that user, and cgroups are of one hierarchy, a part of
/// which is the user's.
const ROOTLESS: &str = r#"
set -e
# Where no such namespace can be made there is nothing to try.
trap 'exit 77' EXIT
home=$1 program=$2 name=$3 cgroup=/flame-bpf-test-rootless-$$
mount --make-rprivate /
umount -l /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
for file in passwd:$home:/bin/sh group: subuid: subgid:; do
    rest=${file#*:} file=${file%%:*}
    cp /etc/$file $home/$file
    case $file in
        passwd) echo "flame-bpf-test:x:4711:4711::$rest" ;;
        group) echo "flame-bpf-test:x:4711:" ;;
        *) echo "flame-bpf-test:700000000:65536" ;;
    esac >> $home/$file
    mount --bind $home/$file /etc/$file
done
mkdir -p $home/run /sys/fs/cgroup$cgroup/user
chown -R 4711:4711 $home /sys/fs/cgroup$cgroup
chmod 700 $home/run
podman() {
    setpriv --reuid 4711 --regid 4711 --clear-groups env -i PATH="$PATH" HOME=$home XDG_RUNTIME_DIR=$home/run \
        podman --cgroup-manager=cgroupfs --runtime=runc --storage-driver=vfs "$@"
}
leave() {
    podman rm -f -t 0 $name >&2 || true
    # Ends the process that holds the user's namespace, too.
    podman system migrate >&2 || true
    echo $$ > /sys/fs/cgroup/cgroup.procs
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        for inner in /sys/fs/cgroup$cgroup/*/; do rmdir $inner 2>/dev/null || true; done
        rmdir /sys/fs/cgroup$cgroup 2>/dev/null && break
        sleep 0.1
    done
}
trap leave EXIT
ulimit -n 1024
cd $home
(
    # A user may move processes within what is theirs alone.
    sh -c 'echo $PPID' > /sys/fs/cgroup$cgroup/user/cgroup.procs
    podman run -d --network=none --name $name --rootfs $home/root $program contained=1000/0 >&2
) || exit 77
"#;

#[kernel_test]
fn a_container_of_podman_without_root_is_met_by_its_name() {
    for program in ["podman", "runc", "newuidmap", "unshare", "setpriv"] {
        require!(tool(program));
    }
    let spin = Program::c("spin");
    let home = tempfile::tempdir().expect("a temporary folder can be made");
    let bin = home.path().join("root/bin");
    std::fs::create_dir_all(&bin).expect("a folder can be made");
    let program = require!(static_copy(spin.path(), &bin.join("spin")));
    let name = format!("flame-bpf-test-{}", std::process::id());
    let invocation = Invocation::new("-f -v -F 499 -d 1").flag("--container", &name);
    let script = format!("{ROOTLESS}\n{}\n", invocation.shell());
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &script, "sh"])
        .args([&home.path().display().to_string(), program, &name])
        .output()
        .expect("a shell runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(77) {
        require!(Err::<(), String>(format!(
            "podman runs no container of a user's here: {said}"
        )));
    }
    assert!(output.status.success(), "{said}");
    let folded = Folded::parse(&output.stdout).expect("folded text");
    assert!(
        folded.share(|stack| stack.root() == "contained") > NEARLY_ALL,
        "{folded}"
    );
}

/// Puts a program with the libraries that it needs into a root directory.
fn static_copy(program: &std::path::Path, to: &std::path::Path) -> Result<&'static str, String> {
    let copied = std::fs::copy(program, to).map_err(|error| error.to_string())?;
    assert!(copied > 0);
    let root = to
        .parent()
        .and_then(std::path::Path::parent)
        .expect("a root");
    let listed = Command::new("ldd")
        .arg(program)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    for word in text.split_whitespace().filter(|word| word.starts_with('/')) {
        let place = root.join(&word[1..]);
        std::fs::create_dir_all(place.parent().expect("a folder"))
            .map_err(|error| error.to_string())?;
        std::fs::copy(word, place).map_err(|error| error.to_string())?;
    }
    Ok("/bin/spin")
}
