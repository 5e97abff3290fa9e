//! Files of the target that may contain the functions to watch.
//!
//! In: the plan's target, and which files are meant. Out: those files, open. A file is the one the target
//! has, whatever is under its path here.

use super::code_files::code_files;
use super::{command, tasks};
use crate::object::RegularFile;
use crate::plan::{Plan, Target};
use crate::targets::needed_libs::needed_libs_of;
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// A file to search, and the processes its functions are watched for.
pub(crate) struct UprobeTarget {
    /// The file.
    pub(crate) file: RegularFile,
    /// Its name in messages.
    pub(crate) shown: String,
    /// One process, or all.
    pub(crate) process: Option<NonZeroU32>,
}

/// The file at a path: an absolute path as the targets see it.
pub(crate) fn at(plan: &Plan, path: &Path) -> Result<Vec<UprobeTarget>> {
    let ids = tasks::ids(&plan.target);
    let shown = path.display().to_string();
    let here = || RegularFile::open(path).with_context(|| format!("{shown} cannot be opened"));
    if ids.is_empty() {
        return Ok(vec![UprobeTarget {
            file: here()?,
            shown: shown.clone(),
            process: None,
        }]);
    }
    ids.iter()
        .map(|&id| {
            let file = if path.is_relative() {
                here()?
            } else {
                let root = PathBuf::from(format!("/proc/{id}/root"));
                RegularFile::open_within(&root, path)
                    .with_context(|| format!("{shown} cannot be opened as {id} sees it"))?
            };
            Ok(UprobeTarget {
                file,
                shown: shown.clone(),
                process: NonZeroU32::new(id),
            })
        })
        .collect()
}

/// The matching files of each target; or the beginning of a sentence, about a target that has none.
pub(crate) fn of_target(
    plan: &Plan,
    is_meant: &dyn Fn(&Path) -> bool,
) -> Result<Vec<UprobeTarget>, String> {
    let mut targets = Vec::new();
    match &plan.target {
        Target::Processes(ids) | Target::Threads(ids) => {
            // Of several, some may be without it: shells beside what they run.
            targets.extend(ids.iter().flat_map(|&id| mapped(id, is_meant)));
            if targets.is_empty() {
                let (none, verb) = match ids[..] {
                    [id] => (id.to_string(), "has not"),
                    _ => (format!("none of {} targets", ids.len()), "has"),
                };
                return Err(format!("{none} {verb} mapped"));
            }
        }
        Target::Matching(_) => {}
        Target::Launched => {
            let program = plan.launch.as_deref().and_then(command::program);
            let files = program
                .into_iter()
                .flat_map(|program| [vec![program.clone()], needed_libs_of(&program)].concat());
            let opened = files.filter_map(|path| {
                if !is_meant(Path::new(path.file_name()?)) {
                    return None;
                }
                Some(UprobeTarget {
                    file: RegularFile::open(&path).ok()?,
                    shown: path.display().to_string(),
                    process: None,
                })
            });
            // One library may have two names, as musl's has.
            targets.extend(distinct(opened));
            if targets.is_empty() {
                return Err("the command is not linked with".to_owned());
            }
        }
        Target::Cgroups(target) => {
            targets.extend(of_any(&target.pids, is_meant));
            if targets.is_empty() {
                return Err(format!("no process in {target} has mapped"));
            }
        }
        Target::All => {
            targets.extend(of_any(&tasks::busiest(), is_meant));
            if targets.is_empty() {
                return Err("no process has mapped".to_owned());
            }
        }
    }
    Ok(targets)
}

/// The files that these processes have mapped, to be watched in all processes: others may come.
fn of_any(ids: &[u32], is_meant: &dyn Fn(&Path) -> bool) -> impl Iterator<Item = UprobeTarget> {
    let of_all = ids.iter().flat_map(move |&id| mapped(id, is_meant));
    distinct(of_all.map(|target| UprobeTarget {
        process: None,
        ..target
    }))
}

/// Each file once.
fn distinct(targets: impl Iterator<Item = UprobeTarget>) -> impl Iterator<Item = UprobeTarget> {
    let mut known = BTreeSet::new();
    targets.filter(move |target| known.insert(target.file.number))
}

/// The matching files that a process has mapped as code.
pub(crate) fn mapped(id: u32, is_meant: &dyn Fn(&Path) -> bool) -> Vec<UprobeTarget> {
    let files = code_files(id, is_meant).into_iter().flatten();
    let opened = files.filter_map(|found| {
        Some(UprobeTarget {
            file: found.opened.ok()?.file,
            shown: found.name,
            process: NonZeroU32::new(id),
        })
    });
    opened.collect()
}
