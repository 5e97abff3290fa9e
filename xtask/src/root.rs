//! Becoming root for the few commands that need it, and only for those.
//!
//! In: who runs the chore, and whether there is a sudo. Out: commands that run as root. Nothing is ever *built* as root, so
//! that no file of root's is left in the target directory.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// How a command can be run as root.
pub(crate) enum Root {
    /// We are root.
    Already,
    /// sudo lets us.
    Sudo,
}

/// Becomes a program that runs as root; returns only when that fails.
pub(crate) fn replace_by(
    program: &Path,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<()> {
    let root = match Root::find() {
        Ok(root) => root,
        Err(reason) => bail!("{reason}; run {} as root", program.display()),
    };
    let error = root.command(program, &[]).args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

/// Becomes the half of a chore that runs as root: with paths of its own, and with what was typed for the chore; returns only
/// when that fails.
pub(crate) fn other_half<const N: usize>(chore: &str, own: [(&str, PathBuf); N]) -> Result<()> {
    let itself = std::env::current_exe().context("cannot find this program's own path")?;
    let own = own
        .into_iter()
        .flat_map(|(flag, path)| [flag.into(), path.into_os_string()]);
    let typed = std::env::args_os().skip(2);
    replace_by(&itself, [chore.into()].into_iter().chain(own).chain(typed))
}

impl Root {
    /// Finds a way; may ask for a password on a terminal.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn find() -> std::result::Result<Self, String> {
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
