//! Features of this machine that tests need: privilege, tools, CPUs, sysctls.
//!
//! Each question answers `Err(reason)` where a test should be skipped; see [`crate::require!`].

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use crate::program::cache;
use flame_bpf::kernel::Support;

/// A shorter wait for a turn does not show in how long a test takes.
const LONG_WAIT_MS: u128 = 100;

/// Prints that a test is skipped. `here` is the path of an item inside the test.
pub fn skip(here: &str, reason: &str) {
    // Not `eprintln!`, which the test runner hides while a test passes. A closed stderr has no reader
    // who could miss the line.
    writeln!(io::stderr(), "{}", skip_line(here, reason)).ok();
}

fn skip_line(here: &str, reason: &str) -> String {
    format!("SKIP {}: {reason}", here.trim_end_matches("::here"))
}

/// Prints that a test measures time. `here` is as in [`skip`].
pub fn announce_timing(here: &str) {
    let test = here.trim_end_matches("::here");
    writeln!(io::stderr(), "TIMING {test}").ok();
}

/// Prints that what went wrong has nothing to do with time, and panics: a test that ends so is not run again.
///
/// # Panics
///
/// Always.
#[track_caller]
#[expect(
    clippy::print_stderr,
    reason = "shown where tests are retried, which is where nothing is captured"
)]
pub(crate) fn broken(reason: &str) -> ! {
    eprintln!("BROKEN");
    panic!("{reason}");
}

/// How a kernel test shares the machine with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// With others of its kind: what it asks for holds beside a load.
    Shared,
    /// With none: another recording would take CPU time from its workload, or be in what it counts.
    Alone,
}

/// The right to run a kernel test, held on the whole machine by several tests that share it, or by one alone.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
    sharing: Sharing,
}

/// Whether a test of this process has the machine for itself.
static IS_ALONE: AtomicBool = AtomicBool::new(false);

/// Checks that a test that is about to change the machine has it for itself.
///
/// # Panics
///
/// When it is not marked `#[kernel_test(alone)]`.
#[track_caller]
pub fn assert_alone() {
    assert!(
        IS_ALONE.load(Relaxed),
        "others run beside this test; mark it #[kernel_test(alone)]"
    );
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.sharing == Sharing::Alone {
            IS_ALONE.store(false, Relaxed);
        }
    }
}

/// Features of this kernel, if they are enough to walk by unwind tables.
///
/// # Errors
///
/// When it keeps mappings otherwise than in a maple tree, or has no type information.
pub fn walks_by_tables() -> Result<Support, String> {
    let support = Support::detect();
    match support.mapping {
        Some(_) => Ok(support),
        None => Err("this kernel does not show its mappings in a maple tree".to_owned()),
    }
}

/// Waits for this test's turn to use the kernel; says how many milliseconds that took where it was long.
///
/// # Errors
///
/// When the user is not root.
pub fn kernel_turn(sharing: Sharing) -> Result<Turn, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("kernel tests need root".to_owned());
    }
    let start = Instant::now();
    // Turns are taken one by one, or those that share would never leave the machine to one that does not.
    let _queue = locked("queue", Sharing::Alone);
    let turn = locked("turn", sharing);
    let waited = start.elapsed().as_millis();
    if waited >= LONG_WAIT_MS {
        writeln!(io::stderr(), "WAITED {waited}").ok();
    }
    if sharing == Sharing::Alone {
        IS_ALONE.store(true, Relaxed);
    }
    Ok(Turn {
        _lock: turn,
        sharing,
    })
}

fn locked(name: &str, sharing: Sharing) -> File {
    let path = cache().join(name);
    let lock = |file: File| {
        match sharing {
            Sharing::Shared => file.lock_shared(),
            Sharing::Alone => file.lock(),
        }
        .map(|()| file)
    };
    File::create(&path)
        .and_then(lock)
        .unwrap_or_else(|error| panic!("{} cannot be locked: {error}", path.display()))
}

/// Asks for a program on the `PATH`.
///
/// # Errors
///
/// When it is not there.
pub fn tool(name: &str) -> Result<PathBuf, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{name} is not installed"))
}

/// The distribution's Python; another that is called so, otherwise.
///
/// # Errors
///
/// When there is none.
pub fn python() -> Result<PathBuf, String> {
    let usual = Path::new("/usr/bin/python3");
    if usual.is_file() {
        return Ok(usual.to_owned());
    }
    tool("python3")
}

/// Folder of Python's packages of engines that read tables, where `.ci/run` puts them.
///
/// # Errors
///
/// When there is none.
pub fn engines() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/engines");
    match folder.join("duckdb").is_dir() {
        true => Ok(folder),
        false => Err("DuckDB is not in target/engines".to_owned()),
    }
}

