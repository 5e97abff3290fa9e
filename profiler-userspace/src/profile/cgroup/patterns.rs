//! The paths that container runtimes, Kubernetes and systemd give to cgroups.
//!
//! In: a path. Out: what it says of container, pod and unit. The innermost of each counts.

use super::{Cgroup, Container, Pod};
use std::sync::Arc;

/// Bytes of the IDs that docker, containerd, cri-o and podman give to containers, all of them hexadecimal.
const ID_BYTES: usize = 64;

/// Runtimes by what they put before an ID: `docker-ID.scope`, `libpod-ID`, `…:cri-containerd:ID`.
const PREFIXES: &[(&str, &str)] = &[
    ("docker", "docker"),
    ("cri-containerd", "containerd"),
    ("nerdctl", "containerd"),
    ("crio", "cri-o"),
    ("libpod", "podman"),
    ("libpod-payload", "podman"),
];

/// Processes that watch over a container from outside, in a cgroup with its ID.
const MONITORS: &[&str] = &["crio-conmon-", "libpod-conmon-", "lxc.monitor."];

impl Cgroup {
    /// The cgroup of this path, with what the path says.
    pub fn of_path(path: impl Into<Arc<str>>) -> Self {
        let path = path.into();
        let (mut container, mut pod, mut unit) = (None, None, None);
        let (mut above, mut before) = ("", "");
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let is_monitor = MONITORS.iter().any(|monitor| name.starts_with(monitor));
            let found = container_of(above, before, name).filter(|_| !is_monitor);
            let is_unit = name.ends_with(".service") || name.ends_with(".scope");
            if is_unit && found.is_none() {
                unit = Some(Arc::from(name));
            }
            container = found.or(container);
            pod = pod_of(before, name).or(pod);
            (above, before) = (before, name);
        }
        Self {
            path,
            container,
            pod,
            unit,
        }
    }
}

/// Whether this is the ID of a container.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == ID_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The container that the cgroup `name` is of, in the cgroup `before`, which is in `above`.
fn container_of(above: &str, before: &str, name: &str) -> Option<Container> {
    let new = |runtime, id: &str| Container {
        runtime,
        id: id.into(),
        name: None,
    };
    if is_id(name) {
        let runtime = match (above, before) {
            (_, "docker") => "docker",
            ("ecs", _) => "ecs",
            (_, pod) if uid_of(pod).is_some() => "kubernetes",
            _ => "containerd",
        };
        return Some(new(runtime, name));
    }
    let stem = name.strip_suffix(".scope").unwrap_or(name);
    // containerd and cri-o write so where systemd was meant to make the cgroup, and did not.
    let by_colon = stem.rsplit_once(':').map(|(rest, id)| {
        let prefix = rest.rsplit_once(':').map_or(rest, |(_, prefix)| prefix);
        (prefix, id)
    });
    if let Some((prefix, id)) = by_colon.or_else(|| stem.rsplit_once('-'))
        && is_id(id)
        && let Some((_, runtime)) = PREFIXES.iter().find(|(known, _)| *known == prefix)
    {
        return Some(new(runtime, id));
    }
    if let Some(id) = name.strip_prefix("lxc.payload.") {
        return Some(new("lxc", id));
    }
    if before == "lxc" {
        return Some(new("lxc", name));
    }
    if before != "machine.slice" {
        return None;
    }
    let of_service = || {
        let service = name.strip_suffix(".service")?;
        service.strip_prefix("systemd-nspawn@")
    };
    let machine = name
        .strip_suffix(".scope")
        .and_then(|name| name.strip_prefix("machine-"))
        .or_else(of_service)?;
    let machine = unescaped(machine);
    let runtime = match machine.strip_prefix("qemu-") {
        Some(_) => "libvirt",
        None => "nspawn",
    };
    Some(new(runtime, &machine))
}

/// The pod that the cgroup `name` in the cgroup `before` is of.
fn pod_of(before: &str, name: &str) -> Option<Pod> {
    let name = name.split(':').next().unwrap_or(name);
    let is_below = ["kubepods", "besteffort", "burstable", "guaranteed"].contains(&before);
    let uid = match name.strip_suffix(".slice") {
        Some(slice) if slice.contains("kubepods") => uid_of(&slice[slice.rfind("-pod")? + 1..])?,
        None if is_below => uid_of(name)?,
        _ => return None,
    };
    Some(Pod {
        uid: uid.into(),
        name: None,
        namespace: None,
    })
}

/// The UID in `podUID`. systemd takes `_` for `-`. Pods that a file describes have a hash for a UID.
fn uid_of(name: &str) -> Option<String> {
    let uid = name.strip_prefix("pod")?.replace('_', "-");
    let is_hash = uid.len() == 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths = uid.split('-').map(str::len);
    let is_uuid = lengths.eq([8, 4, 4, 4, 12])
        && uid
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    (is_hash || is_uuid).then_some(uid)
}

