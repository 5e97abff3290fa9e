//! Boots other kernels under an emulator, and profiles there.
//!
//! In: kernel versions. Out: a table of what the verifier and each step of `vm/init.sh` came to, and an [`Outcome`]. The
//! machine's file system is made here, from what this machine has; nothing of this machine is changed but the target
//! directory, and missing programs are installed. Where the emulator or a kernel cannot be had, all checks are skipped.

pub(crate) mod debian;
mod log;
mod verdict;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::files;
use crate::object_code::Code;
use crate::outcome::Outcome;
use crate::workspace::{Workspace, in_path, run};
use crate::{arch, bpf, build};

use log::Log;

/// Debian's stable kernels, the oldest first.
const VERSIONS: [&str; 2] = ["6.1", "6.12"];

/// How long a machine may run; where nothing else runs, it takes less than half of this.
const LIMIT: Duration = Duration::from_secs(900);

/// So many lines of a machine's console are shown where it did not do well: what a kernel says that panics.
const LAST_LINES: usize = 60;

/// Compiler flags of the workloads with frame pointers: as for the tests, every function is a frame
/// of its own, even one that ends in calling another.
const POINTERS: &str = "-O1 -fno-omit-frame-pointer -fno-shrink-wrap -fno-optimize-sibling-calls";

/// Those without: as distributions build, but no sibling call is a jump, which leaves no frame.
const NO_POINTERS: &str = "-O2 -fomit-frame-pointer -fno-optimize-sibling-calls -DFRAMELESS";

/// The workloads that the script starts: their names, those of their sources, and how they are compiled.
const WORKLOADS: [(&str, &str, &str); 5] = [
    ("shares", "shares", POINTERS),
    ("exit_code", "exit_code", POINTERS),
    ("waits", "waits", POINTERS),
    ("chain", "chain", POINTERS),
    ("bare_chain", "chain", NO_POINTERS),
];

/// Where Debian's Python is: another one in the path may be a script.
const PYTHON: &str = "/usr/bin/python3";

/// The interpreters that `vm/interpreters.sh` starts, besides Python.
const INTERPRETERS: [&str; 5] = ["lua5.4", "luajit", "perl", "php", "ruby"];

/// Files of the folder of its encodings that Python cannot start without.
const ENCODINGS: [&str; 3] = ["__init__.py", "aliases.py", "utf_8.py"];

/// Which kernels to boot.
#[derive(Args)]
pub(crate) struct Choice {
    /// Debian kernels, such as 6.12 [default: 6.1 6.12]
    versions: Vec<String>,
}

/// Boots each kernel; says whether everything that ran passed.
pub(crate) fn vm(choice: &Choice) -> Result<bool> {
    let mut outcome = Outcome::default();
    if choice.versions.is_empty() {
        boot_all(&mut outcome)?;
    } else {
        let machines = Machines::prepare()??;
        for version in &choice.versions {
            let image = debian::image(version, &machines.folder)?;
            let image = image.with_context(|| {
                format!("no package of this Debian release has a kernel {version}")
            })?;
            machines.boot(version, &image, &mut outcome)?;
        }
    }
    println!("\n{outcome}");
    Ok(outcome.is_good())
}

/// Boots Debian's kernels, those that can be had.
pub(crate) fn boot_all(outcome: &mut Outcome) -> Result<()> {
    let machines = match Machines::prepare()? {
        Ok(machines) => machines,
        Err(reason) => {
            VERSIONS
                .iter()
                .for_each(|version| skip(version, &format!("{reason:#}"), outcome));
            return Ok(());
        }
    };
    for version in VERSIONS {
        match debian::image(version, &machines.folder) {
            Ok(Some(image)) => machines.boot(version, &image, outcome)?,
            Ok(None) => skip(version, "this Debian release has no such kernel", outcome),
            Err(reason) => skip(version, &format!("{reason:#}"), outcome),
        }
    }
    Ok(())
}

fn skip(version: &str, reason: &str, outcome: &mut Outcome) {
    println!("\nkernel {version}: skipped: {reason}");
    for name in verdict::names() {
        outcome.skip(&check(version, name), reason);
    }
}

/// How a check is called among the tests.
fn check(version: &str, name: &str) -> String {
    format!("vm {version}::{name}")
}

/// Files and programs that all machines have in common.
struct Machines {
    /// Where all that is made and downloaded lies.
    folder: PathBuf,
    /// Their file system.
    archive: PathBuf,
    /// The programs of the BPF object.
    programs: Vec<String>,
}

