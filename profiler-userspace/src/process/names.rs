//! Names of processes.
//!
//! In: the name of the first thread, as the kernel half reported it or `/proc` shows it, and the command line of a runtime.
//! Out: bytes for readers: `nginx`, `java org.example.Main`, `node server.js`. Anything may be in them.

use super::ProcessKey;
use super::liveness::Liveness;
use foldhash::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::sync::Arc;

/// The most that is read of a command line, in bytes: paths of classes are long.
const MAX_BYTES: u64 = 1 << 20;

/// The most of what a runtime runs that is shown, in bytes.
const MAX_SHOWN: usize = 200;

/// Stands for the end of a longer one.
const CUT: &str = "…";

/// Names of the first threads of the runtimes' processes: that of Node is not the program's from version 22 on.
const RUNTIME_THREADS: [&[u8]; 4] = [b"java", b"node", b"nodejs", b"MainThread"];

/// Options of `java` whose value is the next word.
const JAVA_VALUES: [&str; 14] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
    "--limit-modules",
    "--patch-module",
    "--enable-native-access",
    "--source",
];

/// Options of `node` whose value is the next word.
const NODE_VALUES: [&str; 12] = [
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "-C",
    "--conditions",
    "--input-type",
    "--title",
    "--icu-data-dir",
    "--openssl-config",
    "--disable-warning",
];

/// The name of each process that has one.
#[derive(Debug, Default)]
pub(super) struct ProcessNames {
    // None where it was looked for in vain.
    names: HashMap<ProcessKey, Option<Name>>,
}

#[derive(Debug)]
struct Name {
    /// That of the first thread.
    leader: Box<[u8]>,
    shown: Arc<[u8]>,
}

impl ProcessNames {
    /// Takes the name of a process's first thread, as it is now.
    pub(super) fn take(&mut self, process_key: ProcessKey, leader: &[u8], liveness: &Liveness) {
        let leader = leader.split(|&byte| byte == 0).next().unwrap_or_default();
        let known = self.names.get(&process_key).and_then(Option::as_ref);
        if leader.is_empty() || known.is_some_and(|known| *known.leader == *leader) {
            return;
        }
        let is_latest = || liveness.is_latest(process_key);
        let shown = with_what_runs(process_key.tgid, leader, is_latest);
        let name = Name {
            leader: leader.into(),
            shown: shown.as_deref().map_or(leader, str::as_bytes).into(),
        };
        self.names.insert(process_key, Some(name));
    }

    /// Looks for the name of a process that nothing was reported of. Kernel threads have none: each is a process by itself,
    /// and what `/proc` calls it changes with what it does.
    pub(super) fn look(&mut self, process_key: ProcessKey, liveness: &Liveness) {
        if self.names.contains_key(&process_key) {
            return;
        }
        self.names.insert(process_key, None);
        let tgid = process_key.tgid;
        if tgid != 0
            && !liveness.has_gone(process_key)
            && command_line(tgid).is_some_and(|line| !line.is_empty())
            && let Ok(leader) = fs::read(format!("/proc/{tgid}/comm"))
            && liveness.is_there(process_key)
        {
            let leader = leader.strip_suffix(b"\n").unwrap_or(&leader);
            self.take(process_key, leader, liveness);
        }
    }

    /// The name of a process.
    pub(super) fn get(&self, process_key: ProcessKey) -> Option<&Arc<[u8]>> {
        let name = self.names.get(&process_key)?.as_ref();
        name.map(|name| &name.shown)
    }

    /// Forgets a process.
    pub(super) fn remove(&mut self, process_key: ProcessKey) {
        self.names.remove(&process_key);
    }
}

/// The name of a process whose first thread is called so, with what runs in it: `java shop.jar`. None where that is the
/// thread's name alone.
pub(crate) fn name_with_what_runs(tgid: u32, leader: &str) -> Option<String> {
    with_what_runs(tgid, leader.as_bytes(), || true)
}

/// The same, if the process `is_latest` of its ID.
fn with_what_runs(tgid: u32, leader: &[u8], is_latest: impl FnOnce() -> bool) -> Option<String> {
    let is_runtime = RUNTIME_THREADS.contains(&leader) && is_latest();
    is_runtime.then(|| runs(&command_line(tgid)?)).flatten()
}

/// The words of a process's command line, each ended by a NUL.
fn command_line(tgid: u32) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let file = File::open(format!("/proc/{tgid}/cmdline")).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut line).ok()?;
    Some(line)
}

