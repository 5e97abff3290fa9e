//! The cache of fetched files, shared by all debuginfod clients.
//!
//! In: build IDs and files. Out: files, or the knowledge that no server has one. As root, a directory that
//! belongs to another user is read and never written: its owner could redirect us anywhere.

use crate::object::{BuildId, RegularFile};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// How long a file counts as missing, unless the cache says otherwise.
const MISSING_FOR: Duration = Duration::from_secs(600);

/// The name of the file in a build's directory.
const NAME: &str = "debuginfo";

/// State of a build in the cache.
#[derive(Debug)]
pub(super) enum Cached {
    File(RegularFile),
    KnownMissing,
    Nothing,
}

/// The cache directory; none if there is no place for one.
#[derive(Debug)]
pub(super) struct Cache(Option<PathBuf>);

impl Cache {
    /// The cache directory that every debuginfod client uses.
    pub(super) fn usual() -> Self {
        Self(usual(|name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        }))
    }

    #[cfg(test)]
    pub(super) fn at(directory: &Path) -> Self {
        Self(Some(directory.to_owned()))
    }

    fn of(&self, id: &BuildId) -> Option<PathBuf> {
        Some(self.0.as_ref()?.join(id.to_string()))
    }

    /// The cached file of a build, or what is known instead.
    pub(super) fn get(&self, id: &BuildId) -> Cached {
        let Some(path) = self.of(id).map(|directory| directory.join(NAME)) else {
            return Cached::Nothing;
        };
        let Ok(status) = fs::symlink_metadata(&path) else {
            return Cached::Nothing;
        };
        if status.len() > 0 {
            return RegularFile::open(&path).map_or(Cached::Nothing, Cached::File);
        }
        let age = status
            .modified()
            .ok()
            .and_then(|then| SystemTime::now().duration_since(then).ok());
        match age.is_some_and(|age| age < self.missing_for()) {
            true => Cached::KnownMissing,
            false => Cached::Nothing,
        }
    }

    fn missing_for(&self) -> Duration {
        let set = self
            .0
            .as_ref()
            .and_then(|directory| fs::read_to_string(directory.join("cache_miss_s")).ok())
            .and_then(|text| text.trim().parse().ok());
        set.map_or(MISSING_FOR, Duration::from_secs)
    }

    /// The directory of a build, created if necessary; none if it may not be written.
    fn directory(&self, id: &BuildId) -> Option<PathBuf> {
        let (root, directory) = (self.0.as_ref()?, self.of(id)?);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        if !root.exists() {
            builder.create(root).ok()?;
        }
        if !is_ours(root) {
            return None;
        }
        builder.create(&directory).ok()?;
        is_ours(&directory).then_some(directory)
    }

    /// A file that is about to be written.
    pub(super) fn begin(&self, id: &BuildId) -> io::Result<Coming> {
        if let Some(directory) = self.directory(id)
            && let Ok(file) = NamedTempFile::new_in(&directory)
        {
            return Ok(Coming::Kept(file, directory.join(NAME)));
        }
        Ok(Coming::Passing(tempfile::tempfile()?))
    }

    /// Records that no server has the file.
    pub(super) fn put_missing(&self, id: &BuildId) {
        let made = self.directory(id).map(|directory| {
            let file = NamedTempFile::new_in(&directory)?;
            file.as_file()
                .set_permissions(fs::Permissions::from_mode(0o000))?;
            file.persist(directory.join(NAME))
                .map_err(|error| error.error)
        });
        // If that fails, the servers are asked again next time.
        let _remembered = made.is_some_and(|made: io::Result<File>| made.is_ok());
    }
}

/// A file that is being written.
pub(super) enum Coming {
    /// One that will be in the cache.
    Kept(NamedTempFile, PathBuf),
    /// One that disappears when it is closed.
    Passing(File),
}

impl Coming {
    pub(super) fn file(&mut self) -> &mut File {
        match self {
            Self::Kept(file, _) => file.as_file_mut(),
            Self::Passing(file) => file,
        }
    }

    /// The complete file.
    pub(super) fn keep(self) -> io::Result<RegularFile> {
        match self {
            Self::Kept(file, path) => {
                file.as_file()
                    .set_permissions(fs::Permissions::from_mode(0o400))?;
                file.persist(&path)?;
                RegularFile::open(&path)
            }
            Self::Passing(file) => RegularFile::opened(&file),
        }
    }
}

/// Whether `directory` is a directory, not a link, and belongs to the current user.
fn is_ours(directory: &Path) -> bool {
    fs::symlink_metadata(directory)
        .is_ok_and(|status| status.is_dir() && status.uid() == rustix::process::geteuid().as_raw())
}

fn usual(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(set) = variable("DEBUGINFOD_CACHE_PATH") {
        return Some(set);
    }
    let home = variable("HOME");
    // elfutils' old location, used as long as it exists.
    let old = home
        .as_ref()
        .map(|home| home.join(".debuginfod_client_cache"));
    if let Some(old) = old.filter(|old| old.is_dir()) {
        return Some(old);
    }
    let caches = variable("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")))?;
    Some(caches.join("debuginfod_client"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_other_debuginfod_clients_have_it() {
        let home = tempfile::tempdir().unwrap();
        let with = |set: &[(&str, &Path)]| {
            usual(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, path)| path.to_path_buf())
            })
        };
        let (home_set, own) = (("HOME", home.path()), Path::new("/own"));
        let xdg = ("XDG_CACHE_HOME", Path::new("/xdg"));
        assert_eq!(with(&[]), None);
        assert_eq!(
            with(&[home_set]),
            Some(home.path().join(".cache/debuginfod_client"))
        );
        assert_eq!(
            with(&[home_set, xdg]),
            Some("/xdg/debuginfod_client".into())
        );
        let set = ("DEBUGINFOD_CACHE_PATH", own);
        assert_eq!(with(&[home_set, xdg, set]), Some(own.into()));
        let old = home.path().join(".debuginfod_client_cache");
        fs::create_dir(&old).unwrap();
        assert_eq!(with(&[home_set, xdg]), Some(old));
    }

    #[test]
    fn another_users_cache_is_not_written() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let theirs = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(theirs.path(), Some(65534), None).unwrap();
        let cache = Cache::at(theirs.path());
        let id = BuildId::new(&[1; 20]).unwrap();
        cache.put_missing(&id);
        let mut coming = cache.begin(&id).unwrap();
        io::Write::write_all(coming.file(), b"x").unwrap();
        assert!(coming.keep().is_ok());
        assert_eq!(fs::read_dir(theirs.path()).unwrap().count(), 0);
        // Neither is one of ours through a link of theirs.
        let ours = tempfile::tempdir().unwrap();
        let link = theirs.path().join("link");
        std::os::unix::fs::symlink(ours.path(), &link).unwrap();
        Cache::at(&link).put_missing(&id);
        assert_eq!(fs::read_dir(ours.path()).unwrap().count(), 0);
    }
}
