//! State of a process or a thread, as `/proc` says it.
//!
//! In: its file `status`. Out: numbers by the names of their lines.

use std::fs;

/// The text of a file `status`.
pub(crate) struct Status(String);

impl Status {
    /// That of a process or a thread.
    pub(crate) fn of(tgid: u32) -> Option<Self> {
        Self::read(&format!("/proc/{tgid}/status"))
    }

    /// Names in it may end within a character.
    fn read(path: &str) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        Some(Self(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The numbers in the line that begins with a name and a colon.
    pub(super) fn numbers(&self, name: &str) -> Option<Vec<u32>> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name))?;
        let words = line.split_whitespace();
        Some(words.filter_map(|word| word.parse().ok()).collect())
    }

    /// The last of them.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.numbers(name)?.last().copied()
    }

    /// The ID in the innermost namespace, its own.
    pub(super) fn own_id(&self) -> Option<u32> {
        self.number("NSpid:")
    }
}

/// The ID that a thread has in its own namespace, which may be a container's.
pub(crate) fn own_thread_id(tgid: u32, tid: u32) -> Option<u32> {
    Status::read(&format!("/proc/{tgid}/task/{tid}/status"))?.own_id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_id_is_a_thread_s_own() {
        let status = Status("Name:\tx\nUid:\t1\t2\nNSpid:\t1234\t77\t5\n".to_owned());
        assert_eq!(status.own_id(), Some(5));
        assert_eq!(status.numbers("Uid:"), Some(vec![1, 2]));
        assert_eq!(status.numbers("Gid:"), None);
        let own = std::process::id();
        assert!(own_thread_id(own, own).is_some());
        assert_eq!(own_thread_id(own, 0), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"Name:\tcut \xe6\xbc\nNSpid:\t7\n").unwrap();
        let status = Status::read(file.path().to_str().unwrap());
        assert_eq!(status.unwrap().own_id(), Some(7));
    }
}