/// A name as systemd escapes it: `\x2d` is a hyphen.
fn unescaped(name: &str) -> String {
    let mut parts = name.split("\\x");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => {
                whole.push(char::from(byte));
                whole.push_str(&part[2..]);
            }
            None => {
                whole.push_str("\\x");
                whole.push_str(part);
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const OTHER: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
    const UID: &str = "01234567-89ab-cdef-0123-456789abcdef";

    /// Container's runtime and ID, pod and unit of a path, in which H is an ID, G another and U a UID.
    fn said(
        path: &str,
    ) -> (
        Option<(&'static str, String)>,
        Option<String>,
        Option<String>,
    ) {
        let path = path
            .replace('H', ID)
            .replace('G', OTHER)
            .replace("V", &UID.replace('-', "_"))
            .replace('U', UID);
        let cgroup = Cgroup::of_path(path);
        let id = |id: &str| match id {
            ID => "H".to_owned(),
            OTHER => "G".to_owned(),
            other => other.to_owned(),
        };
        (
            cgroup.container.map(|it| (it.runtime, id(&it.id))),
            cgroup.pod.map(|pod| pod.uid.replace(UID, "U")),
            cgroup.unit.map(|unit| unit.replace(ID, "H")),
        )
    }

    #[test]
    fn paths_of_runtimes_name_their_containers() {
        for (path, runtime, id) in [
            ("/docker/H", "docker", "H"),
            ("/docker/H/init", "docker", "H"),
            ("/docker/H/docker/G", "docker", "G"),
            ("/system.slice/docker-H.scope", "docker", "H"),
            (
                "/user.slice/user-1.slice/user@1.service/user.slice/docker-H.scope",
                "docker",
                "H",
            ),
            ("/system.slice/nerdctl-H.scope", "containerd", "H"),
            ("/default/H", "containerd", "H"),
            ("/k8s.io/H", "containerd", "H"),
            ("/system.slice:cri-containerd:H", "containerd", "H"),
            ("/machine.slice/libpod-H.scope", "podman", "H"),
            ("/machine.slice/libpod-H.scope/container", "podman", "H"),
            ("/libpod_parent/libpod-H", "podman", "H"),
            ("/system.slice/web.service/libpod-payload-H", "podman", "H"),
            ("/lxc/web", "lxc", "web"),
            ("/lxc/web/system.slice", "lxc", "web"),
            ("/lxc.payload.web/init.scope", "lxc", "web"),
            (
                "/machine.slice/machine-a\\x2db.scope/payload",
                "nspawn",
                "a-b",
            ),
            ("/machine.slice/systemd-nspawn@web.service", "nspawn", "web"),
            (
                "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope",
                "libvirt",
                "qemu-1-vm",
            ),
            ("/ecs/task/H", "ecs", "H"),
        ] {
            assert_eq!(said(path).0, Some((runtime, id.to_owned())), "{path}");
        }
    }

    #[test]
    fn paths_of_kubernetes_name_pod_and_container() {
        for (path, runtime) in [
            (
                "/kubepods.slice/kubepods-podV.slice/cri-containerd-H.scope",
                Some("containerd"),
            ),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podV.slice/crio-H.scope/container",
                Some("cri-o"),
            ),
            (
                "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podV.slice/docker-H.scope",
                Some("docker"),
            ),
            ("/kubepods/besteffort/podU/H", Some("kubernetes")),
            ("/kubepods/podU/H", Some("kubernetes")),
            ("/kubepods/podU", None),
            (
                "/kubepods-besteffort-podV.slice:cri-containerd:H",
                Some("containerd"),
            ),
            (
                "/docker/G/kubepods.slice/kubepods-podV.slice/cri-containerd-H.scope",
                Some("containerd"),
            ),
        ] {
            let (container, pod, unit) = said(path);
            assert_eq!(
                container,
                runtime.map(|runtime| (runtime, "H".to_owned())),
                "{path}"
            );
            assert_eq!((pod.as_deref(), unit), (Some("U"), None), "{path}");
        }
        let static_pod = "/kubepods/burstable/pod0123456789abcdef0123456789abcdef/H";
        assert_eq!(
            said(static_pod).1.as_deref(),
            Some("0123456789abcdef0123456789abcdef")
        );
    }

    #[test]
    fn paths_of_systemd_name_the_innermost_unit() {
        for (path, unit) in [
            ("/system.slice/nginx.service", Some("nginx.service")),
            ("/system.slice/nginx.service/workers", Some("nginx.service")),
            (
                "/user.slice/user-1000.slice/session-3.scope",
                Some("session-3.scope"),
            ),
            (
                "/user.slice/user-1.slice/user@1.service/app.slice/sync.service",
                Some("sync.service"),
            ),
            (
                "/docker/H/system.slice/nginx.service",
                Some("nginx.service"),
            ),
            (
                "/system.slice/web.service/libpod-payload-H",
                Some("web.service"),
            ),
            ("/system.slice/docker-H.scope", None),
            ("/system.slice", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(said(path).2.as_deref(), unit, "{path}");
        }
    }

    #[test]
    fn watchers_and_look_alikes_are_no_containers() {
        for path in [
            "/machine.slice/libpod-conmon-H.scope",
            "/system.slice/crio-conmon-H.scope",
            "/lxc.monitor.web",
            "/system.slice/docker.service",
            "/docker/0123456789abcdef",
            "/system.slice/docker-short.scope",
            "/kubepods/podnot-a-uid",
            "/machine.slice/other.service",
        ] {
            let (container, pod, _) = said(path);
            assert_eq!((container, pod), (None, None), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_kept_as_it_is(path in any::<String>()) {
            prop_assert_eq!(&*Cgroup::of_path(&*path).path, path);
        }
    }
}