impl Machines {
    /// Makes it; the inner error is why this machine can emulate none.
    fn prepare() -> Result<Result<Self>> {
        let workspace = Workspace::find()?;
        let folder = workspace.target.join("vm");
        files::make_folder(&folder)?;
        if let Err(reason) = debian::provide() {
            return Ok(Err(reason));
        }
        let archive = folder.join("initramfs.cpio");
        file_system(&workspace, &folder, &archive)?;
        let programs = programs(&workspace)?;
        Ok(Ok(Self {
            folder,
            archive,
            programs,
        }))
    }

    /// Boots a kernel, and reports and counts what it came to.
    fn boot(&self, version: &str, image: &Path, outcome: &mut Outcome) -> Result<()> {
        let console = self.folder.join(format!("serial-{version}.log"));
        let begun = Instant::now();
        let late = emulate(image, &self.archive, &console)?;
        let took = begun.elapsed().as_secs();
        let text = files::read(&console)?;
        let log = Log::parse(&String::from_utf8_lossy(&text));
        let kernel = log.kernel.as_deref().unwrap_or("that did not start");
        println!("\nkernel {kernel} ({version}), {took} s");
        for loaded in log.verified() {
            let (program, instructions) = (loaded.program, loaded.instructions);
            println!("  {program:<14} {instructions:>7} instructions verified");
        }
        let mut well = true;
        for (name, verdict) in verdict::names().zip(verdict::judge(&log, &self.programs)) {
            match verdict {
                Ok(()) => {
                    println!("  {name:<14} ok");
                    outcome.pass(1);
                }
                Err(reason) => {
                    println!("  {name:<14} FAILED: {reason}");
                    outcome.fail_check(&check(version, name), &reason);
                    well = false;
                }
            }
        }
        let hung = if late {
            Some(format!("it was still running after {} s", LIMIT.as_secs()))
        } else {
            (!log.ended).then(|| "it stopped before the end of its script".to_owned())
        };
        if let Some(reason) = hung {
            println!("  {reason}");
            // A machine that takes every step well and then hangs is not well.
            if well {
                outcome.fail_check(&check(version, "end"), &reason);
            }
            well = false;
        }
        if !well {
            println!(
                "  the last that the console said, in {}:",
                console.display()
            );
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.lines().collect();
            for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
                println!("    {line}");
            }
        }
        Ok(())
    }
}

/// Runs a machine to its end, with its console going to a file; `true` when it had to be stopped.
fn emulate(image: &Path, archive: &Path, console: &Path) -> Result<bool> {
    let file = files::create(console)?;
    let complaints = file
        .try_clone()
        .context("cannot share the console's file")?;
    // Without hardware's assistance, which the machines that test this lack; without a network, whose firmware need not be
    // installed. A kernel that panics ends the machine. One thread runs both CPUs: with two, one of them may still meet the
    // breakpoint that the other has replaced, as the kernel rewrites itself whenever events are attached, and it panics.
    let mut machine = Command::new(arch::EMULATOR.0)
        .args([
            "-accel",
            "tcg,thread=single",
            "-cpu",
            "max",
            "-smp",
            "2",
            "-m",
            "1024",
        ])
        .args(["-display", "none", "-monitor", "none", "-serial", "stdio"])
        .args(["-nic", "none", "-no-reboot"])
        .args(["-append", arch::KERNEL_COMMAND_LINE])
        .arg("-kernel")
        .arg(image)
        .arg("-initrd")
        .arg(archive)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(complaints)
        .spawn()
        .with_context(|| format!("cannot start {}", arch::EMULATOR.0))?;
    let end = Instant::now() + LIMIT;
    while machine
        .try_wait()
        .context("cannot wait for qemu")?
        .is_none()
    {
        if Instant::now() >= end {
            machine.kill().context("cannot stop qemu")?;
            machine.wait().context("cannot wait for qemu")?;
            return Ok(true);
        }
        sleep(Duration::from_millis(50));
    }
    Ok(false)
}

