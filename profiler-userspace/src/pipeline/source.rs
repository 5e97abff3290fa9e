//! Source of what was counted, from directories that the user names, and from debuginfod servers.
//!
//! In: directories and servers, and a profile whose functions have paths and lines. Out: the lines that were counted, with some around
//! them, and what there is to say of files that are not there.
//! Never: a file outside of the directories, whatever a path says; anything but regular files; more than a bound of any
//! file, or of all together.
//!
//! A path is where the file was when it was compiled. What of its end names a file of a directory is that file, the longest
//! such end first. Where two paths would be the same file, it is that of the tree that more paths are in.

use crate::debuginfod::{Client, Limits, Servers};
use crate::object::{BuildId, RegularFile};
use crate::output::{SourceFile, SourceRun, SourceText};
use crate::profile::fold::visible;
use crate::profile::{CallTree, Profile};
use crate::report::findings::Finding;
use crate::report::names::on_fetching;
use crate::text::number::counted;
use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Larger files are no source that somebody reads.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Text of all files together: pages are still opened at once.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Files that are looked for, those with the most weight first.
const MAX_FILES: usize = 4096;

/// Characters that are kept of a line.
const MAX_LINE_CHARS: usize = 240;

/// Lines above and below one that was counted.
const CONTEXT: u32 = 10;

/// Runs that are not farther apart are one.
const GAP: u32 = 12;

/// Columns between tab stops.
const TAB: usize = 8;

/// Source to show for a profile, and what there is to say of it.
#[derive(Debug, Default)]
pub(crate) struct SourceListing {
    pub(crate) text: Option<Arc<SourceText>>,
    pub(crate) finding: Option<Finding>,
}

/// Stands for debuginfod servers among the directories.
const SERVERS: &str = "debuginfod";

/// The directories that source is looked for in, open; and servers that are asked for the rest.
pub(crate) struct Directories {
    all: Vec<Directory>,
    servers: Vec<String>,
}

struct Directory {
    /// The name that the user gave.
    name: PathBuf,
    /// The place where it really is.
    place: PathBuf,
    open: OwnedFd,
}

/// The file that a path stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Target {
    directory: usize,
    /// The end of the path that is its path there.
    below: PathBuf,
}

/// Files that are not shown, by the reason.
#[derive(Default)]
struct LeftOut<'a> {
    /// Paths that no file stands for.
    missing: Vec<&'a str>,
    /// How many are larger than what is read, or have too few lines.
    unfit: u64,
    /// How many there is no room for.
    beyond: u64,
}

/// A path, the file that it may stand for, and why.
struct Claim<'a> {
    path: &'a str,
    target: Target,
    /// Whether the path is the file's own.
    is_inside: bool,
    /// The path without that end: the tree that it was compiled in.
    tree: String,
}

impl Directories {
    /// Opens the directories. The name `debuginfod` stands for servers.
    ///
    /// # Errors
    /// When one is none, or cannot be read; when there are no servers.
    pub(crate) fn open(names: &[PathBuf], servers: &Servers) -> Result<Self> {
        let (of_servers, names): (Vec<_>, Vec<_>) =
            (names.iter()).partition(|name| **name == Path::new(SERVERS));
        let servers = match (of_servers.is_empty(), servers) {
            (true, _) => Vec::new(),
            (false, Servers::IfSet) => Servers::Usual.addresses(),
            (false, servers) => servers.addresses(),
        };
        ensure!(
            of_servers.is_empty() || !servers.is_empty(),
            "--source debuginfod: no server is known; name one with --debuginfod=URL (a folder of that name is ./debuginfod)"
        );
        let open = |name: &PathBuf| -> Result<Directory> {
            let said = || format!("cannot read --source {}", name.display());
            let place = fs::canonicalize(name).with_context(said)?;
            let open = rustix::fs::open(
                &place,
                rustix::fs::OFlags::PATH
                    | rustix::fs::OFlags::DIRECTORY
                    | rustix::fs::OFlags::CLOEXEC,
                rustix::fs::Mode::empty(),
            );
            Ok(Directory {
                name: name.clone(),
                place,
                open: open.map_err(io::Error::from).with_context(said)?,
            })
        };
        let all = names.into_iter().map(open).collect::<Result<_>>()?;
        Ok(Self { all, servers })
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.servers.is_empty()
    }

