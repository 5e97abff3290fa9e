//! Names of containers and pods, from the files in which runtimes keep their state.
//!
//! In: what a cgroup's path says. Out: the same with names, where a file has them. Files are JSON and may be anything: what
//! does not fit has no name.

use crate::object::RegularFile;
use crate::profile::cgroup::{Cgroup, Container, Pod};
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// Where the files of the host are: here, or in the root directory of the first process where that is the host's.
const ROOTS: &[&str] = &["/", "/proc/1/root"];

/// Names in annotations, as containerd, cri-o and nerdctl write them: of the container, the pod, its namespace.
const CONTAINER: &[&str] = &[
    "io.kubernetes.cri.container-name",
    "io.kubernetes.container.name",
    "nerdctl/name",
];
const POD: &[&str] = &["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"];
const NAMESPACE: &[&str] = &[
    "io.kubernetes.cri.sandbox-namespace",
    "io.kubernetes.pod.namespace",
];

/// Reads names.
#[derive(Clone, Debug)]
pub(super) struct Containers {
    roots: Vec<PathBuf>,
}

impl Default for Containers {
    fn default() -> Self {
        Self {
            roots: ROOTS.iter().map(PathBuf::from).collect(),
        }
    }
}

/// Names in a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names {
    container: Option<Arc<str>>,
    pod: Option<Arc<str>>,
    namespace: Option<Arc<str>>,
}

impl Containers {
    /// The cgroup with the names of its container and pod. `owner`: the user that the directory of a path belongs to, if it is still
    /// there.
    pub(super) fn name(
        &self,
        mut cgroup: Cgroup,
        owner: impl FnOnce(&str) -> Option<u32>,
    ) -> Cgroup {
        let Some(container) = &cgroup.container else {
            return cgroup;
        };
        let owner = owner(&cgroup.path).filter(|&user| user != 0);
        let names = self.names(container, owner.or_else(|| user_of(&cgroup.path)));
        let Names {
            container: name,
            pod,
            namespace,
        } = names.unwrap_or_default();
        if let Some(container) = &mut cgroup.container {
            container.name = name;
        }
        if let Some(Pod {
            name: pod_name,
            namespace: pod_namespace,
            ..
        }) = &mut cgroup.pod
        {
            (*pod_name, *pod_namespace) = (pod, namespace);
        }
        cgroup
    }

    fn names(&self, container: &Container, user: Option<u32>) -> Option<Names> {
        let id = &*container.id;
        let mut roots = self.roots.iter();
        roots.find_map(|root| match container.runtime {
            "docker" => docker(root, id),
            "podman" => podman(root, id, user),
            "cri-o" => crio(root, id),
            // A path of the ID alone may be any runtime's.
            "containerd" | "kubernetes" => containerd(root, id)
                .or_else(|| crio(root, id))
                .or_else(|| podman(root, id, user)),
            _ => None,
        })
    }
}

fn docker(root: &Path, id: &str) -> Option<Names> {
    let state = json(
        &root
            .join("var/lib/docker/containers")
            .join(id)
            .join("config.v2.json"),
    )?;
    let labels = &state["Config"]["Labels"];
    Some(Names {
        container: text(&state["Name"]).map(|name| name.trim_start_matches('/').into()),
        pod: first(labels, POD),
        namespace: first(labels, NAMESPACE),
    })
}

/// containerd keeps a bundle for each container below its namespaces.
fn containerd(root: &Path, id: &str) -> Option<Names> {
    ["run/containerd", "run/k3s/containerd"]
        .iter()
        .find_map(|state| {
            let tasks = root.join(state).join("io.containerd.runtime.v2.task");
            let mut namespaces = fs::read_dir(tasks).into_iter().flatten().flatten();
            namespaces
                .find_map(|namespace| annotated(&namespace.path().join(id).join("config.json")))
        })
}

fn crio(root: &Path, id: &str) -> Option<Names> {
    let stores = stores(&root.join("run/containers/storage"));
    stores
        .iter()
        .find_map(|store| annotated(&store.join(id).join("userdata/config.json")))
}

/// The names in the annotations of a container's configuration.
fn annotated(path: &Path) -> Option<Names> {
    let annotations = &json(path)?["annotations"];
    Some(Names {
        container: first(annotations, CONTAINER),
        pod: first(annotations, POD),
        namespace: first(annotations, NAMESPACE),
    })
}

/// The user in whose slice systemd has put a cgroup.
fn user_of(path: &str) -> Option<u32> {
    let mut names = path.split('/');
    names.find_map(|name| {
        name.strip_prefix("user-")?
            .strip_suffix(".slice")?
            .parse()
            .ok()
    })
}

