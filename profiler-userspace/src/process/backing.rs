//! Backings of mappings: files, the vDSO, memory. Each is stored once, however many processes map
//! it.
//!
//! In: entries of `/proc/PID/maps`. Out: [`Backing`]s by index. Never opens anything.

use super::proc_maps::{self, Entry};
use crate::object::FileNumber;
use foldhash::HashMap;
use profiler_common::abi::CodeKey;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Names of memory that is executable in many processes and never holds compiled code.
const KERNELS_OWN: [&[u8]; 3] = [b"vsyscall", b"uprobes", b"vvar"];

/// A file that some process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// Its path when the process was seen; for a deleted file, its former path.
    pub path: PathBuf,
    /// Its identity: two files may have had one path.
    pub number: FileNumber,
    /// Whether it is no longer at its path: deleted, replaced, or a memfd.
    pub deleted: bool,
}

impl MappedFile {
    /// The name in frames of the file that was at `path`; see [`Self::module`].
    pub fn module_at(path: &Path) -> &OsStr {
        match path.as_os_str().as_bytes().strip_prefix(b"/") {
            Some(memory) if memory.starts_with(b"memfd:") => OsStr::from_bytes(memory),
            _ => path.file_name().unwrap_or(path.as_os_str()),
        }
    }

    /// The file's name in frames, without directories; `memfd:NAME` for a memory file.
    pub fn module(&self) -> &OsStr {
        Self::module_at(&self.path)
    }

    /// Whether it is a memory file.
    pub fn is_memory(&self) -> bool {
        self.path.as_os_str().as_bytes().starts_with(b"/memfd:")
    }

    /// Whether it is a jitdump: runtimes map its beginning so that it can be found.
    pub(super) fn is_jitdump(&self) -> bool {
        let name = self.module().as_bytes();
        name.strip_prefix(b"jit-")
            .and_then(|name| name.strip_suffix(b".dump"))
            .is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
    }
}

/// Backing of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file, or a memory file.
    File(MappedFile),
    /// The vDSO.
    Vdso,
    /// Memory, with a label such as `anon`, `heap`, or a name the process gave it.
    Memory {
        /// Its name in frames.
        label: Box<[u8]>,
    },
}

impl Backing {
    /// Where it was when it was mapped; empty where that was no file.
    pub fn path(&self) -> PathBuf {
        self.file()
            .map_or_else(PathBuf::new, |file| file.path.clone())
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&MappedFile> {
        match self {
            Self::File(file) => Some(file),
            Self::Vdso | Self::Memory { .. } => None,
        }
    }

    fn new(entry: &Entry<'_>) -> Self {
        let name = proc_maps::unescape(entry.name);
        if let Some(label) = name
            .strip_prefix(b"[")
            .and_then(|name| name.strip_suffix(b"]"))
        {
            return match label {
                b"vdso" => Self::Vdso,
                _ => Self::memory(label),
            };
        }
        let (path, deleted) = match name.strip_suffix(b" (deleted)") {
            Some(path) => (path, true),
            None => (&*name, false),
        };
        // Only the kernel treats shared anonymous memory as a file.
        let nameless = path.is_empty()
            || path == b"//anon"
            || deleted && matches!(path, b"/dev/zero" | b"/anon_hugepage");
        if nameless {
            Self::memory(b"anon")
        } else if path.starts_with(b"/") && !entry.number.is_none() {
            Self::File(MappedFile {
                path: PathBuf::from(OsString::from_vec(path.to_vec())),
                number: entry.number,
                deleted,
            })
        } else {
            Self::memory(path)
        }
    }

    fn memory(label: &[u8]) -> Self {
        Self::Memory {
            label: label.into(),
        }
    }

    /// Whether it may hold code that the process itself compiled.
    pub fn may_be_made(&self) -> bool {
        match self {
            Self::File(file) => file.is_memory(),
            Self::Vdso => false,
            Self::Memory { label } => !KERNELS_OWN.contains(&&**label),
        }
    }
}

/// The index of a backing in its [`Backings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackingId(u32);

/// All backings, each once.
#[derive(Debug, Default)]
pub(super) struct Backings {
    all: Vec<Backing>,
    // Nested, so that a name need not be copied for a lookup.
    ids: HashMap<FileNumber, HashMap<Box<[u8]>, BackingId>>,
    // Those of mapping events. Their key changes when a file is written anew.
    reported: HashMap<CodeKey, BackingId>,
    codes: HashMap<BackingId, CodeKey>,
}

impl Backings {
    /// The index of what the entry maps.
    pub(super) fn intern(&mut self, entry: &Entry<'_>) -> BackingId {
        let names = self.ids.entry(entry.number).or_default();
        if let Some(&id) = names.get(entry.name) {
            return id;
        }
        let id = push(&mut self.all, Backing::new(entry));
        names.insert(entry.name.into(), id);
        id
    }