    /// The source of what a profile counted.
    pub(crate) fn find(&self, profile: &Profile) -> SourceListing {
        if self.is_empty() {
            return SourceListing::default();
        }
        self.find_wanted(&CountedLines::of(profile), profile.origin.started)
    }

    /// The source of these lines of an object, for a recording that began then.
    pub(crate) fn find_lines<'l>(
        &self,
        lines: impl Iterator<Item = (&'l Arc<str>, u32)>,
        object: Option<&BuildId>,
        began: Option<SystemTime>,
    ) -> SourceListing {
        if self.is_empty() {
            return SourceListing::default();
        }
        let mut files: HashMap<Arc<str>, BTreeMap<u32, u64>> = HashMap::new();
        for (file, line) in lines {
            *files
                .entry(Arc::clone(file))
                .or_default()
                .entry(line)
                .or_default() += 1;
        }
        let objects = files
            .keys()
            .cloned()
            .zip(object.cloned().into_iter().cycle());
        let objects = objects.collect();
        self.find_wanted(&CountedLines::new(files, objects), began)
    }

    fn find_wanted(&self, wanted: &CountedLines, began: Option<SystemTime>) -> SourceListing {
        let claims: Vec<Claim<'_>> = (wanted.files.iter())
            .filter_map(|(path, _)| self.claim(path))
            .collect();
        let granted = granted(claims);
        let mut text = SourceText::default();
        let mut room = MAX_TEXT_BYTES;
        let mut out = LeftOut::default();
        let servers = Client::new(self.servers.clone(), Limits::from_environment(), |_| ());
        let fetch = |path: &str| {
            let object = wanted.objects.get(path)?;
            servers.as_ref()?.source(object, path, MAX_FILE_BYTES + 1)
        };
        for (path, lines) in &wanted.files {
            let file = match granted.get(&**path) {
                Some(target) => self.read(target, lines, began),
                None => match fetch(path) {
                    Some(bytes) => source_file(&bytes, lines, SERVERS, false),
                    None => {
                        out.missing.push(&**path);
                        continue;
                    }
                },
            };
            let Some(file) = file else {
                out.unfit += 1;
                continue;
            };
            let texts = file.runs.iter().flat_map(|run| &run.lines);
            match room.checked_sub(texts.map(|line| line.len() + 1).sum()) {
                Some(rest) => {
                    room = rest;
                    text.insert(visible(path).into_owned(), file);
                }
                None => out.beyond += 1,
            }
        }
        let finding = self.finding(wanted, &text, &out, servers.as_ref());
        SourceListing {
            text: Some(Arc::new(text)),
            finding: Some(finding),
        }
    }

    fn finding(
        &self,
        wanted: &CountedLines,
        text: &SourceText,
        out: &LeftOut<'_>,
        client: Option<&Client<'_>>,
    ) -> Finding {
        let names = self.all.iter().map(Directory::name);
        let servers = (!self.servers.is_empty()).then(|| SERVERS.to_owned());
        let names: Vec<String> = names.chain(servers).collect();
        let (found, all) = (text.files().count(), wanted.all);
        if all == 0 {
            let text = "no lines are known of what was sampled: programs need debug information \
                        (compile with -g), or --debuginfod";
            return Finding::new("source", text);
        }
        let files = counted(all as u64, "file");
        let mut said = format!(
            "{found} of {files} with samples found in {}",
            names.join(", ")
        );
        match &*out.missing {
            [] => {}
            [one] => said.push_str(&format!("; not there: {}", visible(one))),
            [one, more @ ..] => {
                let more = more.len();
                said.push_str(&format!("; not there: {} and {more} more", visible(one)));
            }
        }
        if out.unfit > 0 {
            said.push_str(&format!(
                "; {} there with fewer lines, or larger than {} MiB",
                counted(out.unfit, "file"),
                MAX_FILE_BYTES >> 20
            ));
        }
        let rest = all - wanted.files.len();
        if out.beyond > 0 || rest > 0 {
            said.push_str(&format!(
                "; {} of less weight left out, beyond {MAX_FILES} files or {} MiB of text: select with --focus",
                counted(out.beyond + rest as u64, "file"),
                MAX_TEXT_BYTES >> 20
            ));
        }
        let asking = client.map(|client| on_fetching(&client.fetched(), &client.failures()));
        for asking in asking.into_iter().flatten() {
            said.push_str(&format!("; {}", asking.text));
        }
        let newer = text.files().filter(|(_, file)| file.is_newer).count();
        if newer > 0 {
            let files = counted(newer as u64, "file");
            said.push_str(&format!(
                "; {files} written after the recording began: lines may be others"
            ));
        }
        Finding::new("source", said)
    }

