//! Processes that are chosen by name, by the file they run, or as children of others.
//!
//! In: what was asked for, and `/proc`. Out: PIDs, or a refusal that says what there is. Never: this process itself.

use super::tasks;
use crate::plan::{Children, Matching, Target};
use crate::process::name_with_what_runs;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// So many names are listed in a refusal.
const MAX_NAMES: usize = 8;

/// A process that runs.
struct Candidate {
    pid: u32,
    parent: u32,
    comm: String,
    /// Its name in graphs, if it is a runtime's: `java shop.jar`.
    shown: Option<String>,
    /// The file that it runs, as it sees it; none for kernel threads.
    program: Option<PathBuf>,
}

impl Candidate {
    /// Its name, that with what it runs, what that is alone, and that of its file: the kernel cuts the first after 15 bytes, and
    /// programs may change it.
    fn names(&self) -> impl Iterator<Item = &str> {
        let file = self.program.as_deref().and_then(Path::file_name);
        let file = file.and_then(|name| name.to_str());
        let shown = self.shown.as_deref();
        let run = shown.and_then(|shown| Some(shown.split_once(' ')?.1));
        [Some(&*self.comm), shown, run, file].into_iter().flatten()
    }

    fn matches(&self, wanted: &Matching) -> bool {
        let names = &wanted.names;
        self.names()
            .any(|name| names.iter().any(|pattern| pattern.is_met_by(name)))
            || wanted.programs.iter().any(|program| self.runs(program))
    }

    /// Whether it runs this file: by the path that it knows it by, or because it is the same file.
    fn runs(&self, program: &Path) -> bool {
        let key = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let is_same = || {
            let own = key(Path::new(&format!("/proc/{}/exe", self.pid)));
            own.is_some() && own == key(program)
        };
        self.program.as_deref() == Some(program) || is_same()
    }
}

/// The target with the PIDs of the processes that are asked for.
///
/// # Errors
/// When no process matches one of them: another that does would hide the typing error.
pub(crate) fn resolved(target: &Target, children: Children) -> Result<Target> {
    let (mut pids, candidates) = match target {
        Target::Matching(wanted) => {
            let candidates = candidates();
            for one in wanted.each() {
                if !candidates.iter().any(|process| process.matches(&one)) {
                    bail!("{}", refusal(&one, &candidates));
                }
            }
            let matching = candidates.iter().filter(|process| process.matches(wanted));
            (matching.map(|process| process.pid).collect(), candidates)
        }
        Target::Processes(pids) if children == Children::All => (pids.clone(), candidates()),
        _ => return Ok(target.clone()),
    };
    if children == Children::All {
        add_descendants(&mut pids, &candidates);
    }
    Ok(Target::Processes(pids))
}

fn candidates() -> Vec<Candidate> {
    let own = std::process::id();
    let others = tasks::parents().filter(|&(pid, _)| pid != own);
    let mut all: Vec<Candidate> = others
        .filter_map(|(pid, parent)| {
            let comm = tasks::comm(pid)?;
            Some(Candidate {
                pid,
                parent,
                shown: name_with_what_runs(pid, &comm),
                comm,
                program: fs::read_link(format!("/proc/{pid}/exe")).ok(),
            })
        })
        .collect();
    all.sort_by_key(|process| process.pid);
    all
}

/// Adds children, their children and so on.
fn add_descendants(pids: &mut Vec<u32>, candidates: &[Candidate]) {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in candidates {
        children
            .entry(process.parent)
            .or_default()
            .push(process.pid);
    }
    let mut next = 0;
    while let Some(pid) = pids.get(next) {
        // Taken, so that a PID that changed hands while `/proc` was read leads in no circle.
        for child in children.remove(pid).unwrap_or_default() {
            if !pids.contains(&child) {
                pids.push(child);
            }
        }
        next += 1;
    }
}

/// Why nothing matches, with the names that come near, or else those of the busiest processes.
fn refusal(wanted: &Matching, candidates: &[Candidate]) -> String {
    let names = wanted
        .names
        .iter()
        .map(|pattern| pattern.name().to_lowercase());
    let parts: Vec<String> = names
        .chain(
            wanted
                .programs
                .iter()
                .filter_map(|program| Some(program.file_name()?.to_string_lossy().to_lowercase())),
        )
        .collect();
    let is_near = |process: &&Candidate| {
        process.names().any(|name| {
            let name = name.to_lowercase();
            // `su` is a part of many words.
            let is_much_of = |part: &str| part.contains(&*name) && name.len() * 2 >= part.len();
            parts
                .iter()
                .any(|part| name.contains(part.as_str()) || is_much_of(part))
        })
    };
    let near = counts(candidates.iter().filter(is_near));
    let (verb, listed) = if near.is_empty() {
        let by_pid: HashMap<u32, &Candidate> = (candidates.iter())
            .map(|process| (process.pid, process))
            .collect();
        let busiest = tasks::busiest();
        let busiest = busiest.iter().filter_map(|pid| by_pid.get(pid).copied());
        let busiest = busiest.filter(|process| process.program.is_some());
        ("the busiest processes are", counts(busiest.take(MAX_NAMES)))
    } else {
        ("there are", near)
    };
    let listed: Vec<String> = (listed.into_iter().take(MAX_NAMES))
        .map(|(name, count)| match count {
            1 => name,
            _ => format!("{name} (×{count})"),
        })
        .collect();
    let asked = wanted.to_string();
    format!("no process {asked}; {verb} {}", listed.join(", "))
}

