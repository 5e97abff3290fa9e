//! The user who called us through sudo or pkexec.
//!
//! In: the variables that these set. Out: IDs. Never: asks the system whose they are.

/// Variables with the caller's ID, of those who lend root's rights.
const CALLERS: [&str; 2] = ["SUDO_UID", "PKEXEC_UID"];

/// Variables that say that a program runs under sudo or pkexec.
pub(crate) const LENT: [&str; 5] = [
    "SUDO_UID",
    "SUDO_GID",
    "SUDO_USER",
    "SUDO_COMMAND",
    "PKEXEC_UID",
];

/// The ID of the user who called, by variables.
pub(crate) fn uid(variable: impl Fn(&'static str) -> Option<String>) -> Option<u32> {
    let ids = CALLERS.iter();
    ids.filter_map(|name| variable(name)?.parse().ok()).next()
}

/// A user, by IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// The user who called us through sudo, if we are root by that.
    pub(crate) fn who_called_sudo() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let id = |name| std::env::var(name).ok();
        Self::new(&id("SUDO_UID")?, &id("SUDO_GID")?)
    }

    /// The user with these IDs. The highest number is none: system calls take it for no change.
    pub(crate) fn new(uid: &str, gid: &str) -> Option<Self> {
        let id = |text: &str| text.parse().ok().filter(|&id| id != u32::MAX);
        Some(Self {
            uid: id(uid)?,
            gid: id(gid)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_is_who_called_sudo_or_pkexec() {
        let only = |set: &'static str, value: &'static str| {
            uid(move |name| (name == set).then(|| value.to_owned()))
        };
        assert_eq!(only("SUDO_UID", "1000"), Some(1000));
        assert_eq!(only("PKEXEC_UID", "7"), Some(7));
        assert_eq!(only("SUDO_UID", "me"), None);
        assert_eq!(uid(|_| None), None);
    }

    #[test]
    fn a_user_is_parsed_from_two_numbers() {
        for (uid, gid) in [
            ("", "1"),
            ("1", ""),
            ("-1", "1"),
            ("root", "root"),
            ("4294967295", "1"),
            ("1 ", "1"),
        ] {
            assert_eq!(User::new(uid, gid), None, "{uid} {gid}");
        }
        assert!(User::new("1000", "0").is_some());
    }
}