/// Makes the archive of the machine's first and only file system: a copy of its files, packed by busybox. All are root's; the
/// kernel brings `/dev/console` itself.
fn file_system(workspace: &Workspace, folder: &Path, archive: &Path) -> Result<()> {
    let flame_bpf = build::flame_bpf(workspace)?;
    let busybox = in_path("busybox").context("busybox was installed and is not in PATH")?;
    let mut programs = vec![
        ("flame-bpf", flame_bpf),
        ("busybox", busybox),
        ("python3", PathBuf::from(PYTHON)),
    ];
    // Busybox's makes no cgroup namespaces.
    let unshare = in_path("unshare").context("util-linux has unshare")?;
    programs.push(("util-unshare", unshare));
    for name in INTERPRETERS {
        let path = in_path(name);
        let path = path.with_context(|| format!("{name} was installed and is not in PATH"))?;
        programs.push((name, path));
    }
    for (name, source, flags) in WORKLOADS {
        let made = folder.join(name);
        compile(workspace, source, flags, &made)?;
        programs.push((name, made));
    }
    let root = folder.join("root");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("cannot clear {}", root.display()))?;
    }
    for folder in ["bin", "dev", "proc", "sys", "tmp"] {
        let folder = root.join(folder);
        files::make_folder(&folder)?;
    }
    for (name, script) in [
        ("init", include_str!("vm/init.sh")),
        ("bin/interpreters", include_str!("vm/interpreters.sh")),
    ] {
        let file = root.join(name);
        fs::write(&file, script)
            .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let encodings = encodings()?;
    for name in ENCODINGS {
        copy(&encodings.join(name), &root, &encodings.join(name))?;
    }
    for (name, path) in &programs {
        copy(path, &root, &Path::new("/bin").join(name))?;
        for library in shared_libraries(path)? {
            copy(Path::new(&library), &root, Path::new(&library))?;
        }
    }
    let packed = files::create(archive)?;
    let pack = "find . | busybox cpio -o -H newc -R 0:0";
    run(Command::new("sh")
        .args(["-c", pack])
        .current_dir(&root)
        .stdout(packed))
}

/// Copies a file to its place in a root folder.
fn copy(file: &Path, root: &Path, place: &Path) -> Result<()> {
    files::copy(file, &root.join(place.strip_prefix("/").unwrap_or(place)))
}

/// The folder of Python's encodings.
fn encodings() -> Result<PathBuf> {
    const ASK: &str = "import encodings; print(encodings.__path__[0], end='')";
    let said = Command::new(PYTHON)
        .args(["-S", "-E", "-c", ASK])
        .output()
        .with_context(|| format!("cannot start {PYTHON}"))?;
    Ok(PathBuf::from(
        String::from_utf8_lossy(&said.stdout).into_owned(),
    ))
}

/// Compiles a workload so that it needs nothing of the machine that it runs on.
fn compile(workspace: &Workspace, source: &str, flags: &str, made: &Path) -> Result<()> {
    let folder = workspace.root.join("tests/workloads/c");
    run(Command::new("gcc")
        .args(["-std=gnu11", "-static"])
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(made)
        .arg(folder.join(format!("{source}.c"))))
}

/// The files that a program is linked with when it starts; none if it is whole.
fn shared_libraries(program: &Path) -> Result<Vec<String>> {
    let listed = Command::new("ldd")
        .arg(program)
        .output()
        .context("cannot start ldd")?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    ensure!(
        !listed.contains("not found"),
        "{} lacks a library:\n{listed}",
        program.display()
    );
    Ok(library_paths(&listed))
}

/// The paths in what ldd(1) prints, which tells names and the kernel's own library along with them.
fn library_paths(listed: &str) -> Vec<String> {
    let words = listed.lines().filter_map(|line| {
        let found = line.split_once("=> ").map_or(line, |(_, found)| found);
        found.split_whitespace().next()
    });
    words
        .filter(|word| word.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

/// The programs of the BPF object that ships.
fn programs(workspace: &Workspace) -> Result<Vec<String>> {
    let object = workspace.root.join(bpf::OBJECT);
    let bytes = files::read(&object)?;
    let file = object::File::parse(&*bytes).context("the BPF object is no object")?;
    let code = Code::read(&file)?;
    Ok(code
        .programs()
        .map(|program| program.name.clone())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_by_their_paths() {
        let listed = "\tlinux-vdso.so.1 (0x00007f52c88bc000)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f52c821e000)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f52c88be000)\n";
        assert_eq!(
            library_paths(listed),
            [
                "/lib/x86_64-linux-gnu/libc.so.6",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
        assert!(library_paths("\tnot a dynamic executable\n").is_empty());
    }
}