fn counts<'a>(processes: impl Iterator<Item = &'a Candidate>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for process in processes {
        let name = process.shown.as_ref().unwrap_or(&process.comm);
        *counts.entry(name.clone()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::select::Pattern;
    use std::process::{Child, Command};

    /// A process with a name of its own, ended with the test.
    struct Sleeper(Child);

    impl Sleeper {
        fn start(folder: &Path, name: &str) -> Self {
            let program = folder.join(name);
            fs::copy("/bin/sleep", &program).unwrap();
            let child = Command::new(&program).arg("100").spawn().unwrap();
            Self(child)
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ended = self.0.kill();
            let _reaped = self.0.wait();
        }
    }

    fn named(pattern: &str) -> Target {
        all_named(&[pattern])
    }

    fn all_named(patterns: &[&str]) -> Target {
        let patterns = patterns.iter();
        Target::Matching(Matching {
            names: patterns.map(|text| Pattern::whole(text).unwrap()).collect(),
            programs: Vec::new(),
        })
    }

    fn pids(target: &Target, children: Children) -> Vec<u32> {
        match resolved(target, children).unwrap() {
            Target::Processes(pids) => pids,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn processes_are_found_by_name_by_file_and_as_children() {
        let folder = tempfile::tempdir().unwrap();
        // Longer than the kernel keeps of a name.
        let sleepers = ["flame-test-sleeper-1", "flame-test-sleeper-2"]
            .map(|name| Sleeper::start(folder.path(), name));
        let of = |number: usize| sleepers[number].0.id();
        assert_eq!(
            pids(&named("flame-test-sleeper-1"), Children::None),
            [of(0)]
        );
        let both = pids(&named("flame-test-sleeper-[12]"), Children::ToCome);
        assert_eq!(both.len(), 2);
        let by_file = Target::Matching(Matching {
            names: Vec::new(),
            programs: vec![folder.path().join("flame-test-sleeper-2")],
        });
        assert_eq!(pids(&by_file, Children::None), [of(1)]);
        let own = Target::Processes(vec![std::process::id()]);
        assert_eq!(pids(&own, Children::None).len(), 1);
        let family = pids(&own, Children::All);
        assert!(family.contains(&of(0)) && family.contains(&of(1)));

        let error = resolved(&named("flame-test-sleeper"), Children::None).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("no process is named flame-test-sleeper; there are ")
                && error.contains("flame-test-slee (×2)"),
            "{error}"
        );
        let one_of_two = all_named(&["flame-test-sleeper-1", "flame-test-sleeper-3"]);
        let error = resolved(&one_of_two, Children::None).unwrap_err();
        let begin = "no process is named flame-test-sleeper-3; there are ";
        assert!(error.to_string().starts_with(begin), "{error}");
        let error = resolved(&named("no such thing"), Children::None).unwrap_err();
        assert!(
            error.to_string().contains("the busiest processes are "),
            "{error}"
        );
    }

    #[test]
    fn a_runtime_is_found_by_what_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        // As if it ran a class `100`.
        let java = Sleeper::start(folder.path(), "java");
        assert_eq!(pids(&named("java 100"), Children::None), [java.0.id()]);
        assert_eq!(pids(&named("100"), Children::None), [java.0.id()]);
        assert!(pids(&named("java"), Children::None).contains(&java.0.id()));
        let error = resolved(&named("java 10"), Children::None).unwrap_err();
        assert!(error.to_string().contains(" there are java 100"), "{error}");
    }

    #[test]
    fn names_that_are_a_small_part_of_what_was_asked_for_are_not_near() {
        let process = |comm: &str| Candidate {
            pid: 1,
            parent: 0,
            comm: comm.to_owned(),
            shown: None,
            program: None,
        };
        let all = ["su", "such", "sh"].map(process);
        let refused = |name: &str| {
            let Target::Matching(wanted) = named(name) else {
                panic!("a name");
            };
            refusal(&wanted, &all)
        };
        assert_eq!(
            refused("nosuch"),
            "no process is named nosuch; there are such"
        );
        assert_eq!(refused("bash"), "no process is named bash; there are sh");
        let several = Matching {
            names: ["nosuch", "bash"]
                .map(|name| Pattern::whole(name).unwrap())
                .into(),
            programs: ["/bin/a", "/bin/b"].map(PathBuf::from).into(),
        };
        assert_eq!(
            refusal(&several, &all),
            "no process is named nosuch or bash or runs /bin/a or /bin/b; there are sh, such"
        );
    }
}