    /// The index of the vDSO.
    pub(super) fn vdso(&mut self) -> BackingId {
        self.nameless(b"[vdso]")
    }

    /// The index of memory of which nothing more is known.
    pub(super) fn anonymous(&mut self) -> BackingId {
        self.nameless(b"")
    }

    fn nameless(&mut self, name: &[u8]) -> BackingId {
        self.intern(&Entry {
            range: 0..1,
            offset: 0,
            number: FileNumber::default(),
            executable: true,
            name,
        })
    }

    /// Adds a file of a mapping event, and returns its number.
    pub(super) fn add_reported(&mut self, code: CodeKey, file: MappedFile) -> BackingId {
        let id = push(&mut self.all, Backing::File(file));
        self.bind(code, id);
        self.codes.insert(id, code);
        id
    }

    /// Notes what the kernel half knows a backing by.
    pub(super) fn bind(&mut self, code: CodeKey, id: BackingId) {
        self.reported.insert(code, id);
    }

    /// The backing that a mapping event had under this key.
    pub(super) fn reported(&self, code: CodeKey) -> Option<(BackingId, &Backing)> {
        let id = *self.reported.get(&code)?;
        Some((id, self.get(id)))
    }

    /// The key by which the kernel half knows a file; none if no mapping event had it.
    pub(super) fn code(&self, id: BackingId) -> Option<CodeKey> {
        self.codes.get(&id).copied()
    }

    /// The backing at an index.
    pub(super) fn get(&self, id: BackingId) -> &Backing {
        &self.all[id.0 as usize]
    }
}

fn push(all: &mut Vec<Backing>, backing: Backing) -> BackingId {
    let id = u32::try_from(all.len()).expect("mappings are fewer than 2^32 in any recording");
    all.push(backing);
    BackingId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backing(inode: u64, name: &[u8]) -> Backing {
        Backing::new(&Entry {
            range: 0..1,
            offset: 0,
            number: FileNumber {
                major: 8,
                minor: 1,
                inode,
            },
            executable: true,
            name,
        })
    }

    fn file(name: &[u8]) -> MappedFile {
        backing(7, name).file().unwrap().clone()
    }

    #[test]
    fn file_mappings_are_distinguished_from_memory() {
        let memory = |label: &[u8]| Backing::Memory {
            label: label.into(),
        };
        assert_eq!(backing(0, b""), memory(b"anon"));
        assert_eq!(backing(5, b"//anon"), memory(b"anon"));
        assert_eq!(backing(5, b"/dev/zero (deleted)"), memory(b"anon"));
        assert_eq!(backing(0, b"[heap]"), memory(b"heap"));
        assert_eq!(
            backing(0, b"[anon:JIT \xff code]"),
            memory(b"anon:JIT \xff code")
        );
        assert_eq!(backing(0, b"[vdso]"), Backing::Vdso);
        assert_eq!(backing(9, b"anon_inode:[x]"), memory(b"anon_inode:[x]"));
        assert_eq!(file(b"/usr/bin/cat").module(), "cat");
    }

    #[test]
    fn a_file_may_have_inode_zero_but_not_device_zero() {
        let segment = backing(0, b"/SYSV00000000 (deleted)");
        assert!(matches!(segment, Backing::File(MappedFile { deleted, .. }) if deleted));
        let nowhere = Backing::new(&Entry {
            range: 0..1,
            executable: true,
            offset: 0,
            number: FileNumber::default(),
            name: b"/a",
        });
        assert!(matches!(nowhere, Backing::Memory { .. }));
    }

    #[test]
    fn a_deleted_file_keeps_the_name_that_it_had() {
        let deleted = file(b"/opt/a b/lib\\012x.so (deleted)");
        assert!(deleted.deleted);
        assert_eq!(deleted.path, PathBuf::from("/opt/a b/lib\nx.so"));
        assert_eq!(deleted.module(), "lib\nx.so");
        assert_eq!(file(b"/memfd:a/b (deleted)").module(), "memfd:a/b");
    }

    #[test]
    fn equal_backings_have_one_number() {
        let mut backings = Backings::default();
        let mut intern = |inode, name| {
            backings.intern(&Entry {
                range: 0..1,
                offset: 0,
                number: FileNumber {
                    inode,
                    ..FileNumber::default()
                },
                executable: true,
                name,
            })
        };
        let cat = intern(1, b"/bin/cat");
        assert_ne!(intern(2, b"/bin/cat"), cat);
        assert_ne!(intern(1, b"/bin/tac"), cat);
        assert_eq!(intern(1, b"/bin/cat"), cat);
    }

    #[test]
    fn jitdumps_are_known_by_their_names() {
        assert!(file(b"/tmp/jit-12.dump").is_jitdump());
        for path in [
            "/tmp/jit-.dump",
            "/tmp/jit-x.dump",
            "/tmp/jit-1.dumps",
            "/j",
        ] {
            assert!(!file(path.as_bytes()).is_jitdump(), "{path}");
        }
    }
}
