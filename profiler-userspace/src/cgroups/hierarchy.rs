//! Hierarchies of cgroups: the unified one (v2), and those of controllers (v1).
//!
//! In: mount points, and the cgroups of this process. Out: which hierarchies there are, the one that tells most first; the
//! directories in one. Paths are those from the hierarchy's root on, as the host has them.

use crate::machine::Mount;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Controllers whose hierarchies container runtimes and systemd use, those that tell most first.
const CONTROLLERS: &[&str] = &[
    "memory", "pids", "cpu", "cpuacct", "devices", "cpuset", "blkio", "freezer",
];

/// No machine has so many cgroups, and a hierarchy is no reason to read for minutes.
const MAX_DIRECTORIES: usize = 100_000;

/// The kind of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HierarchyKind {
    /// The one hierarchy of all controllers (v2).
    Unified,
    /// That of one controller (v1), by its name.
    Controller(String),
}

/// A hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its kind.
    pub kind: HierarchyKind,
    /// Where it is mounted, if it is.
    pub mount: Option<PathBuf>,
    /// The path, from its own root on, of the cgroup that is mounted there: not empty in a cgroup namespace, and where a part of it is
    /// mounted.
    root: String,
    /// In a cgroup namespace the path of that namespace's root.
    namespace: Option<String>,
    /// The cgroup of this process in it, as it sees it.
    own: String,
}

impl Hierarchy {
    /// All hierarchies of this machine, the one that tells most first; none where the kernel has no cgroups.
    pub fn all() -> Vec<Self> {
        let read = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let mut all = Self::parse(&Mount::all(), &read("/proc/self/cgroup"));
        all.sort_by_key(|hierarchy| match &hierarchy.kind {
            // On machines with both, one of them is often unused.
            _ if !hierarchy.is_used() => usize::MAX,
            HierarchyKind::Unified => 0,
            HierarchyKind::Controller(_) => 1,
        });
        all
    }

    /// The hierarchies that the text of `/proc/self/cgroup` tells of.
    pub(super) fn parse(mounts: &[Mount], own: &str) -> Vec<Self> {
        let mut all: Vec<Self> = own
            .lines()
            .filter_map(|line| {
                let (_, line) = line.split_once(':')?;
                let (controllers, own) = line.split_once(':')?;
                let kind = match controllers {
                    "" => HierarchyKind::Unified,
                    list => {
                        let first = list.split(',').find(|name| CONTROLLERS.contains(name))?;
                        HierarchyKind::Controller(first.to_owned())
                    }
                };
                let mounted = mounts.iter().find(|mount| is_of(mount, &kind));
                let root = mounted.map(|mount| mount.root.to_string_lossy().into_owned());
                Some(Self {
                    kind,
                    mount: mounted.map(|mount| mount.at.clone()),
                    root: root.unwrap_or_default(),
                    namespace: None,
                    own: own.to_owned(),
                })
            })
            .collect();
        all.sort_by_key(|hierarchy| match &hierarchy.kind {
            HierarchyKind::Unified => 0,
            HierarchyKind::Controller(name) => {
                1 + CONTROLLERS
                    .iter()
                    .position(|known| known == name)
                    .unwrap_or(0)
            }
        });
        all
    }

    /// Whether there are processes below its root.
    fn is_used(&self) -> bool {
        let is_below = self.own.len() > 1;
        let Some(mount) = self.mount.as_ref().filter(|_| !is_below) else {
            return is_below;
        };
        let directories = fs::read_dir(mount).into_iter().flatten().flatten();
        let mut directories =
            directories.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
        let events =
            |path: &Path| fs::read_to_string(path.join("cgroup.events")).unwrap_or_default();
        match self.kind {
            HierarchyKind::Unified => {
                directories.any(|entry| events(&entry.path()).contains("populated 1"))
            }
            HierarchyKind::Controller(_) => directories.next().is_some(),
        }
    }

    /// The directories of all its cgroups that are to be seen here: their IDs, their paths, and where they lie below the mount
    /// point. The root comes first.
    pub fn walk(&self) -> Vec<(u64, String, PathBuf)> {
        let Some(mount) = &self.mount else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut next = vec![PathBuf::new()];
        while let Some(below) = next.pop() {
            let directory = mount.join(&below);
            // One that has just gone has no ID.
            let Ok(metadata) = fs::symlink_metadata(&directory) else {
                continue;
            };
            found.push((metadata.ino(), self.path(&below), below.clone()));
            if found.len() == MAX_DIRECTORIES {
                break;
            }
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let inside = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
            next.extend(inside.map(|entry| below.join(entry.file_name())));
        }
        found
    }

    /// The path of the cgroup that lies in this directory below the mount point.
    fn path(&self, below: &Path) -> String {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let below = below.to_string_lossy();
        let mut names: Vec<&str> = Vec::new();
        let parts = [namespace, &self.root, &below];
        for name in parts.iter().flat_map(|part| part.split('/')) {
            match name {
                "" | "." => {}
                ".." => drop(names.pop()),
                name => names.push(name),
            }
        }
        format!("/{}", names.join("/"))
    }