    /// The file that a path may stand for.
    fn claim<'a>(&self, path: &'a str) -> Option<Claim<'a>> {
        let parts = parts(path);
        for (number, directory) in self.all.iter().enumerate() {
            let whole: PathBuf = Path::new("/").join(parts.iter().collect::<PathBuf>());
            let inside = whole.strip_prefix(&directory.place).ok();
            let inside = inside.filter(|below| path.starts_with('/') && directory.has(below));
            if let Some(below) = inside {
                return Some(Claim {
                    path,
                    target: Target {
                        directory: number,
                        below: below.to_owned(),
                    },
                    is_inside: true,
                    tree: directory.place.display().to_string(),
                });
            }
            let ends = (0..parts.len()).map(|cut| (cut, parts[cut..].iter().collect::<PathBuf>()));
            if let Some((cut, below)) = ends.into_iter().find(|(_, below)| directory.has(below)) {
                return Some(Claim {
                    path,
                    target: Target {
                        directory: number,
                        below,
                    },
                    is_inside: false,
                    tree: parts[..cut].join("/"),
                });
            }
        }
        None
    }

    /// The lines of a file, if it has all of them.
    fn read(
        &self,
        target: &Target,
        lines: &BTreeMap<u32, u64>,
        began: Option<SystemTime>,
    ) -> Option<SourceFile> {
        let directory = &self.all[target.directory];
        let opened = RegularFile::open_beneath(directory.open.as_fd(), &target.below).ok()?;
        let mut bytes = Vec::new();
        let mut most = (&opened.file).take(MAX_FILE_BYTES + 1);
        most.read_to_end(&mut bytes).ok()?;
        let written = opened
            .file
            .metadata()
            .and_then(|status| status.modified())
            .ok();
        // Clocks of file systems are coarse.
        let began = began.map(|began| began + Duration::from_millis(10));
        let is_newer = written
            .zip(began)
            .is_some_and(|(written, began)| written > began);
        let found_at = directory.name.join(&target.below).display().to_string();
        source_file(&bytes, lines, &found_at, is_newer)
    }
}

/// The lines of a file, if it has all of them and is not too large.
fn source_file(
    bytes: &[u8],
    lines: &BTreeMap<u32, u64>,
    found_at: &str,
    is_newer: bool,
) -> Option<SourceFile> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return None;
    }
    let text = String::from_utf8_lossy(bytes);
    let all: Vec<&str> = text.lines().collect();
    let (last, _) = lines.last_key_value()?;
    // Another file of the same name.
    (all.len() >= *last as usize).then(|| SourceFile {
        found_at: visible(found_at).into_owned(),
        is_newer,
        runs: runs(lines.keys().copied(), &all),
    })
}

impl Directory {
    fn name(&self) -> String {
        visible(&self.name.display().to_string()).into_owned()
    }

    fn has(&self, below: &Path) -> bool {
        RegularFile::open_beneath(self.open.as_fd(), below).is_ok()
    }
}

/// The lines that a profile counted, by file.
struct CountedLines {
    /// Those with the most weight first; for each the lines, and what they weigh.
    files: Vec<(Arc<str>, BTreeMap<u32, u64>)>,
    /// How many there are, also those that are not looked for.
    all: usize,
    /// An object that each was compiled into, where that is known.
    objects: HashMap<Arc<str>, BuildId>,
}

