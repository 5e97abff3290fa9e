//! Setup of a program: a folder, a port, and the processes started there.
//!
//! In: a program. Out: its processes' IDs while they run. Everything is gone when the value is: servers are asked to end first,
//! as their administrators would.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use super::program::{PATH, Program};
use crate::bench::interrupt;

/// Long past any start, end or preparation.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that does not end on request is killed.
const FAREWELL: Duration = Duration::from_secs(5);

/// The exit code of timeout(1), which flame-bpf passes on where it starts that.
const TIME_IS_UP: i32 = 124;

/// How often something is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// Time that programs need to get going: connections, first compilations of virtual machines.
const WARM_UP: Duration = Duration::from_secs(2);

/// The file that a program's script is in.
const SCRIPT: &str = "script.sh";

/// The file that everything goes to that is printed there.
const SAID: &str = "said";

/// Where a program works.
pub(super) struct Setup {
    folder: TempDir,
    variables: Vec<(String, String)>,
    /// In the order of their start.
    children: Vec<Child>,
}

impl Setup {
    /// An empty folder for a program.
    pub(super) fn new(program: &Program, rustc: &Path) -> Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        // Some servers become another user, who must get here, too.
        let folder = tempfile::Builder::new()
            .prefix("completeness-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .context("cannot make a folder")?;
        fs::write(folder.path().join(SCRIPT), program.script).context("cannot write a script")?;
        let mut variables: Vec<(String, String)> = program
            .variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        variables.push(("PATH".to_owned(), PATH.to_owned()));
        variables.push(("HOME".to_owned(), folder.path().display().to_string()));
        variables.push(("PORT".to_owned(), free_port()?.to_string()));
        variables.push(("RUSTC".to_owned(), rustc.display().to_string()));
        variables.push(("LC_ALL".to_owned(), "C.UTF-8".to_owned()));
        Ok(Self {
            folder,
            variables,
            children: Vec::new(),
        })
    }

    /// Where it is.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes what the program works on.
    pub(super) fn prepare(&mut self) -> Result<()> {
        self.call("prepare")
    }

    /// The command that calls a function of the script. Only its complaints are kept.
    pub(super) fn shell(function: &str) -> [String; 4] {
        let script = format!(". ./{SCRIPT}; {function} >/dev/null 2>>{SAID} </dev/null");
        ["sh".to_owned(), "-eu".to_owned(), "-c".to_owned(), script]
    }

    /// Starts a function of the script, and gives it time to get going.
    pub(super) fn start(&mut self, function: &str) -> Result<()> {
        let child = self.spawn(&mut self.command(function))?;
        self.children.push(child);
        interrupt::pause(WARM_UP)?;
        self.check()
    }

    /// Waits until the server serves.
    pub(super) fn await_server(&mut self) -> Result<()> {
        interrupt::until(GLANCE, PATIENCE, || {
            self.check()?;
            Ok(self.call("ready").ok())
        })
        .context("waited until the server serves")
    }

    /// The process started first and all that came from it, as flame-bpf wants to have them.
    pub(super) fn pids(&self) -> Result<String> {
        let first = self.children.first().context("something was started")?;
        let parents = parents()?;
        let mut pids = vec![first.id()];
        let mut next = 0;
        while let Some(&parent) = pids.get(next) {
            pids.extend(
                parents
                    .iter()
                    .filter(|(_, of)| *of == parent)
                    .map(|(pid, _)| pid),
            );
            next += 1;
        }
        Ok(pids
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(","))
    }

    /// Runs flame-bpf to its end, in the folder and with the program's variables.
    pub(super) fn run(&mut self, command: &mut Command) -> Result<()> {
        command
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::null())
            .stderr(self.said()?);
        let child = self.spawn(command)?;
        self.children.push(child);
        let Some(profiler) = self.children.last_mut() else {
            bail!("a child just started is there");
        };
        let status = interrupt::until(GLANCE, PATIENCE, || {
            profiler.try_wait().context("cannot wait for flame-bpf")
        })
        .context("waited for flame-bpf")?;
        ensure!(
            status.success() || status.code() == Some(TIME_IS_UP),
            "flame-bpf failed: {}",
            self.last_words()
        );
        Ok(())
    }

    /// An error if something that was started has ended.
    fn check(&mut self) -> Result<()> {
        let mut ended = false;
        for child in &mut self.children {
            ended |= child
                .try_wait()
                .context("cannot wait for a child")?
                .is_some();
        }
        ensure!(!ended, "it ended early: {}", self.last_words());
        Ok(())
    }

    fn call(&self, function: &str) -> Result<()> {
        let mut child = self.spawn(&mut self.command(function))?;
        let status = interrupt::until(Duration::from_millis(5), PATIENCE, || {
            child.try_wait().context("cannot wait for a child")
        });
        if status.is_err() {
            end(&mut child, Signal::KILL);
        }
        ensure!(
            status?.success(),
            "`{function}` failed: {}",
            self.last_words()
        );
        Ok(())
    }

    fn command(&self, function: &str) -> Command {
        let [shell, arguments @ ..] = Self::shell(function);
        let mut command = Command::new(shell);
        command.args(arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn spawn(&self, command: &mut Command) -> Result<Child> {
        command
            .current_dir(self.folder())
            .stdin(Stdio::null())
            // Ctrl-C on the terminal is ours alone, so that things end in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))
    }

    fn said(&self) -> Result<File> {
        let path = self.folder().join(SAID);
        let open = File::options().create(true).append(true).open(&path);
        open.with_context(|| format!("cannot open {}", path.display()))
    }

    /// The end of what was said.
    fn last_words(&self) -> String {
        let said = fs::read(self.folder().join(SAID)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.trim().lines().collect();
        lines[lines.len().saturating_sub(3)..].join(" / ")
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // A server's load ends before the server.
        while let Some(mut child) = self.children.pop() {
            end(&mut child, Signal::INT);
        }
    }
}

/// Asks a child to end, waits, and kills what is left of its group.
fn end(child: &mut Child, request: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, request).ok();
    let end = std::time::Instant::now() + FAREWELL;
    while child.try_wait().is_ok_and(|status| status.is_none()) {
        if std::time::Instant::now() > end {
            break;
        }
        std::thread::sleep(GLANCE);
    }
    kill_process_group(pid, Signal::KILL).ok();
    child.wait().ok();
}

/// A port that nobody listens on.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("there is no free port")?;
    Ok(listener
        .local_addr()
        .context("a socket has an address")?
        .port())
}

/// All processes, and the parent of each.
fn parents() -> Result<Vec<(u32, u32)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")
        .context("cannot list /proc")?
        .flatten()
    {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // A process may end at any time.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        found.extend(parent.map(|parent| (pid, parent)));
    }
    Ok(found)
}
