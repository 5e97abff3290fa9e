//! Names of programs whose files are deleted, replaced, elsewhere, or never were.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flame_bpf_tests::{
    Folded, Invocation, Mounted, NEARLY_ALL, Program, Stack, Sysctl, Workload, kernel_test,
    require, tool,
};
use tempfile::{TempDir, tempdir};

/// A program at a path that the test may do with as it likes.
struct Copy {
    folder: TempDir,
    path: PathBuf,
}

impl Copy {
    fn of(program: &Program, name: &str) -> Self {
        let folder = tempdir().expect("a temporary folder can be made");
        let path = folder.path().join(name);
        fs::copy(program.path(), &path).expect("a program can be copied");
        Self { folder, path }
    }

    fn start(&self, arguments: &[&str]) -> Workload {
        Workload::start(Command::new(&self.path).args(arguments))
    }

    fn delete(&self) {
        fs::remove_file(&self.path).expect("a copy can be deleted");
    }

    /// Puts another program in its place, as a package manager does.
    fn replace(&self, program: &Program) {
        let other = self.folder.path().join("other");
        fs::copy(program.path(), &other).expect("a program can be copied");
        fs::rename(&other, &self.path).expect("a program can be replaced");
    }
}

fn whole(stack: &Stack) -> bool {
    stack.has_chain(&["main", "work_round"])
}

/// Whether nearly all samples of the program have their names.
#[track_caller]
fn assert_named(folded: &Folded, comm: &str) {
    let named = folded.share_among(|stack| stack.root() == comm, whole);
    let all: Vec<&Stack> = folded.only(|stack| stack.root() == comm).collect();
    assert!(named > NEARLY_ALL, "names in {named:.3} of {comm}: {all:?}");
}

#[kernel_test]
fn a_program_deleted_before_the_recording_has_names() {
    let copy = Copy::of(&Program::c("shares"), "early");
    let workload = copy.start(&[]);
    copy.delete();
    assert_named(&workload.profiled(), "early");
}

#[kernel_test]
fn a_program_deleted_during_the_recording_has_names_even_if_it_ends() {
    for lives in [true, false] {
        let copy = Copy::of(&Program::c("shares"), "late");
        let workload = copy.start(&["1500"][..usize::from(!lives)]);
        let mut running = Invocation::new("-f -F 997 -d 2")
            .flag("-p", workload.pid())
            .start();
        running.wait_until_attached();
        // It is looked at when the first sample is taken.
        std::thread::sleep(std::time::Duration::from_millis(500));
        copy.delete();
        let folded = running.finish().expect_no_panic().folded();
        assert_named(&folded, "late");
    }
}

#[kernel_test]
fn a_replaced_program_keeps_its_own_names() {
    let copy = Copy::of(&Program::c("shares"), "service");
    let workload = copy.start(&[]);
    copy.replace(&Program::c("deep"));
    let folded = workload.profiled();
    assert_named(&folded, "service");
    drop(workload);
    // Nor does the newcomer get those of its predecessor.
    let replacement = copy.start(&["1"]);
    let folded = replacement.profiled();
    assert!(!folded.any(|stack| stack.has("work_round")), "{folded}");
}

/// Runs itself from memory: a file that has no name.
const FROM_MEMORY: &str = "\
import os, sys
memory = os.memfd_create('unnamed')
with open(sys.argv[1], 'rb') as program:
    os.write(memory, program.read())
os.execv(f'/proc/self/fd/{memory}', ['inmemory'])
";

#[kernel_test]
fn a_program_in_a_memfd_has_names() {
    let python = require!(tool("python3"));
    let program = Program::c("shares");
    let workload = Workload::start(
        Command::new(python)
            .args(["-c", FROM_MEMORY])
            .arg(program.path()),
    );
    let folded = workload.profiled();
    assert!(folded.share(whole) > NEARLY_ALL, "{folded}");
}

