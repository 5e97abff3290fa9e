//! The file that a command runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file that a command runs, if it can be found: by its path, or in the directories of `PATH`.
pub(crate) fn program(command: &[OsString]) -> Option<PathBuf> {
    let name = Path::new(command.first()?);
    if name.components().count() > 1 {
        return Some(name.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}
