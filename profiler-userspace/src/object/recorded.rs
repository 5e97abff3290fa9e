//! Objects as a raw recording knows them, and how they are found again later or elsewhere.
//!
//! In: a mapped object, or a raw recording's description of one. Out: the open file that is this object,
//! or none. The path alone proves nothing: the build ID must match or, if there is none, size and
//! modification time.

use super::{BuildId, Elf, RegularFile, Segments};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Proof that a file is the recorded object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proof {
    /// Its build ID; if there is one, nothing else is compared.
    pub build_id: Option<BuildId>,
    /// The file's size in bytes.
    pub size: u64,
    /// Its modification time, in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// An object that was mapped while recording.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordedObject {
    /// Its path, as its process saw it.
    pub path: PathBuf,
    /// Its identity; none if it was unreadable when the recording ended.
    pub proof: Option<Proof>,
    /// Its loaded segments.
    pub segments: Segments,
}

impl RecordedObject {
    /// An open object that was mapped from `path`.
    pub fn of(path: PathBuf, file: &RegularFile, elf: &Elf) -> Self {
        let status = file.file.metadata().ok();
        Self {
            path,
            proof: status.map(|status| Proof {
                build_id: elf.build_id.clone(),
                size: status.size(),
                modified_ns: modified_ns(&status),
            }),
            segments: elf.segments.clone(),
        }
    }

    /// An object that could not be read.
    pub fn gone(path: PathBuf) -> Self {
        Self {
            path,
            proof: None,
            segments: Segments::default(),
        }
    }

    /// Opens the object at its path, if it is still the same.
    pub fn find(&self) -> Option<RegularFile> {
        let proof = self.proof.as_ref()?;
        let found = RegularFile::open_within(Path::new("/"), &self.path).ok()?;
        let build_id = Elf::read(&found.file)?.build_id;
        let status = found.file.metadata().ok()?;
        let same = build_id == proof.build_id
            && (build_id.is_some()
                || (status.size(), modified_ns(&status)) == (proof.size, proof.modified_ns));
        same.then_some(found)
    }

    /// The part of the object's tables that was recorded.
    pub fn outline(&self) -> Option<Elf> {
        let build_id = self.proof.as_ref()?.build_id.clone();
        Some(Elf::outline(self.segments.clone(), build_id))
    }
}

fn modified_ns(status: &std::fs::Metadata) -> i64 {
    status
        .mtime()
        .saturating_mul(1_000_000_000)
        .saturating_add(status.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn recorded(path: &Path) -> RecordedObject {
        let file = RegularFile::open(path).unwrap();
        let elf = Elf::read(&file.file).unwrap();
        RecordedObject::of(path.to_owned(), &file, &elf)
    }

    #[test]
    fn a_recorded_object_is_found_only_if_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nap");
        fs::copy("/bin/sleep", &path).unwrap();
        let mut object = recorded(&path);
        assert!(object.find().is_some());
        assert_eq!(object.outline().unwrap().segments, object.segments);
        // The same build in another file is accepted, by its build ID.
        fs::remove_file(&path).unwrap();
        assert!(object.find().is_none());
        fs::copy("/bin/sleep", &path).unwrap();
        let says = object.proof.as_ref().unwrap().build_id.is_some();
        assert_eq!(object.find().is_some(), says);
        // Another build is not.
        fs::copy("/bin/cat", &path).unwrap();
        assert!(object.find().is_none());
        // Without a build ID, size and modification time identify it.
        object = recorded(&path);
        object.proof.as_mut().unwrap().build_id = None;
        assert_ne!(
            object.find().is_some(),
            says,
            "what has an ID is not without"
        );
        fs::write(&path, "no object").unwrap();
        assert!(object.find().is_none());
        assert!(RecordedObject::gone(path).find().is_none());
    }
}
