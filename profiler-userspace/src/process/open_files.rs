//! Files that are kept open from the moment their mapping is seen.
//!
//! In: readings of mappings. Out: open files, for when their names have gone: a program that is deleted,
//! replaced, or unmounted with its container before the recording ends, and has ended itself, cannot be
//! reached in any other way.

use super::backing::Backings;
use super::liveness::Liveness;
use super::mappings::Reading;
use super::opening::{self, Unreachable};
use super::shortage::most_files;
use super::{Backing, BackingId, Opened, Owner, ProcessKey};
use foldhash::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;

/// Fewer files than this stay open: programs run again, and opening takes time.
const FEW: usize = 256;

/// Open files by what they are behind.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    files: HashMap<BackingId, Opened>,
    most: usize,
    /// So many are no reason to close any.
    few: usize,
    /// Files that were not kept, for lack of room.
    turned_away: HashSet<BackingId>,
}

impl OpenFiles {
    /// Takes files.
    pub(super) fn taking() -> Self {
        Self {
            most: most_files(),
            few: FEW,
            ..Self::default()
        }
    }

    /// Whether the file behind a backing was opened, even if there was no room to keep it.
    pub(super) fn was_opened(&self, backing: BackingId) -> bool {
        self.files.contains_key(&backing) || self.turned_away.contains(&backing)
    }

    /// Keeps a file, if there is room.
    pub(super) fn keep(&mut self, backing: BackingId, opened: Opened) {
        if self.files.len() < self.most {
            self.files.insert(backing, opened);
        } else if self.most > 0 {
            self.turned_away.insert(backing);
        }
    }

    /// How many files there was no room for.
    pub(super) fn turned_away(&self) -> usize {
        self.turned_away.len()
    }

    /// The file behind a backing, at its beginning.
    pub(super) fn get(&self, backing: BackingId) -> Option<Opened> {
        let held = self.files.get(&backing)?;
        Some(Opened {
            file: held.file.again().ok()?,
            root: held.root.clone(),
        })
    }

    /// Opens the file behind `backing`, if it can be reached: because it was kept open, under its path, under
    /// its path in the root directory of a running owner, or through that owner's mapping.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) fn open(
        &self,
        backing: BackingId,
        owners: &[Owner],
        backings: &Backings,
        liveness: &Liveness,
    ) -> Result<Opened, Unreachable> {
        let file = backings.get(backing).file().ok_or(Unreachable::Gone)?;
        let opened = match self.get(backing) {
            Some(kept) => kept,
            None => opening::reach(file, owners, backings.code(backing), liveness)?,
        };
        // A file made after all of them were seen has at most inherited the inode.
        let existed = |owner: &Owner| opened.file.existed(owner.seen);
        match owners.iter().any(existed) {
            true => Ok(opened),
            false => Err(Unreachable::Gone),
        }
    }

    /// Opens and keeps what a process has mapped, each file once.
    pub(super) fn keep_all(
        &mut self,
        process_key: ProcessKey,
        reading: &Reading,
        backings: &Backings,
        liveness: &Liveness,
    ) {
        for mapping in &reading.mappings {
            let backing = mapping.backing;
            if self.most == 0 {
                return;
            }
            if self.was_opened(backing) || backings.get(backing).file().is_none() {
                continue;
            }
            let owner = Owner::new(process_key, mapping.range.clone(), reading.taken);
            if let Ok(opened) = self.open(backing, &[owner], backings, liveness) {
                self.keep(backing, opened);
            }
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Closes the files that no process that is known maps any more and that nobody will ask for: those that are deleted, if all
    /// of their code has its names by now; and where there are many, those that can be opened again.
    pub(super) fn close_unused(
        &mut self,
        mapped: &HashSet<BackingId>,
        backings: &Backings,
        are_named: bool,
    ) {
        let are_many = self.files.len() > self.few;
        self.files.retain(|backing, opened| {
            let is_of_use = match backings.get(*backing) {
                _ if is_deleted(opened) => !are_named,
                Backing::File(file) => !(are_many && opening::is_in_place(file, opened)),
                _ => true,
            };
            mapped.contains(backing) || is_of_use
        });
    }
}

/// Whether a file has no name any more.
fn is_deleted(opened: &Opened) -> bool {
    let status = opened.file.file.metadata();
    status.is_ok_and(|status| status.nlink() == 0)
}

#[cfg(test)]
mod tests {
    use super::super::{MappingEvent, Processes, Todo, registry::tests::sleeping};
    use super::*;
    use crate::object::RegularFile;
    use profiler_common::abi::{CodeKey, MappingKey};

    #[test]
    fn where_there_are_many_files_that_can_be_opened_again_are_closed_once_nothing_maps_them() {
        let (mut child, process_key) = sleeping();
        let mut processes = Processes::holding_files();
        processes.see(process_key);
        processes.open_files.few = 0;
        let held = processes.open_files.files.len();
        assert!(held > 0);
        processes.close_unused();
        assert_eq!(processes.open_files.files.len(), held, "it still runs");
        child.kill().unwrap();
        child.wait().unwrap();
        processes.remove(process_key);
        processes.open_files.few = held;
        processes.close_unused();
        assert_eq!(processes.open_files.files.len(), held, "they are few");
        processes.open_files.few = 0;
        processes.close_unused();
        assert_eq!(processes.open_files.files.len(), 0);
    }

    #[test]
    fn files_beyond_the_descriptor_limit_are_counted_once() {
        let mut processes = Processes::holding_files();
        processes.open_files.most = 1;
        let file = tempfile::NamedTempFile::new().unwrap();
        for inode in [1, 2, 3, 3] {
            let event = MappingEvent {
                process_key: ProcessKey::new(u32::MAX, 1),
                range: inode << 12..(inode + 1) << 12,
                offset: 0,
                code: CodeKey {
                    device: 9,
                    inode,
                    modified: 1,
                },
                mapping_key: MappingKey(inode),
                leader: [0; 16],
                names: vec![b"x".as_slice().into()],
            };
            if let Todo::Open(unopened) = processes.handle(&event) {
                let opened = Opened::ours(RegularFile::open(file.path()).unwrap());
                processes.adopt(&unopened, opened);
            }
        }
        assert_eq!(processes.shortage().files, 2);
    }
}
