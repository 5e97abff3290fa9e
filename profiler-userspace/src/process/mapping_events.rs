//! Mapping events: what lay at sampled addresses, as the kernel half reported at the time of the sample.
//!
//! In: mappings of processes, which may be gone, and the files behind them by what the kernel knows them by.
//! Out: the place of an address, and where to look for a file that has not been opened yet. What was reported
//! is as true as the sample: it goes before anything that is read of a process later.

use super::backing::Backings;
use super::mapping::Mapping;
use super::mappings::Process;
use super::opening;
use super::{Backing, BackingId, MappedFile, Opened, ProcessKey};
use crate::object::{FileNumber, RegularFile};
use profiler_common::abi::{COMM_BYTES, CodeKey, MappingKey};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// A mapping that the kernel half reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingEvent {
    /// The process.
    pub process_key: ProcessKey,
    /// Its addresses.
    pub range: Range<u64>,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// The key by which the kernel half knows the file.
    pub code: CodeKey,
    /// Its key in the checks of stacks.
    pub mapping_key: MappingKey,
    /// Name of the process's first thread, NUL-padded.
    pub leader: [u8; COMM_BYTES],
    /// The file's names from the last to the first; empty if they were reported before.
    pub names: Vec<Box<[u8]>>,
}

/// A file that was reported and is not open yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unopened {
    /// The file.
    pub backing: BackingId,
    /// The key that an opened file must have to be this one.
    pub code: CodeKey,
    /// Whether it is the first event of it.
    pub is_new: bool,
}

/// Action to take on a mapping that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Nothing more.
    Nothing,
    /// The process makes code; it may list it in a code map while it lives.
    LookAtProcess,
    /// The file should be opened while it is there.
    Open(Unopened),
}

/// Result of adding a mapping event to its process.
pub(super) enum Reported {
    /// Code that needs nothing more.
    Known,
    /// Memory; and whether it is the first that is reported of this process.
    Memory {
        /// Nothing of the kind was reported before.
        is_first: bool,
    },
    /// A file; and whether it is the first event about it.
    File(Unopened),
}

impl MappingEvent {
    /// Adds the mapping to its process. `vdso`: what the kernel half knows the vDSO by.
    pub(super) fn add_to(
        &self,
        process: &mut Process,
        backings: &mut Backings,
        vdso: Option<CodeKey>,
    ) -> Reported {
        let mapping = |backing, offset| Mapping {
            range: self.range.clone(),
            offset,
            backing,
            mapping_key: self.mapping_key,
            moved: None,
        };
        let code = self.code;
        if code.device == 0 && !code.is_anonymous() {
            // The kernel's own code: it is at hand.
            if Some(code) == vdso {
                process.add_reported(mapping(backings.vdso(), 0));
            }
            return Reported::Known;
        }
        let path = path(&self.names);
        let is_memory = code.is_anonymous()
            || path.as_ref().is_some_and(|path| path.is_none())
            || matches!(backings.reported(code), Some((_, Backing::Memory { .. })));
        if is_memory {
            let backing = backings.anonymous();
            if !code.is_anonymous() {
                backings.bind(code, backing);
            }
            let is_first = process.add_reported_memory(mapping(backing, 0));
            return Reported::Memory { is_first };
        }
        let known = backings.reported(code).map(|(backing, _)| backing);
        let backing = known.unwrap_or_else(|| {
            let file = MappedFile {
                path: path.flatten().unwrap_or_else(|| nameless(code)),
                number: number(code),
                deleted: false,
            };
            backings.add_reported(code, file)
        });
        process.add_reported(mapping(backing, self.offset));
        Reported::File(Unopened {
            backing,
            code,
            is_new: known.is_none(),
        })
    }

    /// Opens what may be the mapped file, one after the other: under its path, through the mapping itself, and under its
    /// path below the root directory of the process, if that `is_latest` under its PID; and where we may not, as the process's
    /// user. Which of them it is, if any, only the kernel half can say.
    pub(super) fn candidates(
        &self,
        backing: &Backing,
        is_latest: bool,
    ) -> impl Iterator<Item = Opened> + use<> {
        let path = backing.path();
        let tgid = is_latest.then_some(self.process_key.tgid);
        let Range { start, end } = self.range;
        let roots = [
            Some((PathBuf::from("/"), None)),
            tgid.map(|tgid| {
                let root = PathBuf::from(format!("/proc/{tgid}/root"));
                (
                    root,
                    Some(format!("/proc/{tgid}/map_files/{start:x}-{end:x}")),
                )
            }),
            tgid.map(|tgid| (PathBuf::from(format!("/proc/{tgid}/root")), None)),
        ];
        let mut is_denied = false;
        let as_owner = (tgid, path.clone());
        let mut roots = roots.into_iter().flatten();
        std::iter::from_fn(move || {
            let next = roots.find_map(|(root, link)| {
                let file = match link {
                    Some(link) => RegularFile::open(Path::new(&link)),
                    None => RegularFile::open_within(&root, &path),
                };
                is_denied |= { file.as_ref() }
                    .is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
                Some(Opened {
                    file: file.ok()?,
                    root,
                })
            });
            next.or_else(|| {
                let (tgid, path) = &as_owner;
                let tgid = tgid.filter(|_| std::mem::take(&mut is_denied))?;
                let (file, root) = opening::as_owner(tgid, path)?;
                Some(Opened { file, root })
            })
        })
    }
}