impl CountedLines {
    fn of(profile: &Profile) -> Self {
        let tree = CallTree::by_line(profile);
        let mut weights = vec![0_u64; tree.frame_count()];
        for sample in tree.samples() {
            for frame in tree.callers(sample.node) {
                let weight = &mut weights[frame.index()];
                *weight = weight.saturating_add(sample.weight);
            }
        }
        let mut files: HashMap<Arc<str>, BTreeMap<u32, u64>> = HashMap::new();
        let mut objects = HashMap::new();
        for ((_, code), weight) in tree.frames().zip(weights) {
            let Some(code) = code.filter(|code| code.line > 0) else {
                continue;
            };
            let file = &profile.function_at(code.function).file;
            if file.is_empty() {
                continue;
            }
            let mapping = code.mapping.map(|at| &profile.mappings()[at.0 as usize]);
            if let Some(object) = mapping.and_then(|mapping| BuildId::new(&mapping.build_id)) {
                objects.entry(Arc::clone(file)).or_insert(object);
            }
            let lines = files.entry(Arc::clone(file)).or_default();
            let sum = lines.entry(code.line).or_default();
            *sum = sum.saturating_add(weight);
        }
        Self::new(files, objects)
    }

    fn new(
        files: HashMap<Arc<str>, BTreeMap<u32, u64>>,
        objects: HashMap<Arc<str>, BuildId>,
    ) -> Self {
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort_by_cached_key(|(path, lines)| {
            let weight = lines
                .values()
                .fold(0, |sum: u64, each| sum.saturating_add(*each));
            (std::cmp::Reverse(weight), Arc::clone(path))
        });
        let all = files.len();
        files.truncate(MAX_FILES);
        Self {
            files,
            all,
            objects,
        }
    }
}

/// The names that a path is made of; what leads up takes away the one before.
fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

/// For each path its file, where no other path has a better claim.
fn granted(claims: Vec<Claim<'_>>) -> HashMap<&str, Target> {
    let mut votes: HashMap<String, usize> = HashMap::new();
    for claim in &claims {
        *votes.entry(claim.tree.clone()).or_default() += 1;
    }
    let mut by_target: BTreeMap<Target, Vec<Claim<'_>>> = BTreeMap::new();
    for claim in claims {
        by_target
            .entry(claim.target.clone())
            .or_default()
            .push(claim);
    }
    let mut granted = HashMap::new();
    for (target, claims) in by_target {
        let rank = |claim: &Claim<'_>| (claim.is_inside, votes[&claim.tree]);
        let best = claims.iter().map(rank).max();
        let mut best = claims.iter().filter(|claim| Some(rank(claim)) == best);
        // Of two that are as good, nobody knows which it is.
        if let (Some(claim), None) = (best.next(), best.next()) {
            granted.insert(claim.path, target);
        }
    }
    granted
}

/// These lines, which ascend, with some around them.
fn runs(wanted: impl Iterator<Item = u32>, all: &[&str]) -> Vec<SourceRun> {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for line in wanted {
        let (first, last) = (
            line.saturating_sub(CONTEXT).max(1),
            line.saturating_add(CONTEXT).min(all.len() as u32),
        );
        match spans.last_mut() {
            Some(span) if first <= span.1.saturating_add(GAP) => span.1 = last,
            _ => spans.push((first, last)),
        }
    }
    let run = |(first, last): (u32, u32)| SourceRun {
        first,
        lines: all[first as usize - 1..last as usize]
            .iter()
            .map(|line| shown(line))
            .collect(),
    };
    spans.into_iter().map(run).collect()
}

/// A line as it is shown: tabs are spaces, and what cannot be printed is written out.
fn shown(line: &str) -> String {
    let mut text = String::new();
    for c in line.chars().take(MAX_LINE_CHARS) {
        match c {
            '\t' => {
                let columns = text.chars().count();
                text.extend(std::iter::repeat_n(' ', TAB - columns % TAB));
            }
            c => text.push(c),
        }
    }
    if line.chars().nth(MAX_LINE_CHARS).is_some() {
        text.push('…');
    }
    visible(text.trim_end()).into_owned()
}

#[cfg(test)]
mod tests;