/// Builds of Node: the one in `PATH`, and those in folders under `target/nodes`, where `.ci/run` puts other versions.
///
/// # Errors
///
/// When there is none.
pub fn nodes() -> Result<Vec<PathBuf>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/nodes");
    let others = fs::read_dir(folder).into_iter().flatten().flatten();
    let others = others.map(|version| version.path().join("bin/node"));
    let mut all: Vec<PathBuf> = tool("node").into_iter().chain(others).collect();
    all.retain(|node| node.is_file());
    if all.is_empty() {
        return Err("node is not installed".to_owned());
    }
    all.sort();
    Ok(all)
}

/// Builds of Java that are installed.
///
/// # Errors
///
/// When there is none.
pub fn javas() -> Result<Vec<PathBuf>, String> {
    let folders = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let all = folders.map(|folder| folder.path().join("bin/java"));
    let all = all.filter_map(|java| java.canonicalize().ok());
    let mut all: Vec<PathBuf> = all.filter(|java| java.is_file()).collect();
    all.sort();
    all.dedup();
    if all.is_empty() {
        return Err("java is not installed".to_owned());
    }
    Ok(all)
}

/// Asks for at least `count` CPUs that this process may use, and gives their numbers.
///
/// # Errors
///
/// When there are fewer.
pub fn allowed_cpus(count: usize) -> Result<Vec<usize>, String> {
    let allowed = rustix::thread::sched_getaffinity(None)
        .map_err(|error| format!("the allowed CPUs cannot be asked for: {error}"))?;
    let cpus: Vec<_> = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .collect();
    if cpus.len() < count {
        return Err(format!("{count} CPUs are needed, {} allowed", cpus.len()));
    }
    Ok(cpus)
}

/// Asks for a file that contains one of `wanted`.
///
/// # Errors
///
/// When the file cannot be read or holds none of them.
pub fn file_contains(path: &str, wanted: &[&str]) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    if wanted.iter().any(|part| text.contains(part)) {
        Ok(())
    } else {
        Err(format!("{path} holds {:?}", text.trim()))
    }
}

/// The names of what lies in a folder.
///
/// # Panics
///
/// When it cannot be listed.
#[track_caller]
pub fn files_in(folder: &Path) -> Vec<String> {
    fs::read_dir(folder)
        .expect("the folder is there")
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect()
}

/// A sysctl changed for the length of a test.
#[derive(Debug)]
pub struct Sysctl {
    path: PathBuf,
    before: String,
}

impl Sysctl {
    /// Sets `/proc/sys/<name>` until the value is dropped.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written.
    ///
    /// # Panics
    ///
    /// As [`assert_alone`].
    #[track_caller]
    pub fn set(name: &str, value: &str) -> Result<Self, String> {
        assert_alone();
        let path = Path::new("/proc/sys").join(name);
        let refused = |error: io::Error| format!("{} cannot be set: {error}", path.display());
        let before = fs::read_to_string(&path).map_err(refused)?;
        fs::write(&path, value).map_err(refused)?;
        Ok(Self { path, before })
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.before) {
            let path = self.path.display();
            writeln!(io::stderr(), "{path} could not be restored: {error}").ok();
        }
    }
}

/// A file copied to where every user can execute it, whatever folders the original is hidden in.
#[derive(Debug)]
pub struct PrivateCopy {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl PrivateCopy {
    /// Copies the executable at `original`.
    ///
    /// # Panics
    ///
    /// When the temporary folder cannot be written.
    pub fn of(original: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder
            .path()
            .join(original.file_name().expect("an executable has a name"));
        fs::copy(original, &path).expect("the executable can be copied");
        for made in [folder.path(), &path] {
            fs::set_permissions(made, fs::Permissions::from_mode(0o755))
                .expect("a file just made can be opened to all");
        }
        Self { folder, path }
    }

    /// The copy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that holds the copy and nothing else; it goes with this value.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_a_reason_to_skip() {
        assert!(tool("sh").is_ok());
        let reason = tool("no-such-tool-anywhere").expect_err("nobody has this");
        assert_eq!(reason, "no-such-tool-anywhere is not installed");
    }

    #[test]
    fn too_few_cpus_are_a_reason_to_skip() {
        assert!(!allowed_cpus(1).expect("this test runs on one").is_empty());
        assert!(allowed_cpus(rustix::thread::CpuSet::MAX_CPU + 1).is_err());
    }

    #[test]
    fn require_unwraps_what_is_there() {
        fn body(reached: &mut u32) {
            *reached = crate::require!(Ok::<_, String>(7));
        }
        let mut reached = 0;
        body(&mut reached);
        assert_eq!(reached, 7);
    }

    #[test]
    fn a_skip_names_the_test_and_the_reason() {
        fn here() {}
        let line = skip_line(std::any::type_name_of_val(&here), "no moon");
        assert_eq!(
            line,
            "SKIP flame_bpf_tests::feature::tests::a_skip_names_the_test_and_the_reason: no moon"
        );
    }
}
