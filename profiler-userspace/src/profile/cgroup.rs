//! Cgroups, and what their paths say: the container, pod or unit that a process belongs to.
//!
//! In: the path of a cgroup in its hierarchy, as the host sees it. Out: a [`Cgroup`], and whether it is one that was asked for.
//! Never: reads files; names that paths do not hold are given by others.

mod patterns;
mod wanted;

pub use wanted::CgroupPattern;

use std::sync::Arc;

/// So much of a container's ID is shown, as its runtime does.
const SHORT_ID: usize = 12;

/// A cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cgroup {
    /// Its path from the root of its hierarchy on, beginning with a slash. Any characters at all.
    pub path: Arc<str>,
    /// The innermost container that it belongs to.
    pub container: Option<Container>,
    /// The innermost pod.
    pub pod: Option<Pod>,
    /// The innermost service or scope of systemd that is no container's: `nginx.service`.
    pub unit: Option<Arc<str>>,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Container {
    /// Its runtime: `docker`, `containerd`, `cri-o`, `podman`, `lxc`, `nspawn` …
    pub runtime: &'static str,
    /// Its ID; the name where a runtime has no IDs.
    pub id: Arc<str>,
    /// Its name, where the runtime has told it.
    pub name: Option<Arc<str>>,
}

/// A pod of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pod {
    /// Its UID.
    pub uid: Arc<str>,
    /// Its name, where it is known.
    pub name: Option<Arc<str>>,
    /// Its namespace, where that is known.
    pub namespace: Option<Arc<str>>,
}

/// Parts by which stacks are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupPart {
    /// Containers.
    Container,
    /// Units of systemd.
    Unit,
    /// Pods.
    Pod,
    /// Cgroups.
    Cgroup,
}

impl CgroupPart {
    /// The name that it has in a cgroup; where there is none, that is said.
    pub fn of(self, cgroup: Option<&Cgroup>) -> String {
        let name = cgroup.and_then(|cgroup| match self {
            Self::Container => cgroup.container_name(),
            Self::Unit => cgroup.unit_name(),
            Self::Pod => cgroup.pod_name(),
            Self::Cgroup => Some(cgroup.path.to_string()),
        });
        name.unwrap_or_else(|| {
            let absent = match self {
                Self::Container => "[no container]",
                Self::Unit => "[no unit]",
                Self::Pod => "[no pod]",
                Self::Cgroup => "[unknown cgroup]",
            };
            absent.to_owned()
        })
    }
}

impl Cgroup {
    /// The cgroup of this path, whose container and pod are shown by these names.
    pub fn told(path: &str, container: Option<&str>, pod: Option<&str>) -> Self {
        let mut cgroup = Self::of_path(path);
        if let (Some(known), Some(name)) = (&mut cgroup.container, container)
            && known.shown() != name
        {
            known.name = Some(name.into());
        }
        if let (Some(known), Some(name)) = (&mut cgroup.pod, pod)
            && *known.uid != *name
        {
            let (namespace, name) = name
                .split_once('/')
                .map_or((None, name), |(space, name)| (Some(space), name));
            (known.namespace, known.name) = (namespace.map(Arc::from), Some(name.into()));
        }
        cgroup
    }

    /// The name of its container, if it is of one.
    pub fn container_name(&self) -> Option<String> {
        Some(self.container.as_ref()?.shown().to_owned())
    }

    /// The name of its unit, if it is of one.
    pub fn unit_name(&self) -> Option<String> {
        Some(self.unit.as_ref()?.to_string())
    }

    /// The name of its pod, if it is of one.
    pub fn pod_name(&self) -> Option<String> {
        Some(self.pod.as_ref()?.shown())
    }
}

impl Container {
    /// Its name; the beginning of its ID where it has none.
    pub fn shown(&self) -> &str {
        let short = self
            .id
            .get(..SHORT_ID)
            .filter(|_| patterns::is_id(&self.id));
        self.name.as_deref().or(short).unwrap_or(&self.id)
    }
}

impl Pod {
    /// `namespace/name`; its UID where it has none.
    pub fn shown(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
            (None, Some(name)) => name.to_string(),
            (_, None) => self.uid.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_told_by_its_path_and_names() {
        let id = "ab".repeat(32);
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        let path = format!("/kubepods/pod{uid}/{id}");
        for (container, pod) in [("web", "shop/web-1"), ("web", "web-1"), (&id[..12], uid)] {
            let cgroup = Cgroup::told(&path, Some(container), Some(pod));
            assert_eq!(CgroupPart::Container.of(Some(&cgroup)), container);
            assert_eq!(CgroupPart::Pod.of(Some(&cgroup)), pod);
            assert_eq!(CgroupPart::Unit.of(Some(&cgroup)), "[no unit]");
            assert_eq!(CgroupPart::Cgroup.of(Some(&cgroup)), path);
        }
        assert_eq!(CgroupPart::Container.of(None), "[no container]");
    }
}
