//! Files that are kept open from the moment their mapping is seen.
//!
//! In: readings of mappings. Out: open files, for when their names have gone: a program that is deleted,
//! replaced, or unmounted with its container before the recording ends, and has ended itself, cannot be
//! reached in any other way.

use super::{Backing, BackingId, Identity, Opened, Owner, Processes, Reading};
use std::collections::HashMap;

/// The most files that are kept open, of the thousand descriptors that a process has. Of any more, those
/// that are still there at the end have names.
const MAX_HELD: usize = 512;

/// Open files by what they are behind.
#[derive(Debug, Default)]
pub(super) struct Held {
    files: HashMap<BackingId, Opened>,
    most: usize,
}

impl Held {
    /// Takes files.
    pub(super) fn taking() -> Self {
        Self {
            most: MAX_HELD,
            ..Self::default()
        }
    }

    /// Whether the file behind a backing is kept.
    pub(super) fn has(&self, backing: BackingId) -> bool {
        self.files.contains_key(&backing)
    }

    /// Keeps a file, if there is room.
    pub(super) fn keep(&mut self, backing: BackingId, opened: Opened) {
        if self.files.len() < self.most {
            self.files.insert(backing, opened);
        }
    }

    /// The file behind a backing, to be read from its beginning.
    pub(super) fn get(&self, backing: BackingId) -> Option<Opened> {
        let held = self.files.get(&backing)?;
        Some(Opened {
            file: held.file.again().ok()?,
            root: held.root.clone(),
        })
    }
}

impl Processes {
    /// Opens what a process maps, as long as it is there.
    pub(super) fn hold(&mut self, identity: Identity, reading: &Reading) {
        for mapping in &reading.mappings {
            let backing = mapping.backing;
            let held = &self.held;
            if held.files.len() >= held.most {
                return;
            }
            if held.files.contains_key(&backing)
                || !matches!(self.backings.get(backing), Backing::File(_))
            {
                continue;
            }
            let owner = Owner {
                identity,
                mapping: mapping.range.clone(),
                seen: reading.taken,
            };
            if let Some(opened) = self.open(backing, &[owner]) {
                self.held.files.insert(backing, opened);
            }
        }
    }
}