/// podman keeps one list for each user. Only that of the user whose cgroup it is says what counts: others could give it any name.
fn podman(root: &Path, id: &str, user: Option<u32>) -> Option<Names> {
    let of_user = || {
        let uid = user?.to_string();
        let users = String::from_utf8(contents(&root.join("etc/passwd"))?).ok()?;
        let home = users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (*fields.get(2)? == uid.as_str()).then(|| fields.get(5).copied())?
        })?;
        Some(
            root.join(home.trim_start_matches('/'))
                .join(".local/share/containers/storage"),
        )
    };
    let storages = [Some(root.join("var/lib/containers/storage")), of_user()];
    let lists = storages
        .into_iter()
        .flatten()
        .flat_map(|storage| stores(&storage));
    let mut lists = lists.filter_map(|store| json(&store.join("containers.json")));
    lists.find_map(|list| {
        let own = list
            .as_array()?
            .iter()
            .find(|it| it["id"].as_str() == Some(id))?;
        Some(Names {
            container: text(&own["names"][0]).map(Arc::from),
            ..Names::default()
        })
    })
}

/// The directories of containers in a storage, one for each kind of file system that it uses: `overlay-containers`.
fn stores(storage: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(storage).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut stores: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().ends_with("-containers"))
        .collect();
    stores.sort();
    stores
}

fn first(values: &Value, keys: &[&str]) -> Option<Arc<str>> {
    keys.iter()
        .find_map(|key| text(&values[*key]))
        .map(Arc::from)
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&contents(path)?).ok()
}

/// The contents of a file that any user may have put there: a pipe in its place would have to be waited for.
fn contents(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = RegularFile::open(path).ok()?.file;
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn named(path: &str, file: &str, contents: &str) -> Cgroup {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(file.replace('H', ID));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, contents.replace('H', ID)).unwrap();
        let owner = path.starts_with("/owned").then_some(7);
        if path.contains("user-7") || owner.is_some() {
            fs::create_dir_all(root.path().join("etc")).unwrap();
            fs::write(
                root.path().join("etc/passwd"),
                "root:x:0:0::/root:\na:x:7:7::/home/a:\n",
            )
            .unwrap();
        }
        let containers = Containers {
            roots: vec![PathBuf::from("/nowhere"), root.path().to_owned()],
        };
        containers.name(Cgroup::of_path(path.replace('H', ID)), |_| owner)
    }

    #[test]
    fn names_come_from_the_state_of_each_runtime() {
        let pod = "/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice";
        let cri = r#"{"annotations": {"io.kubernetes.cri.container-name": "web", "io.kubernetes.cri.sandbox-name": "web-1", "io.kubernetes.cri.sandbox-namespace": "shop"}}"#;
        let crio = r#"{"annotations": {"io.kubernetes.container.name": "web", "io.kubernetes.pod.name": "web-1", "io.kubernetes.pod.namespace": "shop"}}"#;
        let podman =
            r#"[{"id": "other", "names": ["no"]}, {"id": "H", "names": ["web", "alias"]}]"#;
        for (path, file, contents) in [
            (
                "/docker/H".to_owned(),
                "var/lib/docker/containers/H/config.v2.json",
                r#"{"Name": "/web"}"#,
            ),
            (
                "/machine.slice/libpod-H.scope".to_owned(),
                "var/lib/containers/storage/vfs-containers/containers.json",
                podman,
            ),
            (
                "/user.slice/user-7.slice/libpod-H.scope".to_owned(),
                "home/a/.local/share/containers/storage/overlay-containers/containers.json",
                podman,
            ),
            (
                "/owned/H".to_owned(),
                "home/a/.local/share/containers/storage/vfs-containers/containers.json",
                podman,
            ),
            (
                format!("{pod}/cri-containerd-H.scope"),
                "run/containerd/io.containerd.runtime.v2.task/k8s.io/H/config.json",
                cri,
            ),
            (
                format!("{pod}/crio-H.scope"),
                "run/containers/storage/overlay-containers/H/userdata/config.json",
                crio,
            ),
        ] {
            let cgroup = named(&path, file, contents);
            assert_eq!(cgroup.container.unwrap().shown(), "web", "{path}");
            assert!(
                cgroup.pod.is_none_or(|pod| pod.shown() == "shop/web-1"),
                "{path}"
            );
        }
    }

    #[test]
    fn a_pipe_in_place_of_a_file_gives_no_names_at_once() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("containers.json");
        mknodat(CWD, &file, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(json(&file), None);
    }

    #[test]
    fn a_user_names_no_containers_of_others() {
        let list = r#"[{"id": "H", "names": ["web"]}]"#;
        for path in ["/machine.slice/libpod-H.scope", "/other/H", "/docker/H"] {
            let file = "home/a/.local/share/containers/storage/vfs-containers/containers.json";
            let cgroup = named(path, file, list);
            assert_eq!(cgroup.container.unwrap().shown(), &ID[..12], "{path}");
        }
    }

    #[test]
    fn files_that_make_no_sense_give_no_names() {
        for contents in ["", "{", "[]", "7", r#"{"Name": 7}"#, r#"{"Name": ""}"#] {
            let file = "var/lib/docker/containers/H/config.v2.json";
            let cgroup = named("/docker/H", file, contents);
            assert_eq!(cgroup.container.unwrap().shown(), &ID[..12], "{contents}");
        }
    }
}