    /// The path that a directory below the mount point stands for: `/sys/fs/cgroup/system.slice` for `/system.slice`.
    pub fn path_of_directory(&self, directory: &Path) -> Option<String> {
        Some(self.path(directory.strip_prefix(self.mount.as_ref()?).ok()?))
    }

    /// The user that the directory of a cgroup belongs to, by its path; none if it is not to be seen here.
    pub(super) fn owner(&self, path: &str) -> Option<u32> {
        let below = path.strip_prefix(self.path(Path::new("")).trim_end_matches('/'))?;
        let directory = self.mount.as_ref()?.join(below.trim_start_matches('/'));
        Some(fs::symlink_metadata(directory).ok()?.uid())
    }

    /// Notes where this process is in it, from the root of the host on.
    pub(super) fn note_own(&mut self, path: &str) {
        let inside = self.own.trim_end_matches('/');
        self.namespace = path.strip_suffix(inside).map(str::to_owned);
    }

    /// The path in this process's cgroup namespace that a path of the host's has, if it lies in there.
    pub(super) fn inside(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(self.namespace.as_deref()?)?;
        match rest {
            "" => Some("/".to_owned()),
            rest => rest.starts_with('/').then(|| rest.to_owned()),
        }
    }

    /// The name of its kind.
    pub fn name(&self) -> String {
        match &self.kind {
            HierarchyKind::Unified => "v2".to_owned(),
            HierarchyKind::Controller(controller) => format!("v1, {controller}"),
        }
    }
}

/// Whether the hierarchy of this kind is mounted there.
fn is_of(mount: &Mount, kind: &HierarchyKind) -> bool {
    match kind {
        HierarchyKind::Unified => mount.kind == b"cgroup2",
        HierarchyKind::Controller(name) => {
            let mut options = mount.options.split(|&byte| byte == b',');
            mount.kind == b"cgroup" && options.any(|option| option == name.as_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:3 - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/with\\040space rw - cgroup2 cgroup2 rw
";

    #[test]
    fn hybrid_machines_have_several_hierarchies() {
        let own = "9:name=systemd:/\n4:memory:/a\n2:cpu,cpuacct:/b\n0::/c:d\n";
        let all = Hierarchy::parse(&Mount::parse_all(HYBRID.as_bytes()), own);
        let said: Vec<_> = all
            .iter()
            .map(|it| (it.name(), it.mount.clone().unwrap(), it.own.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                ("v2".into(), "/sys/fs/cgroup/with space".into(), "/c:d"),
                ("v1, memory".into(), "/sys/fs/cgroup/memory".into(), "/a"),
                ("v1, cpu".into(), "/sys/fs/cgroup/cpu,cpuacct".into(), "/b"),
            ]
        );
    }

    #[test]
    fn paths_are_those_of_the_host_in_a_namespace_too() {
        let at = |root: &str, own: &str| {
            let mounts = format!("41 31 0:38 {root} /cg rw - cgroup2 cgroup2 rw\n");
            Hierarchy::parse(&Mount::parse_all(mounts.as_bytes()), &format!("0::{own}\n")).remove(0)
        };
        let whole = at("/", "/x");
        assert_eq!(
            whole.path_of_directory(Path::new("/cg/a/b")).unwrap(),
            "/a/b"
        );
        assert_eq!(whole.path_of_directory(Path::new("/cg")).unwrap(), "/");
        assert_eq!(whole.path_of_directory(Path::new("/other")), None);
        assert_eq!(whole.inside("/a"), None);
        // The host's mount, seen from a namespace two levels below its root.
        let mut host = at("/../..", "/x");
        assert_eq!(host.path_of_directory(Path::new("/cg/a")).unwrap(), "/a");
        host.note_own("/docker/h/x");
        assert_eq!(host.path_of_directory(Path::new("/cg/a")).unwrap(), "/a");
        assert_eq!(host.inside("/docker/h/y").as_deref(), Some("/y"));
        assert_eq!(host.inside("/docker/h").as_deref(), Some("/"));
        assert_eq!(host.inside("/docker/hh"), None);
        // A mount that was made inside shows the namespace alone.
        let mut own = at("/", "/");
        own.note_own("/docker/h");
        assert_eq!(
            own.path_of_directory(Path::new("/cg/y")).unwrap(),
            "/docker/h/y"
        );
    }

    #[test]
    fn this_machine_has_hierarchies_with_this_process_in_them() {
        let all = Hierarchy::all();
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        assert_eq!(all.is_empty(), !own.contains(':'));
        for hierarchy in all.iter().filter(|it| it.mount.is_some()) {
            let there = hierarchy.walk();
            assert!(
                there
                    .iter()
                    .all(|(id, path, _)| *id > 0 && path.starts_with('/'))
            );
        }
    }
}
