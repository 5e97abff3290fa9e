//! Cgroups made by hand.
//!
//! In: a name. Out: a directory in a hierarchy of this machine, and processes in it. Gone with the value.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::workload::PATIENCE;

/// A kind of hierarchies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy of one controller.
    One,
    /// The unified hierarchy.
    Two,
}

/// A cgroup, which is removed with all below it, once its processes have ended.
#[derive(Debug)]
pub struct Cgroup {
    mount: PathBuf,
    path: String,
}

impl Cgroup {
    /// A new one below the root of a hierarchy, with a name of its own.
    ///
    /// # Errors
    /// When no such hierarchy is mounted, or cgroups cannot be made there.
    pub fn new(version: Version) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let kind = match version {
            Version::One => " - cgroup cgroup rw,memory",
            Version::Two => " - cgroup2 ",
        };
        let mount = mounts.lines().find(|line| line.contains(kind));
        let mount = mount.and_then(|line| line.split(' ').nth(4));
        let mount = PathBuf::from(mount.ok_or(format!("no hierarchy of {version:?} is mounted"))?);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = format!("/flame-bpf-test-{}-{number}", std::process::id());
        fs::create_dir(mount.join(&path[1..]))
            .map_err(|error| format!("no cgroup can be made in {}: {error}", mount.display()))?;
        Ok(Self { mount, path })
    }

    /// One inside this one.
    #[must_use]
    pub fn inside(&self, name: &str) -> Self {
        let inside = Self {
            mount: self.mount.clone(),
            path: format!("{}/{name}", self.path),
        };
        fs::create_dir_all(inside.directory()).expect("a cgroup can be made in another");
        inside
    }

    /// Its path from the root of its hierarchy on.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its directory.
    pub fn directory(&self) -> PathBuf {
        self.mount.join(&self.path[1..])
    }

    /// Has a process move into it.
    pub fn take(&self, pid: u32) {
        fs::write(self.directory().join("cgroup.procs"), pid.to_string())
            .expect("a process can be moved into a cgroup");
    }

    /// A shell command that moves the shell into it, so that what it runs is in there from the beginning.
    pub fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.directory().display())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let began = Instant::now();
        while !remove(&self.directory()) && began.elapsed() < PATIENCE {
            sleep(Duration::from_millis(5));
        }
    }
}

/// Removes a cgroup with all below it; false if processes are in there.
fn remove(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())) {
        remove(&entry.path());
    }
    fs::remove_dir(directory).is_ok() || !directory.exists()
}