/// The file's path from its names. None if the event has no names; an inner none for memory that poses as a file:
/// a file's name has no slash in it.
#[expect(clippy::option_option, reason = "no names, and no path, are different")]
fn path(names: &[Box<[u8]>]) -> Option<Option<PathBuf>> {
    let first = names.first()?;
    if first.contains(&b'/') || &**first == b"anon_hugepage" {
        return Some(None);
    }
    let mut path = Vec::new();
    for name in names.iter().rev() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    Some(Some(PathBuf::from(OsString::from_vec(path))))
}

/// Name of a file whose own names could not be read.
fn nameless(code: CodeKey) -> PathBuf {
    PathBuf::from(format!("inode:{}", code.inode))
}

/// The file's number, as the kernel has it; what `stat` says may differ, as on btrfs.
fn number(code: CodeKey) -> FileNumber {
    /// Bits of a minor number inside the kernel (`include/linux/kdev_t.h`, `MINORBITS`).
    const MINOR_BITS: u32 = 20;
    let device = u32::try_from(code.device.wrapping_sub(1)).unwrap_or(0);
    FileNumber {
        major: device >> MINOR_BITS,
        minor: device & ((1 << MINOR_BITS) - 1),
        inode: code.inode,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Processes;
    use super::*;
    use profiler_common::abi::MappingCheck;
    use std::time::SystemTime;

    fn code(inode: u64) -> CodeKey {
        CodeKey {
            device: (8 << 20 | 1) + 1,
            inode,
            modified: 5,
        }
    }

    fn mapping_event(
        process_key: ProcessKey,
        range: Range<u64>,
        inode: u64,
        names: &[&str],
    ) -> MappingEvent {
        MappingEvent {
            process_key,
            range,
            offset: 0x1000,
            code: code(inode),
            mapping_key: MappingKey(inode << 8),
            leader: *b"first thread\0\0\0\0",
            names: names.iter().map(|name| name.as_bytes().into()).collect(),
        }
    }

    /// A process that is not in `/proc`.
    const GONE: u32 = u32::MAX;

    /// The file that an event is about, which is to be opened.
    fn unopened(processes: &mut Processes, event: &MappingEvent) -> Unopened {
        match processes.handle(event) {
            Todo::Open(file) => file,
            other => panic!("{other:?}"),
        }
    }

    fn name(processes: &Processes, backing: BackingId) -> String {
        let file = processes.backing(backing).file().unwrap();
        file.module().to_string_lossy().into_owned()
    }

    fn module(
        processes: &Processes,
        process_key: ProcessKey,
        address: u64,
    ) -> Option<(String, u64)> {
        let place = processes.get(process_key)?.place(address)?;
        Some((name(processes, place.backing), place.offset))
    }

    #[test]
    fn reported_mappings_are_known_after_the_process_exits() {
        let mut processes = Processes::new();
        let cat = ProcessKey::new(GONE, 3);
        let event = mapping_event(cat, 0x4000..0x6000, 7, &["cat", "bin", "usr"]);
        let file = unopened(&mut processes, &event);
        assert!(file.is_new);
        let mapped = processes.backing(file.backing).file().unwrap();
        assert_eq!(mapped.path, Path::new("/usr/bin/cat"));
        assert_eq!((mapped.number.major, mapped.number.minor), (8, 1));
        assert_eq!(
            module(&processes, cat, 0x4010),
            Some(("cat".to_owned(), 0x1010))
        );
        assert_eq!(module(&processes, cat, 0x6000), None);
        assert_eq!(processes.look(cat), super::super::ProcessChange::Gone);
        assert!(module(&processes, cat, 0x4010).is_some());
    }

    #[test]
    fn exec_and_pid_reuse_leave_no_old_mappings() {
        let mut processes = Processes::new();
        for (incarnation, inode, name) in [(3, 7, "old"), (4, 8, "new")] {
            let program = ProcessKey::new(GONE, incarnation);
            processes.handle(&mapping_event(program, 0x4000..0x6000, inode, &[name]));
        }
        let of = |incarnation| module(&processes, ProcessKey::new(GONE, incarnation), 0x4000);
        assert_eq!(of(3).unwrap().0, "old");
        assert_eq!(of(4).unwrap().0, "new");
        assert_eq!(of(5), None);
    }

    #[test]
    fn a_rewritten_file_is_another_file() {
        let mut processes = Processes::new();
        let one = ProcessKey::new(GONE, 1);
        let before = mapping_event(one, 0x4000..0x6000, 7, &["x"]);
        let mut after = mapping_event(one, 0x8000..0x9000, 7, &["x"]);
        after.code.modified += 1;
        let backings = [before, after].map(|event| unopened(&mut processes, &event).backing);
        assert_ne!(backings[0], backings[1]);
        // The path is reported once.
        let again = mapping_event(ProcessKey::new(GONE, 2), 0x4000..0x6000, 7, &[]);
        let file = unopened(&mut processes, &again);
        assert_eq!((file.backing, file.is_new), (backings[0], false));
    }

    #[test]
    fn each_stack_has_the_mappings_that_give_its_check() {
        let mut processes = Processes::new();
        let one = ProcessKey::new(GONE, 1);
        let first = mapping_event(one, 0x4000..0x6000, 7, &["first"]);
        let second = mapping_event(one, 0x5000..0x9000, 8, &["second"]);
        for event in [&first, &second] {
            processes.handle(event);
        }
        // Parts of what is known add nothing.
        let mut part = mapping_event(one, 0x5000..0x6000, 7, &[]);
        part.offset += 0x1000;
        processes.handle(&part);
        let process = processes.get(one).unwrap();
        assert_eq!(process.reported.mappings().count(), 2);
        let addresses = [0x4800, 0x5800, 0x5900, 0x6800];
        let named = |mappings: [&MappingEvent; 4]| {
            let check = mappings.iter().fold(MappingCheck::EMPTY, |check, event| {
                check.with(event.mapping_key)
            });
            let chosen = process.choices(addresses.into_iter(), check.finish());
            let chosen = chosen.expect("two mappings lay at some of them");
            let places = addresses.into_iter().zip(chosen);
            let places = places.map(|(address, choice)| {
                let place = process.place_in(address, choice)?;
                Some(name(&processes, place.backing))
            });
            places.map(Option::unwrap_or_default).collect::<Vec<_>>()
        };
        assert_eq!(
            named([&first, &first, &first, &second]),
            ["first", "first", "first", "second"]
        );
        assert_eq!(
            named([&first, &second, &second, &second]),
            ["first", "second", "second", "second"]
        );
        // Between the frames of a walk, the one made way for the other: no name is better than a wrong one.
        assert_eq!(
            named([&first, &first, &second, &second]),
            ["first", "", "", "second"]
        );
        let alone = process.choices([0x4800, 0x6800].into_iter(), 5);
        assert_eq!(alone, None, "one mapping lay there");
        assert_eq!(process.choices(addresses.into_iter(), 0), None);
    }

    #[test]
    fn anonymous_memory_is_rescanned_once() {
        let mut processes = Processes::new();
        let one = ProcessKey::new(GONE, 1);
        let mut memory = mapping_event(one, 0x4000..0x6000, 0, &[]);
        memory.code = CodeKey::default();
        assert_eq!(processes.handle(&memory), Todo::LookAtProcess);
        memory.range = 0x8000..0x9000;
        assert_eq!(processes.handle(&memory), Todo::Nothing);
        let place = processes.get(one).unwrap().place(0x8010).unwrap();
        assert!(processes.backing(place.backing).may_be_made());
        assert_eq!(place.offset, 0x10);
        // Shared memory without a file has a name that no file can have.
        let shared = mapping_event(one, 0xa000..0xb000, 9, &["dev/zero"]);
        processes.handle(&shared);
        let place = processes.get(one).unwrap().place(0xa000).unwrap();
        assert!(matches!(
            processes.backing(place.backing),
            Backing::Memory { .. }
        ));
    }

    #[test]
    fn a_file_is_opened_only_if_its_write_time_matches_the_event() {
        let mut processes = Processes::new();
        let made = tempfile::NamedTempFile::new().unwrap();
        let path = made.path().canonicalize().unwrap();
        let names = path.iter().map(|name| name.to_str().unwrap());
        let mut names: Vec<&str> = names.rev().collect();
        names.pop();
        let status = made.as_file().metadata().unwrap();
        use std::os::unix::fs::MetadataExt as _;
        let one = ProcessKey::new(GONE, 1);
        for (add, is_it) in [(0, true), (1, false)] {
            let mut file = mapping_event(one, 0x4000..0x6000, status.ino(), &names);
            file.code.modified = ((status.mtime() as u64) << 30 | status.mtime_nsec() as u64) + add;
            let unopened = unopened(&mut processes, &file);
            assert_eq!(processes.candidates(&unopened, &file).count(), 1);
            let owner = super::super::Owner::new(one, 0x4000..0x6000, SystemTime::now());
            assert_eq!(processes.open(unopened.backing, &[owner]).is_ok(), is_it);
        }
    }

    #[test]
    fn an_open_file_is_not_opened_again() {
        let mut processes = Processes::holding_files();
        let made = tempfile::NamedTempFile::new().unwrap();
        let one = mapping_event(ProcessKey::new(GONE, 1), 0x4000..0x6000, 7, &["x"]);
        let file = unopened(&mut processes, &one);
        let opened = Opened::ours(RegularFile::open(made.path()).unwrap());
        processes.adopt(&file, opened);
        assert_eq!(processes.handle(&one), Todo::Nothing);
    }
}