/// The runtime and what it runs, by its command line: a class, a module, a jar or a script. None for other programs, and
/// where the line does not say.
fn runs(line: &[u8]) -> Option<String> {
    // A word without an end was cut.
    let words = line.split_inclusive(|&byte| byte == 0);
    let words = words.map_while(|word| word.strip_suffix(b"\0"));
    let mut words = words.map(|word| str::from_utf8(word).unwrap_or_default());
    let runtime = file_name(words.next()?);
    let what = match runtime {
        "java" => java(words)?,
        "node" | "nodejs" => node(words)?,
        _ => return None,
    };
    let shown = if what.len() > MAX_SHOWN {
        let end = what.floor_char_boundary(MAX_SHOWN - CUT.len());
        format!("{}{CUT}", &what[..end])
    } else {
        what.to_owned()
    };
    Some(format!("{runtime} {shown}"))
}

fn java<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    while let Some(word) = words.next() {
        match word {
            "-jar" => return words.next().map(file_name).filter(|jar| !jar.is_empty()),
            "-m" | "--module" => return words.next().filter(|module| !module.is_empty()),
            option if JAVA_VALUES.contains(&option) => drop(words.next()),
            option if option.starts_with(['-', '@']) => {}
            class => return Some(class).filter(|class| !class.is_empty()),
        }
    }
    None
}

fn node<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    while let Some(word) = words.next() {
        match word {
            "-e" | "--eval" | "-p" | "--print" | "-" => return None,
            option if NODE_VALUES.contains(&option) => drop(words.next()),
            option if option.starts_with('-') => {}
            script => return Some(file_name(script)).filter(|script| !script.is_empty()),
        }
    }
    None
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Option<String> {
        let line = line.replace(' ', "\0") + "\0";
        runs(line.as_bytes())
    }

    #[test]
    fn a_runtime_has_the_name_of_what_it_runs() {
        for (line, name) in [
            (
                "java -Xmx1g -cp a.jar:b.jar org.example.Main -p 80",
                "java org.example.Main",
            ),
            (
                "/usr/bin/java -Dx=y -jar /opt/app/server.jar --port 1",
                "java server.jar",
            ),
            (
                "java --module-path mods -m app/org.example.Main",
                "java app/org.example.Main",
            ),
            ("java @args --add-modules x Main.java", "java Main.java"),
            (
                "node --max-old-space-size=99 -r ./hook.js /srv/app/server.js -x",
                "node server.js",
            ),
            ("/usr/local/bin/node script.mjs", "node script.mjs"),
        ] {
            assert_eq!(run(line).as_deref(), Some(name), "{line}");
        }
        for line in [
            "node",
            "node -e while(1);",
            "java",
            "java -jar",
            "java -cp",
            "nginx -g x",
            "",
        ] {
            assert_eq!(run(line), None, "{line}");
        }
        let long = run(&format!("java {}", "é".repeat(300))).unwrap();
        assert!(long.len() <= MAX_SHOWN + 5 && long.ends_with(CUT), "{long}");
        assert_eq!(runs(b"java\0-cp\0a.jar\0org.exam"), None);
    }

    #[test]
    fn the_name_is_the_latest_of_the_first_thread_and_goes_with_the_process() {
        let process_key = ProcessKey::new(u32::MAX, 1);
        let (mut names, liveness) = (ProcessNames::default(), Liveness::default());
        names.look(process_key, &liveness);
        assert_eq!(names.get(process_key), None);
        for (leader, shown) in [
            (*b"sh\0junk\0\0\0\0\0\0\0\0\0", "sh"),
            ([0; 16], "sh"),
            (*b"sixteen bytes ok", "sixteen bytes ok"),
        ] {
            names.take(process_key, &leader, &liveness);
            assert_eq!(
                names.get(process_key).map(|name| &**name),
                Some(shown.as_bytes())
            );
        }
        names.remove(process_key);
        assert_eq!(names.get(process_key), None);
    }

    #[test]
    fn a_process_that_nothing_was_reported_of_is_looked_up() {
        let process_key = ProcessKey::new(std::process::id(), 0);
        let (mut names, mut liveness) = (ProcessNames::default(), Liveness::default());
        liveness.note(process_key);
        names.look(process_key, &liveness);
        let own = fs::read("/proc/self/comm").unwrap();
        let own = own.strip_suffix(b"\n").unwrap();
        assert_eq!(names.get(process_key).map(|name| &**name), Some(own));
        // A kernel thread.
        let kernel = ProcessKey::new(2, 0);
        liveness.note(kernel);
        names.look(kernel, &liveness);
        let is_kernel = fs::read("/proc/2/comm").is_ok_and(|comm| comm == b"kthreadd\n");
        assert!(!is_kernel || names.get(kernel).is_none());
    }
}
