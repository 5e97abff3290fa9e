//! The cgroups that are asked for, before the recording begins.
//!
//! In: patterns, the hierarchies of this machine. Out: the hierarchy that has them, and the processes in there; or a refusal that says what
//! there is.

use super::{Cgroups, Hierarchy};
use crate::profile::cgroup::{Cgroup, CgroupPattern};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// So many names are listed in a refusal.
const MAX_NAMES: usize = 8;

/// Names that are less alike are not near.
const NEAR: f64 = 0.7;

/// Where the cgroups are that are asked for.
#[derive(Debug)]
pub struct Resolved {
    /// The cgroups of the hierarchy that has them.
    pub cgroups: Cgroups,
    /// All that are there, by their IDs.
    pub there: Vec<(u64, Arc<Cgroup>)>,
    /// The processes in those that are wanted.
    pub pids: Vec<u32>,
}

/// Looks for cgroups in each hierarchy.
///
/// # Errors
/// When one of the patterns meets nothing, with the names that come near.
pub fn resolve(wanted: &[CgroupPattern]) -> Result<Resolved> {
    let hierarchies = Hierarchy::all();
    let mounted = hierarchies.into_iter().filter(|it| it.mount.is_some());
    let mut anywhere: Option<Vec<(u64, Arc<Cgroup>)>> = None;
    for hierarchy in mounted {
        let Some(patterns) = in_hierarchy(wanted, &hierarchy) else {
            continue;
        };
        let mut cgroups = Cgroups::new(hierarchy.clone(), Some(patterns.clone()));
        let there = cgroups.all();
        let is_there = |pattern: &CgroupPattern| there.iter().any(|(_, it)| pattern.is_met_by(it));
        if patterns.iter().all(is_there) {
            let pids = pids(&hierarchy, |cgroup| cgroups.wants(cgroup), &there);
            return Ok(Resolved {
                cgroups,
                there,
                pids,
            });
        }
        anywhere.get_or_insert_default().extend(there);
    }
    match anywhere {
        Some(there) => bail!("{}", refusal(wanted, &there)),
        None => bail!(
            "no cgroup hierarchy is mounted here that has {}; mount it: mount -t cgroup2 none /sys/fs/cgroup, and in a container give it the host's: \
             -v /sys/fs/cgroup:/sys/fs/cgroup:ro",
            listed(wanted)
        ),
    }
}

/// The patterns with paths from the root of this hierarchy on; none if one of them is a directory elsewhere.
fn in_hierarchy(wanted: &[CgroupPattern], hierarchy: &Hierarchy) -> Option<Vec<CgroupPattern>> {
    let changed = wanted.iter().map(|pattern| match pattern {
        CgroupPattern::Path(path) => {
            let directory = Path::new(path);
            let is_directory = directory.starts_with("/sys/fs/cgroup");
            match hierarchy.path_of_directory(directory) {
                Some(path) => Some(CgroupPattern::Path(path)),
                None if is_directory => None,
                None => Some(CgroupPattern::Path(format!("/{}", path.trim_matches('/')))),
            }
        }
        other => Some(other.clone()),
    });
    changed.collect()
}

/// The processes in cgroups.
fn pids(
    hierarchy: &Hierarchy,
    is_wanted: impl Fn(&Cgroup) -> bool,
    there: &[(u64, Arc<Cgroup>)],
) -> Vec<u32> {
    let Some(mount) = &hierarchy.mount else {
        return Vec::new();
    };
    let wanted: BTreeSet<&str> = (there.iter())
        .filter(|(_, cgroup)| is_wanted(cgroup))
        .map(|(_, cgroup)| &*cgroup.path)
        .collect();
    let mut pids: Vec<u32> = hierarchy
        .walk()
        .into_iter()
        .filter(|(_, path, _)| wanted.contains(path.as_str()))
        .flat_map(|(_, _, below)| {
            let text =
                fs::read_to_string(mount.join(below).join("cgroup.procs")).unwrap_or_default();
            // Zero is a process of another PID namespace.
            let pids = text.lines().filter_map(|line| line.parse().ok());
            pids.filter(|&pid: &u32| pid != 0).collect::<Vec<u32>>()
        })
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

fn listed(wanted: &[CgroupPattern]) -> String {
    let names: Vec<String> = wanted.iter().map(CgroupPattern::to_string).collect();
    names.join(" or ")
}

/// Why nothing is met by one of the patterns, with the names that come near, or else some of those there are.
fn refusal(wanted: &[CgroupPattern], there: &[(u64, Arc<Cgroup>)]) -> String {
    let is_absent =
        |pattern: &&CgroupPattern| !there.iter().any(|(_, cgroup)| pattern.is_met_by(cgroup));
    let Some(absent) = wanted.iter().find(is_absent) else {
        return format!(
            "{} are not in one hierarchy; record them in several runs",
            listed(wanted)
        );
    };
    let noun = absent.noun();
    let names: BTreeSet<String> = (there.iter())
        .filter_map(|(_, cgroup)| absent.name_in(cgroup))
        .collect();
    if names.is_empty() {
        return format!(
            "there is no {absent}, nor any other {noun}; --cgroup takes what `systemd-cgls` shows, and -p a process"
        );
    }
    let asked = absent.name().to_lowercase();
    let likeness = |name: &String| {
        let lower = name.to_lowercase();
        let contained = lower.contains(asked.trim_matches('/'));
        strsim::jaro_winkler(&asked, &lower).max(if contained { 1.0 } else { 0.0 })
    };
    let mut scored: Vec<(f64, &String)> = names.iter().map(|name| (likeness(name), name)).collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    let near = scored.iter().filter(|(score, _)| *score >= NEAR).count();
    let shown = if near > 0 { near } else { scored.len() };
    let shown: Vec<&str> = scored[..shown.min(MAX_NAMES)]
        .iter()
        .map(|(_, name)| name.as_str())
        .collect();
    let rest = match names.len() - shown.len() {
        0 => String::new(),
        rest => format!(", and {rest} more"),
    };
    format!("there is no {absent}; there are {}{rest}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(paths: &[&str]) -> Vec<(u64, Arc<Cgroup>)> {
        let all = paths.iter().zip(1..);
        all.map(|(path, id)| (id, Arc::new(Cgroup::of_path(*path))))
            .collect()
    }

    #[test]
    fn a_refusal_says_what_there_is() {
        let units = there(&["/", "/a.slice/nginx.service", "/a.slice/cron.service/x"]);
        let unit = refusal(&[CgroupPattern::unit("ngnix")], &units);
        let expected = "there is no unit ngnix.service; there are nginx.service";
        assert!(unit.starts_with(expected), "{unit}");
        assert_eq!(
            refusal(&[CgroupPattern::Path("/b".to_owned())], &units[..1]),
            "there is no cgroup /b; there are /"
        );
        assert!(
            refusal(&[CgroupPattern::Pod("web".to_owned())], &units)
                .starts_with("there is no pod web, nor any other pod;")
        );
    }
}
