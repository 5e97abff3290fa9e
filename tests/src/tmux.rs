//! A terminal that tests can type into and read: one of tmux's, with a server of its own.
//!
//! In: a command line, keys. Out: what the screen shows, and how the terminal is set. It ends with its test, and so does
//! all that runs in it.

use crate::feature::tool;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long something on the screen is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// How a terminal is that nobody has taken over: no alternate screen, no mouse, a cursor.
pub const AS_BEFORE: &str = "0 0 1";

/// How one is that is taken.
pub const TAKEN: &str = "1 1 0";

/// A terminal.
#[derive(Debug)]
pub struct Tmux {
    tool: PathBuf,
    server: String,
    folder: TempDir,
}

impl Tmux {
    /// A terminal of that size in which a shell runs `script`. `variables` are set, and all that says anything about
    /// colours and languages is not.
    ///
    /// # Errors
    /// When tmux is not installed.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
        script: &str,
    ) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let tmux = Self {
            tool: tool("tmux")?,
            server: format!("flame-bpf-{}-{number}", std::process::id()),
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        let file = tmux.path("script");
        fs::write(&file, script).expect("the script can be written");
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let command = format!("exec bash {}", file.display());
        let mut arguments = vec![
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
        ];
        let variables: Vec<String> = variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        for variable in &variables {
            arguments.extend(["-e", variable]);
        }
        arguments.push(&command);
        tmux.ask(&arguments);
        Ok(tmux)
    }

    /// A file in the terminal's folder, which is the current one there.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Types keys, as tmux calls them.
    ///
    /// # Panics
    /// When the terminal has gone.
    pub fn keys(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys"];
        arguments.extend(keys);
        self.ask(&arguments);
    }

    /// The rows of the screen, without blanks at their ends.
    ///
    /// # Panics
    /// When the terminal has gone.
    pub fn screen(&self) -> Vec<String> {
        self.ask(&["capture-pane", "-p"])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// How the terminal is set: alternate screen, mouse, cursor.
    ///
    /// # Panics
    /// When the terminal has gone.
    pub fn flags(&self) -> String {
        let flags = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}";
        self.ask(&["display-message", "-p", flags])
            .trim()
            .to_owned()
    }

    /// Waits until it is set so.
    ///
    /// # Panics
    /// When it is not in time.
    #[track_caller]
    pub fn wait_for_flags(&self, wanted: &str) {
        self.wait(
            |tmux| tmux.flags() == wanted,
            &format!("the flags {wanted}"),
        );
    }

    /// Waits until a row of the screen has a text in it, and returns that row.
    ///
    /// # Panics
    /// When there is none in time.
    #[track_caller]
    pub fn wait_for_text(&self, text: &str) -> String {
        let find = |tmux: &Self| tmux.screen().into_iter().find(|row| row.contains(text));
        self.wait(|tmux| find(tmux).is_some(), text);
        find(self).unwrap_or_default()
    }

    /// Waits until a file is there and ends with a line, and returns what it holds.
    ///
    /// # Panics
    /// When it is not in time.
    #[track_caller]
    pub fn wait_for_file(&self, path: &Path) -> String {
        let read = || {
            fs::read_to_string(path)
                .ok()
                .filter(|text| text.ends_with('\n'))
        };
        self.wait(|_| read().is_some(), &path.display().to_string());
        read().unwrap_or_default()
    }

    #[track_caller]
    fn wait(&self, is_there: impl Fn(&Self) -> bool, what: &str) {
        let began = Instant::now();
        while !is_there(self) {
            assert!(
                began.elapsed() < PATIENCE,
                "{what} did not come; flags {}:\n{}",
                self.flags(),
                self.screen().join("\n")
            );
            std::thread::sleep(GLANCE);
        }
    }

    fn ask(&self, arguments: &[impl AsRef<OsStr>]) -> String {
        let mut command = Command::new(&self.tool);
        command
            .args(["-L", &self.server])
            .args(arguments)
            .current_dir(self.folder.path());
        for name in [
            "TMUX",
            "COLORTERM",
            "NO_COLOR",
            "LC_ALL",
            "LC_CTYPE",
            "LANG",
        ] {
            command.env_remove(name);
        }
        // tmux itself needs it to pass on what is not ASCII.
        command
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color");
        let output = command.output().expect("tmux can be run");
        assert!(
            output.status.success(),
            "tmux: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = Command::new(&self.tool);
        let _gone_already = command.args(["-L", &self.server, "kill-server"]).output();
    }
}
