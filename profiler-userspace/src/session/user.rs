//! The user that a command runs as.
//!
//! In: a name, or nothing for the user who called sudo. Out: IDs, groups and the environment of a session of that user's. The door
//! to the system's database of users, which may be anything that `nsswitch.conf` names.

use crate::caller;
use anyhow::{Context as _, Result, bail, ensure};
use nix::unistd::{Gid, Uid, User, getgrouplist};
use std::env;
use std::ffi::{CString, OsString};
use std::io;
use std::process::Command;

/// A user, with what a program needs to run as that user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunAs {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    /// Variables to set.
    variables: Vec<(&'static str, OsString)>,
}

impl RunAs {
    /// The user with this name; without one, whoever called sudo or pkexec.
    pub(super) fn find(name: Option<&str>) -> Result<Self> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "--as-user needs root's rights; without sudo the command runs as you anyway"
        );
        let user = match name {
            Some(name) => User::from_name(name)?
                .with_context(|| format!("there is no user {name}; `getent passwd` lists them"))?,
            None => match caller::uid(|variable| env::var(variable).ok()) {
                Some(uid) => User::from_uid(Uid::from_raw(uid))?.with_context(|| {
                    format!("the user with ID {uid}, who called sudo, has no name")
                })?,
                None => bail!(
                    "--as-user is for whoever called sudo, and nobody did; say who, as in --as-user=NAME"
                ),
            },
        };
        let name = CString::new(user.name.as_str())?;
        let groups = getgrouplist(&name, user.gid)?;
        Ok(Self {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            variables: vec![
                ("HOME", user.dir.into_os_string()),
                ("SHELL", user.shell.into_os_string()),
                ("USER", (&user.name).into()),
                ("LOGNAME", user.name.into()),
            ],
        })
    }

    /// Gives the command the user's environment.
    pub(super) fn prepare(&self, command: &mut Command) {
        for variable in caller::LENT {
            command.env_remove(variable);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    /// Becomes the user, for good. Three system calls and no memory, for a child that has yet to run its program.
    pub(super) fn become_it(&self, groups: &[rustix::thread::Gid]) -> io::Result<()> {
        use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }

    /// The groups as the system call takes them, made before there is a child.
    pub(super) fn groups(&self) -> Vec<rustix::thread::Gid> {
        let groups = self.groups.iter();
        groups
            .map(|&group| rustix::thread::Gid::from_raw(group))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_groups_and_a_home_and_one_that_is_not_there_is_refused() {
        if !rustix::process::geteuid().is_root() {
            let error = RunAs::find(Some("root")).unwrap_err().to_string();
            return assert!(error.contains("needs root's rights"), "{error}");
        }
        let daemon = RunAs::find(Some("daemon")).unwrap();
        assert!(daemon.uid != 0 && daemon.groups.contains(&daemon.gid));
        assert!(daemon.variables.contains(&("USER", "daemon".into())));
        let error = RunAs::find(Some("no-such-user")).unwrap_err().to_string();
        assert!(error.contains("no user no-such-user"), "{error}");
    }
}
