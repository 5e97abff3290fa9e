//! Becoming root for the few commands that need it, and only for those.
//!
//! In: who runs the chore, and whether there is a sudo. Out: commands that run as root. Nothing is ever *built* as root, so
//! that no file of root's is left in the target directory.

use std::ffi::OsStr;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// How a command can be run as root.
pub(crate) enum Root {
    /// We are root.
    Already,
    /// sudo lets us.
    Sudo,
}

impl Root {
    /// Finds a way; may ask for a password on a terminal.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn find() -> Result<Self, String> {
        if rustix::process::geteuid().is_root() {
            return Ok(Self::Already);
        }
        let silent = Command::new("sudo")
            .args(["--non-interactive", "true"])
            .stderr(Stdio::null())
            .status()
            .map_err(|error| format!("not root, and sudo cannot be started: {error}"))?;
        if silent.success() {
            return Ok(Self::Sudo);
        }
        let asked = std::io::stdin().is_terminal()
            && Command::new("sudo")
                .arg("--validate")
                .status()
                .is_ok_and(|s| s.success());
        if asked {
            Ok(Self::Sudo)
        } else {
            Err("not root, and sudo wants a password".to_owned())
        }
    }

    /// A command that runs `program` as root with these variables, and with the caller's `PATH`.
    pub(crate) fn command(&self, program: &Path, variables: &[(&str, &OsStr)]) -> Command {
        match self {
            Self::Already => {
                let mut command = Command::new(program);
                command.envs(variables.iter().copied());
                command
            }
            Self::Sudo => {
                // Through env(1): sudo's own way of keeping variables is up to the machine's sudoers.
                let mut command = Command::new("sudo");
                command.args(["--", "env"]);
                let path = std::env::var_os("PATH").unwrap_or_default();
                for (name, value) in variables.iter().copied().chain([("PATH", &*path)]) {
                    let mut assignment = OsStr::new(name).to_owned();
                    assignment.push("=");
                    assignment.push(value);
                    command.arg(assignment);
                }
                command.arg(program);
                command
            }
        }
    }
}
