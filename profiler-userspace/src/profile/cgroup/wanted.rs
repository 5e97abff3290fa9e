//! Cgroups that somebody asks for.

use super::Cgroup;
use std::fmt;

/// Cgroups by where they are or by what runs in them, each with all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CgroupPattern {
    /// By their path.
    Path(String),
    /// By a container's name, or the beginning of its ID.
    Container(String),
    /// By a unit of systemd.
    Unit(String),
    /// By a pod's name, with or without its namespace, or its UID.
    Pod(String),
}

impl CgroupPattern {
    /// By a unit, which is a service where its name says no more.
    pub fn unit(name: &str) -> Self {
        Self::Unit(match name.contains('.') {
            true => name.to_owned(),
            false => format!("{name}.service"),
        })
    }

    /// Whether a cgroup is meant, or lies below one that is.
    pub fn is_met_by(&self, cgroup: &Cgroup) -> bool {
        match self {
            Self::Path(path) => is_below(&cgroup.path, path),
            Self::Container(wanted) => cgroup.container.as_ref().is_some_and(|container| {
                container.name.as_deref() == Some(wanted)
                    || container.id.starts_with(&**wanted)
                        && (super::patterns::is_id(&container.id) || *container.id == **wanted)
            }),
            Self::Unit(unit) => cgroup.path.split('/').any(|name| name == unit),
            Self::Pod(wanted) => cgroup.pod.as_ref().is_some_and(|pod| {
                pod.name.as_deref() == Some(wanted)
                    || *pod.uid == **wanted
                    || pod.shown() == *wanted
            }),
        }
    }

    /// The word for what it asks for.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Path(_) => "cgroup",
            Self::Container(_) => "container",
            Self::Unit(_) => "unit",
            Self::Pod(_) => "pod",
        }
    }

    /// The name that was asked for.
    pub fn name(&self) -> &str {
        match self {
            Self::Path(name) | Self::Container(name) | Self::Unit(name) | Self::Pod(name) => name,
        }
    }

    /// The name by which this would find a cgroup; none if it has nothing of the kind.
    pub fn name_in(&self, cgroup: &Cgroup) -> Option<String> {
        match self {
            Self::Path(_) => Some(cgroup.path.to_string()),
            Self::Container(_) => Some(cgroup.container.as_ref()?.shown().to_owned()),
            Self::Unit(_) => Some(cgroup.unit.as_ref()?.to_string()),
            Self::Pod(_) => Some(cgroup.pod.as_ref()?.shown()),
        }
    }
}

impl fmt::Display for CgroupPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.noun(), self.name())
    }
}

/// Whether a path is that of a cgroup, or of one below it.
fn is_below(path: &str, cgroup: &str) -> bool {
    let cgroup = cgroup.trim_end_matches('/');
    path.strip_prefix(cgroup)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_met_with_all_below_it() {
        let meets = |pattern: CgroupPattern, path: &str| pattern.is_met_by(&Cgroup::of_path(path));
        let path = |path: &str| CgroupPattern::Path(path.to_owned());
        assert!(meets(path("/a"), "/a") && meets(path("/a/"), "/a/b") && meets(path("/"), "/x"));
        assert!(!meets(path("/a"), "/ab") && !meets(path("/a/b"), "/a"));
        let unit = CgroupPattern::unit("nginx");
        assert!(meets(unit.clone(), "/system.slice/nginx.service/worker"));
        assert!(!meets(unit, "/system.slice/nginx-debug.service"));
        let slice = CgroupPattern::unit("user-1000.slice");
        assert!(meets(slice, "/user.slice/user-1000.slice/session-1.scope"));
    }

    #[test]
    fn containers_are_met_by_name_and_by_the_beginning_of_their_id() {
        let id = "ab".repeat(32);
        let mut cgroup = Cgroup::of_path(format!("/docker/{id}"));
        if let Some(container) = &mut cgroup.container {
            container.name = Some("web".into());
        }
        let meets = |name: &str| CgroupPattern::Container(name.to_owned()).is_met_by(&cgroup);
        assert!(meets("web") && meets("abab") && meets(&id));
        assert!(!meets("we") && !meets("b"));
        let lxc = Cgroup::of_path("/lxc/web");
        let meets = |name: &str| CgroupPattern::Container(name.to_owned()).is_met_by(&lxc);
        assert!(meets("web") && !meets("w"));
    }

    #[test]
    fn pods_are_met_by_name_and_uid() {
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        let mut cgroup = Cgroup::of_path(format!("/kubepods/pod{uid}"));
        if let Some(pod) = &mut cgroup.pod {
            (pod.name, pod.namespace) = (Some("web-1".into()), Some("shop".into()));
        }
        let meets = |name: &str| CgroupPattern::Pod(name.to_owned()).is_met_by(&cgroup);
        assert!(meets("web-1") && meets("shop/web-1") && meets(uid));
        assert!(!meets("web") && !meets("other/web-1"));
    }
}
