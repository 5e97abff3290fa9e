//! Files that a process has mapped as code.
//!
//! In: a process. Out: those files, open, each once, as the process itself has them.

use crate::process::{Opened, Owner, ProcessKey, Processes, Unreachable};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A mapped file.
pub(crate) struct CodeFile {
    /// Its path as the process sees it.
    pub(crate) path: PathBuf,
    /// Its name without directories.
    pub(crate) name: String,
    pub(crate) opened: Result<Opened, Unreachable>,
}

/// Files of a process whose names are meant; none if its mappings may not be read.
pub(crate) fn code_files(id: u32, is_meant: &dyn Fn(&Path) -> bool) -> Option<Vec<CodeFile>> {
    let mut processes = Processes::new();
    let process_key = ProcessKey::new(id, 0);
    processes.see(process_key);
    if processes.refused() > 0 {
        return None;
    }
    let mut known = BTreeSet::new();
    let code = processes.code_files(process_key);
    let files = code.filter_map(|(file, backing, mapping)| {
        if !is_meant(Path::new(file.module())) || !known.insert(file.number) {
            return None;
        }
        let owner = Owner::new(process_key, mapping, SystemTime::now());
        Some(CodeFile {
            path: file.path.clone(),
            name: file.module().to_string_lossy().into_owned(),
            opened: processes.open(backing, &[owner]),
        })
    });
    Some(files.collect())
}