#[kernel_test]
fn a_program_in_another_root_directory_has_names() {
    require!(tool("unshare"));
    require!(tool("chroot"));
    let copy = Copy::of(&Program::c("shares"), "caged");
    let root = copy.folder.path().join("root");
    fs::create_dir_all(&root).expect("a temporary folder can be written");
    // Its libraries are the system's, at the same paths; itself it is where nothing is outside.
    let script = format!(
        "set -e; cd {root}; for part in usr lib lib64 bin; do \
         [ -e /$part ] && mkdir -p $part && mount --bind /$part $part; done; mkdir app; \
         cp {program} app/caged; exec chroot . /app/caged",
        root = root.display(),
        program = copy.path.display(),
    );
    let workload = Workload::start(Command::new("unshare").args(["--mount", "sh", "-c", &script]));
    assert_named(&workload.profiled(), "caged");
}

#[kernel_test]
fn a_program_on_a_mount_of_its_own_namespace_has_names() {
    require!(tool("unshare"));
    let copy = Copy::of(&Program::c("shares"), "hidden");
    let mount = copy.folder.path().join("mount");
    fs::create_dir(&mount).expect("a temporary folder can be written");
    let script = format!(
        "set -e; mount -t tmpfs none {0}; cp {1} {0}/hidden; exec {0}/hidden",
        mount.display(),
        copy.path.display()
    );
    let workload = Workload::start(Command::new("unshare").args(["--mount", "sh", "-c", &script]));
    assert!(!mount.join("hidden").exists());
    assert_named(&workload.profiled(), "hidden");
}

/// Whether text that was moved to memory of this kind has its names, and its callers though it keeps no frame pointers.
#[track_caller]
fn assert_moved_text_is_known(kind: &str) {
    let workload = Program::c_without_frame_pointers("moved").start(&[kind]);
    let folded = workload.profiled();
    let known = folded.share(|stack| stack.has_chain(&["main", "outer", "inner"]));
    assert!(known > NEARLY_ALL, "{kind}: {folded}");
}

#[kernel_test]
fn text_that_was_moved_to_anonymous_memory_is_that_of_its_file() {
    assert_moved_text_is_known("anonymous");
}

#[kernel_test]
fn text_that_was_moved_to_shared_memory_is_that_of_its_file() {
    for kind in ["shared", "file", "segment"] {
        assert_moved_text_is_known(kind);
    }
}

#[kernel_test(alone)]
fn text_that_was_moved_to_the_first_segment_is_that_of_its_file() {
    // Its number is its inode.
    let _first = require!(Sysctl::set("kernel/shm_next_id", "0"));
    assert_moved_text_is_known("segment");
}

/// A user who is nobody.
const NOBODY: u32 = 65534;

/// Whether any user may mount file systems of programs.
fn everybody_mounts() -> Result<(), String> {
    let device = fs::metadata("/dev/fuse").map_err(|error| format!("/dev/fuse: {error}"))?;
    match device.permissions().mode() & 0o006 {
        0o006 => Ok(()),
        _ => Err("other users may not open /dev/fuse".to_owned()),
    }
}

#[kernel_test]
fn a_program_in_a_file_system_that_only_its_user_may_read_has_names() {
    for name in ["mksquashfs", "squashfuse", "fusermount3"] {
        require!(tool(name));
    }
    require!(everybody_mounts());
    let copy = Copy::of(&Program::c("shares"), "owned");
    let folder = copy.folder.path();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("the folder is ours");
    let mount = Mounted(folder.join("mount"));
    fs::create_dir(&mount.0).expect("a temporary folder can be written");
    let image = folder.join("image");
    let as_nobody = |program: &Path| {
        let mut command = Command::new(program);
        command.uid(NOBODY).gid(NOBODY);
        command
    };
    let packed = Command::new("mksquashfs")
        .args([&copy.path, &image])
        .output();
    assert!(packed.is_ok_and(|output| output.status.success()));
    for path in [&image, &mount.0] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
    let mounted = as_nobody(Path::new("squashfuse"))
        .args([&image, &mount.0])
        .status();
    assert!(mounted.is_ok_and(|status| status.success()));
    let program = mount.0.join("owned");
    assert!(fs::metadata(&program).is_err(), "not even root may read it");
    let workload = Workload::start(&mut as_nobody(&program));
    assert_named(&workload.profiled(), "owned");
}
