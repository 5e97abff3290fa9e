//! Facts of this machine, and of this process's rights, that explain why something does not work here.
//!
//! In: files under `/proc` and `/sys`. Out: a [`Trouble`]: the reason, and what mends it. A recording that is refused says it, and so
//! does `doctor`.

mod mounts;
mod rights;

pub(crate) use mounts::{Mount, TYPE_INFORMATION, has_cgroups, type_information, uncovered};
pub(crate) use rights::Rights;

use std::fmt;

/// Why something does not work here, and what mends it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Trouble {
    /// The reason, without a full stop.
    pub why: String,
    /// The remedy.
    pub mend: Mend,
}

/// Remedy of a trouble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mend {
    /// A command for a shell that mends it as it stands.
    Command(String),
    /// Something to do for somebody who starts this process, or the machine.
    Advice(String),
}

impl Trouble {
    /// One that a command mends. The command is for root; for others, sudo is put before it.
    pub(crate) fn command(why: impl Into<String>, command: impl fmt::Display) -> Self {
        let sudo = if rustix::process::geteuid().is_root() {
            ""
        } else {
            "sudo "
        };
        Self {
            why: why.into(),
            mend: Mend::Command(format!("{sudo}{command}")),
        }
    }

    /// One that takes more than a command.
    pub(crate) fn advice(why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            mend: Mend::Advice(advice.into()),
        }
    }

    /// A setting of the kernel's that is too low or too high.
    pub(crate) fn setting(why: impl Into<String>, name: &str, value: u64) -> Self {
        Self::command(why, format_args!("sysctl -w {name}={value}"))
    }

    /// This process may not have more files open.
    pub(crate) fn descriptors(why: impl Into<String>) -> Self {
        Self::command(why, "prlimit --pid $$ --nofile=4096")
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.mend {
            Mend::Command(command) => write!(out, "{}; mend it with `{command}`", self.why),
            Mend::Advice(advice) => write!(out, "{}; {advice}", self.why),
        }
    }
}
